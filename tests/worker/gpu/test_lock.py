"""Turns at the card, between real processes: work runs beside work, a measurement alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelgate.settings import ROOT, environment, settings
from tests.conftest import forget_settings

PROGRAM = """
import sys, time
from worker.gpu import lock
with getattr(lock, sys.argv[1])():
    print("in", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELGATE_DATA_DIR", str(tmp_path))
    forget_settings()


class Taker:
    """A process that takes a turn and keeps it until it is told to go."""

    def __init__(self, kind: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment(settings()),
            text=True,
        )

    def has_it(self) -> bool:
        assert self.process.stdout is not None
        return self.process.stdout.readline() == "in\n"

    def waits(self) -> bool:
        """Whether it is blocked in the kernel on a lock, once it has come that far."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if "FLOCK" in _waiting(self.process.pid):
                return True
            time.sleep(0.02)
        return False

    def go(self) -> None:
        self.process.communicate("\n", timeout=30)


def _waiting(pid: int) -> str:
    """The line of /proc/locks of a lock that a process waits for."""
    lines = Path("/proc/locks").read_text().splitlines()
    return "".join(line for line in lines if "->" in line and f" {pid} " in line)


def test_work_runs_beside_work_and_a_measurement_waits_for_all_of_it() -> None:
    first, second = Taker("shared"), Taker("shared")
    assert first.has_it()
    assert second.has_it()
    measuring = Taker("exclusive")
    assert measuring.waits()
    later = Taker("shared")
    assert later.waits(), "nobody overtakes a measurement that waits"
    first.go()
    second.go()
    assert measuring.has_it()
    assert later.waits()
    measuring.go()
    assert later.has_it()
    later.go()


def test_a_dead_process_keeps_no_turn() -> None:
    first = Taker("exclusive")
    assert first.has_it()
    second = Taker("exclusive")
    assert second.waits()
    first.process.kill()
    first.process.communicate(timeout=30)
    assert second.has_it()
    second.go()
