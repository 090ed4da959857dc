"""What a sandboxed process that is gone says of the submission."""

from __future__ import annotations

import pytest

from kernelgate.stages import Limits
from worker.judging.endings import end_failure, line_at_the_end
from worker.sandbox import End, Finished


@pytest.mark.parametrize("end", [End.WALL, End.CPU])
def test_a_file_that_loads_for_too_long_hears_what_its_imports_may_cost(end: End) -> None:
    """`@torch.compile` at the top of a file was told "Stopped after 4 s while it was loaded" and nothing else."""
    finished = Finished(end, None, None, b"", b"", 4000.0, 100.0, {})
    loading, running = (end_failure(finished, case, Limits(case_s=4)) for case in (None, "tokens_8"))
    assert "torch.compile, for one, loads a compiler" in loading.message
    assert running.message == "Stopped after 4 s in case tokens_8."
    assert (loading.reason, loading.case) == (running.reason, None)


STACK = b"""printed
Timeout (0:00:09.700000)!
Thread 0x00007f (most recent call first):
  File "/usr/lib/torch/functional.py", line 80 in einsum
  File "tiles.py", line 5 in merged
  File "update.py", line 12 in update
  File "driver", line 3 in run
"""


@pytest.mark.parametrize(
    ("stderr", "files", "said"),
    [
        (STACK, ["update.py"], " It was at line 12, in update."),
        (STACK, ["update.py", "tiles.py"], " It was at tiles.py:5, in merged."),
        (STACK.replace(b"update\n", b"<module>\n"), ["update.py"], " It was at line 12."),
        (
            STACK.replace(b"merged", b"\x1b[31m" + b"m" * 300),
            ["tiles.py"],
            " It was at line 5, in \N{REPLACEMENT CHARACTER}[31m",
        ),
        (STACK.replace(b"Timeout", b"Time"), ["update.py"], ""),
        (b"", ["update.py"], ""),
    ],
)
def test_the_line_at_the_end_is_the_innermost_of_the_submissions(stderr: bytes, files: list[str], said: str) -> None:
    found = line_at_the_end(Finished(End.WALL, None, None, b"", stderr, 1.0, 1.0, {}), files)
    assert found[: len(said)] == said
    assert len(found) < 200
    assert bool(found) == bool(said)
