"""Submissions of every kind against a small stage, through the real sandbox: each gets its verdict and its reason."""

from __future__ import annotations

import threading
import time

import pytest

from kernelgate.protocol import CaseReport, Result, WrongTensor
from kernelgate.stages import Stage
from kernelgate.verdicts import Phase, Verdict
from worker.grade import _first_wrong, apart, grade
from worker.judging.failures import Cancelled
from worker.judging.phases import Unwatched
from worker.pytorch import backend
from worker.pytorch.backend import Arena
from worker.sandbox import Sandbox
from worker.sandbox.program import program

HONEST = "def scaling(x, y, factor):\n    return factor * x + y\n"


def graded(stage: Stage, sandbox: Sandbox, source: str | bytes) -> Result:
    body = source.encode() if isinstance(source, str) else source
    return grade(stage, body, sandbox=sandbox, seed="00")


def test_an_honest_submission_is_accepted_with_everything_known_about_it(small_stage: Stage, sandbox: Sandbox) -> None:
    result = graded(small_stage, sandbox, HONEST)
    assert (result.verdict, result.reason) == (Verdict.ACCEPTED, "passed")
    assert [case.state for case in result.cases] == ["right", "right"]
    assert result.stage_hash == small_stage.hash
    assert {Phase.LOAD, Phase.CASES, Phase.JUDGE} <= set(result.phases)
    assert result.machine["torch"] != "none"


def test_the_first_wrong_tensor_is_named_with_element_and_mistake(small_stage: Stage, sandbox: Sandbox) -> None:
    result = graded(small_stage, sandbox, "def scaling(x, y, factor):\n    return factor * x\n")
    assert result.verdict is Verdict.WRONG_ANSWER
    assert result.wrong is not None
    assert (result.wrong.case, result.wrong.tensor, result.wrong.index) == ("by_hand", "out", (0, 0))
    assert (result.wrong.got, result.wrong.want) == (2.0, 12.0)
    assert result.mistake is not None
    assert result.mistake.name == "forgot_y"
    assert "out at row 0, column 0 is 2, not 12" in result.message


def test_right_first_and_wrong_later_is_wrong(small_stage: Stage, sandbox: Sandbox) -> None:
    source = (
        "calls = []\ndef scaling(x, y, factor):\n    calls.append(1)\n    return factor * x + y + (len(calls) > 1)\n"
    )
    result = graded(small_stage, sandbox, source)
    assert result.verdict is Verdict.WRONG_ANSWER
    assert [case.state for case in result.cases] == ["right", "wrong"]
    assert result.mistake is None


def test_the_earliest_evidence_decides_when_a_later_case_fails(small_stage: Stage, sandbox: Sandbox) -> None:
    source = "def scaling(x, y, factor):\n    assert len(x) == 1, 'only one row'\n    return factor * x\n"
    result = graded(small_stage, sandbox, source)
    assert (result.verdict, result.reason) == (Verdict.WRONG_ANSWER, "wrong_value")
    assert [case.state for case in result.cases] == ["wrong", "failed"]
    assert "only one row" in result.log


