"""What a sandboxed process that is gone says of the submission."""

from __future__ import annotations

import pytest

from kernelgate.stages import Limits
from worker.judging.endings import end_failure
from worker.sandbox import End, Finished


@pytest.mark.parametrize("end", [End.WALL, End.CPU])
def test_a_file_that_loads_for_too_long_hears_what_its_imports_may_cost(end: End) -> None:
    """`@torch.compile` at the top of a file was told "Stopped after 4 s while it was loaded" and nothing else."""
    finished = Finished(end, None, None, b"", b"", 4000.0, 100.0, {})
    loading, running = (end_failure(finished, case, Limits(case_s=4)) for case in (None, "tokens_8"))
    assert "torch.compile, for one, loads a compiler" in loading.message
    assert running.message == "Stopped after 4 s in case tokens_8."
    assert (loading.reason, loading.case) == (running.reason, None)
