"""The command line as a process of its own, against a real API server; the API tests' fixtures are shared.

What ends by itself is run in a fork of a process that is ready (tests/cli/ready.py); what is watched or stopped is started.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.api.conftest import Api, api, graders, limits
from tests.cli.ready import ReadyCommandLine
from tests.conftest import heeding_signals

__all__ = ["api", "graders", "limits"]


@dataclass
class Cli:
    """Runs `kernelgate` with a home of its own."""

    home: Path
    env: dict[str, str]
    ready: ReadyCommandLine

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "kernelgate", *words],
            env={**self.env, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            preexec_fn=heeding_signals,
        )

    def run(self, *words: str, input: str = "", **env: str) -> subprocess.CompletedProcess[str]:  # noqa: A002
        return self.ready.run(words, env={**self.env, **env}, cwd=self.home, given=input)


@pytest.fixture(scope="session")
def ready() -> Iterator[ReadyCommandLine]:
    made = ReadyCommandLine()
    yield made
    made.stop()


@pytest.fixture
def cli(tmp_path: Path, database: str, ready: ReadyCommandLine) -> Cli:  # noqa: ARG001
    home = tmp_path / "home"
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if name not in ("KERNELGATE_URL", "KERNELGATE_TOKEN")}
    return Cli(home, {**env, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}, ready)


@pytest.fixture
def signed_in(cli: Cli, api: Api) -> Callable[[str], Cli]:
    """The command line signed in to the API as somebody, by the environment."""

    def as_(handle: str) -> Cli:
        return Cli(cli.home, {**cli.env, "KERNELGATE_URL": api.url, "KERNELGATE_TOKEN": api.token(handle)}, cli.ready)

    return as_
