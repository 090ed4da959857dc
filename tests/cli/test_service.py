"""The command line against the whole running product: a real worker judges what it submits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kernelgate.settings import ROOT
from kernelgate.verdicts import Verdict
from tests.conftest import Service

STAGE = ROOT / "graders" / "online_softmax"


def submit(service: Service, handle: str, file: Path, command: str = "submit") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "KERNELGATE_URL": service.url, "KERNELGATE_TOKEN": service.token(handle)}
    words = [sys.executable, "-m", "kernelgate", command, STAGE.name, str(file)]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=110, check=False)


def test_the_solution_is_accepted_with_live_progress(service: Service) -> None:
    shown = submit(service, "cli-honest", STAGE / "solution" / "online_softmax.py")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert shown.stdout.split()[:2] == ["VERDICT", "accepted"]
    assert "  case 1/" in shown.stderr
    assert shown.stderr.splitlines()[-1] == "done"


def test_the_starter_is_not_and_the_status_says_how(service: Service) -> None:
    shown = submit(service, "cli-starter", STAGE / "starter" / "online_softmax.py")
    verdict = Verdict(shown.stdout.split()[1])
    assert not verdict.passes
    assert shown.returncode == verdict.about.exit_status


def test_one_case_is_run_with_its_numbers(service: Service) -> None:
    shown = submit(service, "cli-run", STAGE / "solution" / "online_softmax.py", "run")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "REASON" in shown.stdout
    assert "case_right" in shown.stdout
    assert "INPUT    scores [2, 3] float32: " in shown.stdout
    assert "CASES    1 of 1 right" in shown.stdout
