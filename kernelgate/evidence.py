"""The plain-text form of a grading: what curl, the terminal and the "copy" button of the page show.

Much of it was influenced by the submitter, and it ends up in terminals, logs and mails: every line is bounded, and
characters that steer a terminal or reorder text are shown as `�`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelgate.protocol import CaseReport, CaseValues, KernelResources, Result, Table, Timing, Values, WrongTensor
from kernelgate.text import line, plain

WIDTH = 100
CASES_SHOWN = 60
OUTPUT_LINES = 30
KERNELS_SHOWN = 8
TABLES_SHOWN, ROWS_SHOWN, CELL = 6, 24, 24

LABELS: dict[str, str] = {
    "baseline_ms": "BASELINE MS",
    "user_ms": "USER MS",
    "speedup": "SPEEDUP",
    "gate": "GATE",
    "rate": "GFLOP/S",
    "traffic": "GB/S",
}
"""Labels of the timing lines; a stage's [evidence] table may rename them, e.g. `baseline_ms = "ATTN BASELINE MS"`."""


def evidence(result: Result, labels: Mapping[str, str] | None = None) -> str:
    """The evidence block of a grading, newline-terminated. `labels`: the stage's own, see LABELS."""
    words = _words(labels)
    rows = [
        ("VERDICT", str(result.verdict)),
        ("REASON", result.reason),
        ("MESSAGE", line(result.message, 1000)),
        *(
            [("HELD", f"counts when an administrator has looked at it: {line(result.held, 1000)}")]
            if result.held
            else []
        ),
        ("STAGE", f"{line(result.stage, 63)} @ {line(result.stage_hash, 16)}"),
        ("BACKEND", str(result.backend or "none")),
        *_checked(result),
        *_wrong(result.wrong),
        *_values(result.values),
        *_mistake(result),
        *_recovered(result),
        *_timing(result.timing, words),
        *_kernels(result.resources),
        *_faster(result),
        *_cases(result.cases, passed=result.verdict.passes),
    ]
    tables = [text for table in result.tables[:TABLES_SHOWN] for text in _table(table)]
    return (
        "\n".join([*_aligned(rows), *tables, *_printed("OUTPUT", result.output), *_printed("LOG", result.log)]) + "\n"
    )


def timing_lines(result: Result, labels: Mapping[str, str] | None, more: Sequence[tuple[str, str]] = ()) -> str:
    """The lines of `evidence` about speed and resources alone, and `more` rows of (label, text), newline-terminated."""
    words = _words(labels)
    return "\n".join(_aligned([*_timing(result.timing, words), *more, *_kernels(result.resources)])) + "\n"


def _words(labels: Mapping[str, str] | None) -> dict[str, str]:
    return {**LABELS, **{key: line(value, 40) for key, value in (labels or {}).items()}}


def _aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(label) for label, _ in rows), default=0)
    return [f"{label:<{width}}  {text}" for label, text in rows]


def _checked(result: Result) -> Iterator[tuple[str, str]]:
    if "check pass" in result.machine:
        yield "CHECK PASS", line(result.machine["check pass"], 300)


def _wrong(wrong: WrongTensor | None) -> Iterator[tuple[str, str]]:
    if wrong is None:
        return
    yield "WRONG TENSOR", f"{line(wrong.tensor, 80)} in case {line(wrong.case, 80)}"
    yield "ELEMENT", f"{element(wrong)}: got {number(wrong.got)}, want {number(wrong.want)}"
    yield "ERROR", f"{number(wrong.error)} where {number(wrong.tolerance)} is allowed"
    yield "DAMAGE", f"{wrong.wrong} of {wrong.total} elements; {line(wrong.pattern)}"