BROKEN = {
    "empty": (b"  \n", Verdict.COMPILE_ERROR, "empty_file", "The file is empty"),
    "binary": (b"\x7fELF\0\0", Verdict.COMPILE_ERROR, "binary_file", "NUL byte at offset 4"),
    "latin1": (b"# caf\xe9\n", Verdict.COMPILE_ERROR, "not_utf8", "byte 0xe9 at offset 5"),
    "too_long": (b"#" * 300_000, Verdict.COMPILE_ERROR, "too_long", "300000 bytes"),
    "syntax": (b"def scaling(:\n", Verdict.COMPILE_ERROR, "syntax_error", "scaling.py does not load: SyntaxError"),
    "nul_escape_in_log": (b"raise Exception('\\x1b[2J\\x00')", Verdict.RUNTIME_ERROR, "exception", "[2J"),
    "import": (b"import nonexistent_module\n", Verdict.COMPILE_ERROR, "import_error", "nonexistent_module"),
    "missing": (b"x = 1\n", Verdict.CONTRACT_VIOLATION, "missing_function", "defines no function scaling"),
    "exception": (
        b"def scaling(x, y, factor):\n    return 1 / 0\n",
        Verdict.RUNTIME_ERROR,
        "exception",
        "ZeroDivisionError",
    ),
    "exit_at_import": (b"import os\nos._exit(0)\n", Verdict.RUNTIME_ERROR, "ended_early", "while it was loaded"),
    "exit_in_call": (
        b"import os\ndef scaling(x, y, factor):\n    os._exit(0)\n",
        Verdict.RUNTIME_ERROR,
        "ended_early",
        "in case by_hand",
    ),
    "sys_exit": (b"import sys\nsys.exit(0)\n", Verdict.RUNTIME_ERROR, "ended_early", "SystemExit"),
    "segfault": (
        b"import ctypes\ndef scaling(x, y, factor):\n    ctypes.string_at(8)\n",
        Verdict.RUNTIME_ERROR,
        "crashed",
        "SIGSEGV",
    ),
    "endless_import": (
        b"while True: pass\n",
        Verdict.TIME_LIMIT,
        "time_limit",
        "while it was loaded. It was at line 1.",
    ),
    "endless_loop": (
        b"def wait():\n    while True:\n        pass\n\ndef scaling(x, y, factor):\n    return wait()\n",
        Verdict.TIME_LIMIT,
        "time_limit",
        ", in wait.",
    ),
    "memory": (
        b"def scaling(x, y, factor):\n    keep = [bytearray(b'x' * (1 << 24)) for _ in range(400)]\n",
        Verdict.MEMORY_LIMIT,
        "memory_limit",
        "512 MiB",
    ),
    "output": (b"while True: print('x' * 10000)\n", Verdict.RUNTIME_ERROR, "output_limit", "more than 64 KiB"),
    "wrong_shape": (
        b"def scaling(x, y, factor):\n    return (factor * x + y)[0]\n",
        Verdict.CONTRACT_VIOLATION,
        "wrong_shape",
        "[1, 2]",
    ),
    "wrong_dtype": (
        b"def scaling(x, y, factor):\n    return (factor * x + y).double()\n",
        Verdict.CONTRACT_VIOLATION,
        "wrong_dtype",
        "float64",
    ),
    "not_a_tensor": (
        b"def scaling(x, y, factor):\n    return [1]\n",
        Verdict.CONTRACT_VIOLATION,
        "wrong_return_type",
        "list",
    ),
    "in_place": (
        b"def scaling(x, y, factor):\n    y += factor * x\n    return y.clone()\n",
        Verdict.CONTRACT_VIOLATION,
        "inputs_changed",
        "'y' was changed",
    ),
    "nan": (
        b"def scaling(x, y, factor):\n    return (factor * x + y) * float('nan')\n",
        Verdict.WRONG_ANSWER,
        "wrong_value",
        "NaN",
    ),
    "result_too_large": (
        b"import torch\ndef scaling(x, y, factor):\n    return torch.zeros(1).repeat(17 << 20)\n",
        Verdict.CONTRACT_VIOLATION,
        "too_large",
        "71303168 bytes",
    ),
    "noise_on_the_channel": (
        (
            b"channel = __import__('inspect').stack()\nimport os\n"
            b"for fd in range(3, 64):\n    try: os.write(fd, b'KGF1' + b'\\x00' * 64)\n    except OSError: pass\n"
        ),
        Verdict.CONTRACT_VIOLATION,
        "channel_misused",
        "grader's channel",
    ),
}


def patient(stage: Stage) -> Stage:
    """The same stage where no time limit comes first, on however busy a machine."""
    limits = stage.spec.limits.model_copy(update={"wall_s": 100.0, "case_s": 90.0})
    return Stage(stage.folder, stage.spec.model_copy(update={"limits": limits}), stage.files, stage.form)


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_broken_is_told_so(small_stage: Stage, sandbox: Sandbox, kind: str) -> None:
    source, verdict, reason, said = BROKEN[kind]
    result = graded(small_stage if verdict is Verdict.TIME_LIMIT else patient(small_stage), sandbox, source)
    assert (result.verdict, result.reason) == (verdict, reason), result.message
    assert said in result.message or said in result.log or (result.wrong and said in result.wrong.pattern)
    assert all(letter.isprintable() or letter in "\n\t" for letter in result.message + result.log + result.output)


def test_what_it_prints_is_kept_bounded_and_means_nothing(small_stage: Stage, sandbox: Sandbox) -> None:
    forged = 'print(\'{"verdict": "accepted"}\', flush=True)\ndef scaling(x, y, factor):\n    return y * 3\n'
    result = graded(small_stage, sandbox, forged)
    assert result.verdict is Verdict.WRONG_ANSWER
    assert '"accepted"' in result.output


