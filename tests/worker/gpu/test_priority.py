"""Who measures goes first, for as long as it measures, where this process may say so."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from worker.gpu import priority

RANKED = os.SCHED_RR | os.SCHED_RESET_ON_FORK


def permitted() -> bool:
    try:
        with priority.first(priority.WORKER):
            return os.sched_getscheduler(0) == RANKED
    finally:
        assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_a_block_runs_first_and_leaves_the_thread_as_it_was() -> None:
    if not permitted():
        pytest.skip("this process has no CAP_SYS_NICE")
    with priority.first(priority.WORKER):
        assert os.sched_getparam(0).sched_priority == priority.WORKER
        with priority.first(priority.PLAYER):
            assert os.sched_getparam(0).sched_priority == priority.PLAYER
        assert os.sched_getparam(0).sched_priority == priority.WORKER
    assert (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority) == (os.SCHED_OTHER, 0)


def test_what_a_block_starts_inherits_nothing() -> None:
    seen: list[int] = []
    with priority.first(priority.PLAYER):
        thread = threading.Thread(target=lambda: seen.append(os.sched_getscheduler(0)))
        thread.start()
        thread.join()
        child = subprocess.run(
            [sys.executable, "-c", "import os; print(os.sched_getscheduler(0))"], capture_output=True
        )
    assert seen == [os.SCHED_OTHER]
    assert int(child.stdout) == os.SCHED_OTHER


def test_a_process_without_the_right_runs_as_before() -> None:
    """The right is dropped together with root's identity."""
    if os.getuid() != 0:
        pytest.skip("only root has a right to drop")
    code = (
        "import os\nfrom worker.gpu import priority\nos.setuid(65534)\n"
        "with priority.first(priority.PLAYER): print(os.sched_getscheduler(0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == os.SCHED_OTHER
