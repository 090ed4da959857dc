"""What a sandboxed process that is gone says of the submission."""

from __future__ import annotations

import pytest

from kernelgate.stages import Limits
from worker.judging.endings import end_failure, line_at_the_end
from worker.sandbox import End, Finished


@pytest.mark.parametrize("end", [End.WALL, End.CPU])
@pytest.mark.parametrize(
    ("module", "said"), [("_dynamo/eval_frame.py", True), ("_inductor/codecache.py", True), ("nn.py", False)]
)
def test_a_time_limit_names_torch_compile_where_its_compiler_ran(end: End, module: str, said: bool) -> None:
    """A file that is slow to load on a busy machine has nothing to do with it."""
    compiler, own = f'File "/usr/lib/torch/{module}", line 8 in f', 'File "a.py", line 3 in <module>'
    stack = f"Stack (most recent call first):\n  {compiler}\n  {own}\n"
    finished = Finished(end, None, None, b"", stack.encode(), 4000.0, 100.0, {})
    loading, running = (end_failure(finished, case, Limits(case_s=4), ["a.py"]) for case in (None, "tokens_8"))
    assert loading.message.startswith("Stopped after 4 s while it was loaded. It was at line 3.")
    assert ("torch.compile loads a compiler" in loading.message) is said
    assert ("torch.compile loads a compiler" in running.message) is said
    assert (loading.reason, loading.case) == (running.reason, None)


STACK = b"""printed
Stack (most recent call first):
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
        (STACK.replace(b"Stack", b"Pile"), ["update.py"], ""),
        (b"", ["update.py"], ""),
    ],
)
def test_the_line_at_the_end_is_the_innermost_of_the_submissions(stderr: bytes, files: list[str], said: str) -> None:
    found = line_at_the_end(Finished(End.WALL, None, None, b"", stderr, 1.0, 1.0, {}), files)
    assert found[: len(said)] == said
    assert len(found) < 200
    assert bool(found) == bool(said)