def _table(table: Table) -> Iterator[str]:
    """Its title, then columns of one width each: the first to the left, numbers to the right."""
    yield f"TABLE  {line(table.title, WIDTH)}"
    cells = [[line(_cell(each), CELL) for each in row] for row in (table.columns, *table.rows[:ROWS_SHOWN])]
    widths = [max(len(row[at]) for row in cells if at < len(row)) for at in range(max(map(len, cells), default=0))]
    for row in cells:
        texts = [
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield f"  {'  '.join(texts)}".rstrip()
    if len(table.rows) > ROWS_SHOWN:
        yield f"  … {len(table.rows) - ROWS_SHOWN} more rows"


def _cell(value: float | int | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _values(found: CaseValues | None) -> Iterator[tuple[str, str]]:
    """The numbers of one case, where it is small enough to be followed by hand."""
    if found is None:
        return
    for label, arrays in (("INPUT", found.inputs), ("GOT", found.got), ("WANT", found.want)):
        for each in arrays:
            shape = ", ".join(map(str, each.shape))
            text = rows_of(each) or "…"
            yield label, f"{line(each.name, 60)} [{shape}] {line(each.dtype, 20)}: {text}"


def rows_of(array: Values) -> str:
    """An array's values, rows apart by `;`; "" where they were not kept."""
    width = max(array.shape[-1], 1) if array.shape else 1
    texts = [f"{value:.6g}" for value in array.values]
    return "; ".join(" ".join(texts[at : at + width]) for at in range(0, len(texts), width))


def element(wrong: WrongTensor) -> str:
    """Where the first wrong element is, with the names of its axes: `[row 3, dim 7]`."""
    if len(wrong.axes) == len(wrong.index):
        return (
            "["
            + ", ".join(f"{line(axis, 40)} {place}" for axis, place in zip(wrong.axes, wrong.index, strict=True))
            + "]"
        )
    return f"[{', '.join(map(str, wrong.index))}]"


def number(value: float) -> str:
    """Nine significant digits: enough to tell two float32 values apart."""
    return f"{value:.9g}"


def _mistake(result: Result) -> Iterator[tuple[str, str]]:
    if result.mistake is not None:
        yield "MISTAKE", f"{line(result.mistake.name, 63)}: {line(result.mistake.title)}"
        yield "HINT", line(result.mistake.hint, 1000)
    for each in result.possible:
        yield "ONE OF", f"{line(each.name, 63)}: {line(each.title)}"


def _recovered(result: Result) -> Iterator[tuple[str, str]]:
    """At most twelve lines: what was found by asking, and the picture."""
    found = result.recovered
    if found is None:
        return
    for each in found.said[:3]:
        yield "ASKED", line(each, 300)
    if found.text:
        yield "WEIGHTS", line(found.title, 300)
    for each in found.text[:8]:
        yield "", line(each, WIDTH)


def _timing(timing: Timing | None, words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if timing is None:
        return
    yield words["baseline_ms"], f"{timing.baseline_ms:.4f}"
    yield words["user_ms"], f"{timing.user_ms:.4f}"
    yield words["speedup"], f"{timing.speedup:.3f}x  (95 %: {timing.speedup_low:.3f} to {timing.speedup_high:.3f})"
    if timing.gate is not None:
        yield words["gate"], f"{timing.gate:.3f}x"
    rate, share = timing.facts.get("gflop_per_s"), timing.facts.get("share_of_fp32_peak")
    if isinstance(rate, float):
        of_peak = f"  ({share:.1%} of the fp32 peak)" if isinstance(share, float) else ""
        yield words["rate"], f"{rate:.0f}{of_peak}"
    moved, share = timing.facts.get("gb_per_s"), timing.facts.get("share_of_peak_bandwidth")
    if isinstance(moved, float):
        of_peak = f", {share:.1%} of the memory's peak" if isinstance(share, float) else ""
        yield words["traffic"], f"{moved:.1f}  (inputs and outputs moved once{of_peak})"


def _kernels(resources: tuple[KernelResources, ...]) -> Iterator[tuple[str, str]]:
    for each in resources[:KERNELS_SHOWN]:
        occupancy = "" if each.occupancy is None else f", occupancy {each.occupancy:.0%}"
        taken = (
            f"{each.registers} registers, {each.spill_bytes} B spilled, {each.shared_bytes} B static shared{occupancy}"
        )
        yield "KERNEL", f"{line(each.kernel, 60)}: {taken}"
    if len(resources) > KERNELS_SHOWN:
        yield "  …", f"{len(resources) - KERNELS_SHOWN} more"


def _faster(result: Result) -> Iterator[tuple[str, str]]:
    if result.faster is not None:
        yield "BOUND", line(result.faster.sentence, 500)
        yield "NEXT STEP", line(result.faster.step, 1000)


def _cases(cases: tuple[CaseReport, ...], *, passed: bool) -> Iterator[tuple[str, str]]:
    """passed: the cases that did not run are then those that this machine cannot run."""
    if not cases:
        return
    right, left = (sum(case.state == state for case in cases) for state in ("right", "not_run"))
    more = f"; {left} more need a GPU" if passed and left else ""
    yield "CASES", f"{right} of {len(cases) - left if more else len(cases)} right{more}"
    for case in cases[:CASES_SHOWN]:
        worst = max((tensor.max_abs_error for tensor in case.tensors), default=None)
        took = "" if case.ms is None else f"  {case.ms:.1f} ms"
        error = "" if worst is None else f"  max error {worst:.3g}"
        yield f"  {case.state.replace('_', ' ')}", f"{line(case.group, 20)} {line(case.name, 63)}{error}{took}"
    if len(cases) > CASES_SHOWN:
        yield "  …", f"{len(cases) - CASES_SHOWN} more"


def _printed(title: str, text: str) -> Iterator[str]:
    """What the submission or its compiler printed; every line is marked, so that none can pass for evidence."""
    if not text.strip():
        return
    lines = plain(text, 64 * 1024).rstrip("\n").split("\n")
    yield f"{title} (printed, judged by nobody)"
    for each in lines[:OUTPUT_LINES]:
        yield "  | " + each[:WIDTH]
    if len(lines) > OUTPUT_LINES:
        yield f"  | … {len(lines) - OUTPUT_LINES} more lines"