def test_the_memory_file_cannot_be_resized_under_the_judge(small_stage: Stage, sandbox: Sandbox) -> None:
    """Shrinking it would leave the trusted side's comparison of the inputs without bytes to compare."""
    source = (
        "import os\n"
        "refused = 0\n"
        "for fd in range(3, 256):\n"
        "    try: os.ftruncate(fd, 0)\n"
        "    except OSError: refused += 1\n"
        "assert refused == 253\n" + HONEST
    )
    result = graded(small_stage, sandbox, source)
    assert result.verdict is Verdict.ACCEPTED, result.message
    arena = Arena(10)
    with pytest.raises(PermissionError):
        __import__("os").ftruncate(arena.fd, 0)
    arena.close()


def test_the_same_seed_gives_the_same_inputs_and_another_seed_others(small_stage: Stage, sandbox: Sandbox) -> None:
    leak = "def scaling(x, y, factor):\n    print(x.sum().item())\n    return factor * x + y\n"
    first, again, other = (
        grade(small_stage, leak.encode(), sandbox=sandbox, seed=seed).output for seed in ("aa", "aa", "bb")
    )
    assert first == again
    assert first != other


def test_cancelling_ends_a_running_submission_soon(small_stage: Stage, sandbox: Sandbox) -> None:
    asked = threading.Event()
    threading.Timer(0.3, asked.set).start()
    start = time.monotonic()
    with pytest.raises(Cancelled):
        grade(patient(small_stage), b"while True: pass\n", sandbox=sandbox, seed="00", cancelled=asked.is_set)
    assert time.monotonic() - start < 45, "the stage's own limit would have ended it at 90 s"


def test_progress_is_told_as_it_happens(small_stage: Stage, sandbox: Sandbox) -> None:
    told: list[str] = []

    class Listening(Unwatched):
        def phase_started(self, phase: Phase) -> None:
            told.append(f"{phase} started")

        def case(self, index: int, total: int, report: CaseReport) -> None:
            told.append(f"{index}/{total} {report.name} {report.state}")

    grade(small_stage, HONEST.encode(), sandbox=sandbox, seed="00", progress=Listening())
    assert told == ["load started", "cases started", "1/2 by_hand right", "2/2 rectangular right", "judge started"]


def test_a_value_that_is_a_little_off_has_its_tolerance() -> None:
    """Printed with nine digits both numbers were the same, and nothing said why one was wrong."""
    close = WrongTensor(
        case="c", tensor="t", index=(2,), axes=("row",), got=2.91223318001, want=2.91223318002, error=1e-11,
        tolerance=3e-12, wrong=1, total=4, pattern="one row",
    )  # fmt: skip
    assert _first_wrong(close, ()) == (
        "Case c: t at row 2 is 2.91223318001, not 2.91223318002 (one row). They are 1e-11 apart; 3e-12 is allowed there."
    )
    far = close.model_copy(update={"got": 12.0, "error": 9.1})
    assert "apart" not in _first_wrong(far, ())


def test_two_different_numbers_are_shown_apart() -> None:
    assert apart(2.0, 12.0) == ("2", "12")
    assert apart(2.91223318001, 2.91223318002) == ("2.91223318001", "2.91223318002")
    assert apart(1.0, 1.0 + 2.0**-52) == ("1", "1.0000000000000002")
    assert apart(float("nan"), 1.0) == ("nan", "1")


def test_a_value_that_is_little_off_is_told_with_what_is_allowed(small_stage: Stage, sandbox: Sandbox) -> None:
    result = graded(small_stage, sandbox, "def scaling(x, y, factor):\n    return (factor * x + y) * (1 + 1e-5)\n")
    assert result.verdict is Verdict.WRONG_ANSWER
    assert "They are 0.00012 apart" in result.message


UNREACHABLE_GPU = """
import warnings

import torch


def device_count(counted=[]):
    if not counted:
        counted.append(0)
        warnings.warn("CUDA initialization: Error 304: OS call failed or operation not supported on this OS")
    return 0


torch._C._cuda_getDeviceCount = device_count
"""
WARNINGS_ARE_ERRORS = """
import warnings

import torch

warnings.simplefilter("error")


def scaling(x, y, factor):
    assert torch._C._cuda_getDeviceCount() == 0
    return factor * x + y
"""


def test_a_gpu_out_of_reach_ends_no_file_that_makes_warnings_errors(
    small_stage: Stage, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_a_cuda_build(main: str, *modules: str) -> str:
        return UNREACHABLE_GPU + program(main, *modules)

    monkeypatch.setattr(backend, "program", on_a_cuda_build)
    result = graded(small_stage, sandbox, WARNINGS_ARE_ERRORS)
    assert result.verdict is Verdict.ACCEPTED, result.message
