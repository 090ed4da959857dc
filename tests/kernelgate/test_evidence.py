"""The evidence block: complete, bounded, and nothing in it that a submitter could use against a terminal."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kernelgate.evidence import CASES_SHOWN, OUTPUT_LINES, TABLES_SHOWN, evidence
from kernelgate.faster import Bound
from kernelgate.protocol import (
    CaseReport,
    Faster,
    NamedMistake,
    Recovered,
    Result,
    Table,
    TensorReport,
    Timing,
    WrongTensor,
)
from kernelgate.stages import Backend
from kernelgate.text import line, plain
from kernelgate.verdicts import Verdict


def result(**changes: Any) -> Result:
    fields: dict[str, Any] = {
        "verdict": Verdict.WRONG_ANSWER, "reason": "wrong_value", "message": "numerator is wrong", "stage": "double",
        "stage_hash": "0123456789abcdef", "backend": Backend.TORCH, "seed": "00",
    }  # fmt: skip
    return Result.model_validate({**fields, **changes})


WRONG = WrongTensor(
    case="tiles", tensor="numerator", index=(3, 7), axes=("row", "dim"), got=math.nan, want=2.5, error=math.nan,
    tolerance=1e-5, wrong=12, total=64, pattern="every row from 3 on",
)  # fmt: skip


def test_a_wrong_answer_shows_the_element_and_the_mistake() -> None:
    text = evidence(
        result(wrong=WRONG, mistake=NamedMistake(name="no_alpha", title="Not rescaled", hint="Multiply by alpha."))
    )
    assert "VERDICT       wrong_answer\n" in text
    assert "ELEMENT       [row 3, dim 7]: got nan, want 2.5\n" in text
    assert "ERROR         nan where 1e-05 is allowed\n" in text
    assert "DAMAGE        12 of 64 elements; every row from 3 on\n" in text
    assert "MISTAKE       no_alpha: Not rescaled\n" in text
    assert "HINT          Multiply by alpha.\n" in text


def test_what_was_found_by_asking_takes_twelve_lines_at_most() -> None:
    drawn = tuple(f"{'@' * n:·<8} | {'@' * (n - 1):·<8}" for n in range(1, 10))
    found = Recovered(
        case="tiles", title="The weights: true | the submission's", said=("Row t sees the keys 0 to t - 1.",) * 4,
        text=drawn, rows=1, columns=1, got="AA==", want="/g==", ms=3.5,
    )  # fmt: skip
    lines = evidence(result(wrong=WRONG, recovered=found)).splitlines()
    first = next(at for at, each in enumerate(lines) if each.startswith("ASKED"))
    assert lines[first] == "ASKED         Row t sees the keys 0 to t - 1."
    assert lines[first + 4] == "              @······· | ········"
    assert len(lines) == first + 12, "three sentences, a title and eight rows"


def test_several_mistakes_that_fit_are_all_shown() -> None:
    both = (NamedMistake(name="a", title="First", hint=""), NamedMistake(name="b", title="Second", hint=""))
    text = evidence(result(wrong=WRONG, possible=both))
    assert "ONE OF        a: First" in text
    assert "ONE OF        b: Second" in text


def test_timing_lines_carry_the_stages_labels() -> None:
    timing = Timing(
        baseline_ms=0.773, user_ms=0.321, speedup=2.408, speedup_low=2.4, speedup_high=2.41, gate=1.8,
        baseline_samples_ms=(), user_samples_ms=(),
    )  # fmt: skip
    text = evidence(result(timing=timing), {"baseline_ms": "ATTN BASELINE MS", "user_ms": "ATTN USER MS"})
    assert "ATTN BASELINE MS  0.7730\n" in text
    assert "ATTN USER MS      0.3210\n" in text
    assert "SPEEDUP           2.408x  (95 %: 2.400 to 2.410)\n" in text
    assert "GATE              1.800x\n" in text


def test_cases_are_counted_and_bounded() -> None:
    tensor = TensorReport(name="y", shape=(3,), dtype="float32", max_abs_error=2e-7, max_rel_error=0, wrong=0, total=3)
    cases = tuple(
        CaseReport(name=f"c{n}", title="", group="T0", state="right" if n else "wrong", ms=1.25, tensors=(tensor,))
        for n in range(CASES_SHOWN + 5)
    )
    text = evidence(result(cases=cases))
    assert f"CASES    {CASES_SHOWN + 4} of {CASES_SHOWN + 5} right\n" in text
    assert "wrong  T0 c0  max error 2e-07  1.2 ms" in text
    assert text.count("max error") == CASES_SHOWN
    assert "5 more\n" in text


HOSTILE = "\x1b[2J\x1b]0;pwned\x07\x00\x9b31m\u202egnp.exe\u2066\r\nVERDICT  accepted\n"


@pytest.mark.parametrize("field", ["message", "output", "log"])
def test_what_a_submitter_says_steers_nothing_and_passes_for_nothing(field: str) -> None:
    text = evidence(result(**{field: HOSTILE * 40}))
    assert not set("\x1b\x07\x00\x9b\r\u202e\u2066") & set(text)
    verdicts = [each for each in text.splitlines() if each.startswith("VERDICT")]
    assert len(verdicts) == 1
    assert "wrong_answer" in verdicts[0]
    assert len(text) < 12_000


def test_printed_lines_are_marked_and_bounded() -> None:
    text = evidence(result(output="\n".join(["x" * 500] * 100)))
    printed = [each for each in text.splitlines() if each.startswith("  | ")]
    assert len(printed) == OUTPUT_LINES + 1
    assert max(map(len, printed)) <= 104
    assert f"{100 - OUTPUT_LINES} more lines" in text


def test_a_stages_tables_stand_in_columns_and_are_bounded() -> None:
    rows = tuple((n, 2.5e-7 * n, "\x1b[31m" + "x" * 90) for n in range(1, 40))
    table = Table(title="Error by block size\nVERDICT accepted", columns=("block", "error", "note"), rows=rows)
    lines = evidence(result(tables=(table,) * 9)).splitlines()
    at = lines.index("TABLE  Error by block size VERDICT accepted")
    assert lines[at + 1].split() == ["block", "error", "note"]
    assert lines[at + 2].split()[:2] == ["1", "2.5e-07"]
    assert lines[at + 2].index("2.5e-07") + 7 == lines[at + 11].index("2.5e-06") + 7
    assert lines[at + 26] == "  … 15 more rows"
    assert sum(each.startswith("TABLE") for each in lines) == TABLES_SHOWN
    assert max(map(len, lines[at : at + 27])) <= 104
    assert "\x1b" not in "".join(lines)


def test_a_next_step_stands_with_its_fact_in_two_lines() -> None:
    faster = Faster(bound=Bound.READ_AGAIN, sentence="Line 3: each block asks\n3 times.", step="Keep the row.")
    lines = evidence(result(faster=faster)).splitlines()
    assert [each.split(maxsplit=1)[1] for each in lines if each.startswith("BOUND")] == [
        "Line 3: each block asks 3 times."
    ]
    assert [each.split(maxsplit=2)[2] for each in lines if each.startswith("NEXT STEP")] == ["Keep the row."]


def test_plain_keeps_lines_and_line_makes_one() -> None:
    assert plain("a\tb\nc") == "a\tb\nc"
    assert line("a\n\tb  c") == "a b c"
    assert plain("x" * 10, 4) == "xxxx…"
    assert plain("half \ud800 pair") == "half \N{REPLACEMENT CHARACTER} pair"


def test_a_small_case_is_written_out_once_for_results_of_earlier_releases_too() -> None:
    stored = result(wrong=WRONG).model_dump(mode="json")
    stored["wrong"]["by_hand"] = ["x = [3, 4]"]
    stored["values"] = {
        "case": "tiles",
        "inputs": [{"name": "x", "dtype": "float32", "shape": [2], "values": [3, 4]}],
        "got": [],
        "want": [],
    }
    lines = evidence(Result.model_validate(stored)).splitlines()
    assert [each.split(maxsplit=1)[1] for each in lines if "3 4" in each or "[3, 4]" in each] == ["x [2] float32: 3 4"]
