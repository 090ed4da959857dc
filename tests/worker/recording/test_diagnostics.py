"""A compile error has its line and column, in the form that pages link."""

from __future__ import annotations

from api.pages.text.faults import faults
from kernelgate.protocol import Result
from kernelgate.stages import Backend
from kernelgate.verdicts import Verdict
from worker.recording.diagnostics import with_columns

SOURCE = "void f() {\n\t  y[i] = wrong + 1;\n}\n"
LOG = (
    'k.cu(2): error: identifier "wrong" is undefined\n      y[i] = wrong + 1;\n             ^\n\n'
    "k.h(2): error: another file\n      y[i] = wrong + 1;\n      ^\n"
    'k.cu(3): error: expected a ";"\n  }\n  ^\n\n'
    "k.cu(3): error: nothing is shown of it\nk.cu(9): error: no such line\n      x\n      ^\n"
)


def test_columns_are_counted_in_the_submitters_line() -> None:
    said = with_columns(LOG, "k.cu", SOURCE).splitlines()
    assert said[0] == 'k.cu:2:11: error: identifier "wrong" is undefined'
    assert SOURCE.splitlines()[1][10:].startswith("wrong")
    assert said[7] == 'k.cu:3:1: error: expected a ";"'
    others = [*range(4, 7), *range(8, len(said))]
    assert [said[at] for at in others] == [LOG.splitlines()[at] for at in others], (
        "what cannot be known stays as it was"
    )


def test_a_page_finds_the_line_in_either_form() -> None:
    result = Result(
        verdict=Verdict.COMPILE_ERROR,
        reason="nvcc_error",
        message="m",
        log=with_columns(LOG, "k.cu", SOURCE),
        stage="s",
        stage_hash="0" * 16,
        backend=Backend.GPU,
        seed="0",
    )
    assert [(it.line, it.message) for it in faults(result, "k.cu")] == [
        (2, 'identifier "wrong" is undefined'),
        (3, 'expected a ";"'),
        (9, "no such line"),
    ]
