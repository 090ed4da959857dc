"""What a stage says of itself, held against itself before anything is graded: its grader against its seam, in words.

A float64 array for `const float*` would be judged as garbage, and the solution be blamed for it.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import numpy as np

from kernelgate.stages import Case, Stage, StageError
from worker.judging.arrays import STORED
from worker.judging.grader import Arrays, Grader
from worker.recording.seam import DTYPES, Kind, Parameter, seam_of

SEED = "a9ee" * 8
FEW = 3
"""Cases of each kind that are looked at: an author waits for this, and what fits three fits the others."""


def disagreements(stage: Stage) -> Iterator[str]:
    """Sentences on what does not fit: of the names that are stated, then of each case, the first that has any."""
    yield from _unknown_mistakes(stage)
    try:
        grader = Grader(stage)
        few = [case for case in (*stage.short().spec.cases[:FEW], *grader.drawn(SEED)[:FEW]) if not case.needs_gpu]
        for number, case in enumerate(few):
            if found := list(_of_case(grader, case, with_mistakes=number == 0)):
                yield from found
                return
    except (Exception, SystemExit) as error:  # an author's code may raise anything
        yield told(stage, error)


def _unknown_mistakes(stage: Stage) -> Iterator[str]:
    known = [mistake.name for mistake in stage.spec.mistakes]
    for example in stage.examples():
        if example.mistake is not None and example.mistake not in known:
            yield f"{example.path.name} must show the mistake {example.mistake!r}; the stage has {', '.join(known) or 'none'}"


def _of_case(grader: Grader, case: Case, *, with_mistakes: bool) -> Iterator[str]:
    grader.check(case)
    inputs = grader.inputs(case, SEED)
    misfits = list(_of_seam(grader, case, inputs)) if grader.stage.spec.language == "cuda" else []
    if misfits:
        yield from misfits
        return
    expected = grader.reference(case, inputs)
    for mistake in grader.stage.spec.mistakes if with_mistakes else ():
        if mistake.violation is None and set(made := grader.reference(case, inputs, mistake.name)) != set(expected):
            yield f"case {case.name}: mistake {mistake.name} gives {sorted(made)}; the truth has {sorted(expected)}"


def _of_seam(grader: Grader, case: Case, inputs: Arrays) -> Iterator[str]:
    shapes = grader.output_shapes(case)
    parts = seam_of(grader.stage, case)
    for part in parts:
        match part.kind:
            case Kind.INPUT | Kind.INOUT:
                yield from _of_input(case, part, inputs)
            case Kind.OUTPUT if part.name not in shapes:
                yield f"case {case.name}: outputs has no {part.name!r}, which the seam writes; it has {sorted(shapes)}"
            case Kind.INT | Kind.FLOAT if part.name not in case.params:
                yield f"case {case.name}: params has no {part.name!r}, which the seam takes; it has {sorted(case.params)}"
    written = {part.name for part in parts if part.kind is Kind.OUTPUT}
    for name in sorted(shapes.keys() - written):
        yield f"case {case.name}: outputs has {name!r}; the seam writes {', '.join(sorted(written))}"


def _of_input(case: Case, part: Parameter, inputs: Arrays) -> Iterator[str]:
    array = inputs.get(part.name)
    wanted = STORED[DTYPES[part.type]]
    if array is None:
        yield f"case {case.name}: inputs has no {part.name!r}, which the seam reads; it has {sorted(inputs)}"
    elif array.dtype != wanted:
        how = " (their bits)" if part.type == "__nv_bfloat16" else ""
        yield f"case {case.name}: inputs gives {part.name} as {array.dtype}; the seam takes {part.type}*: {wanted}{how}"
    elif not np.size(array):
        yield f"case {case.name}: inputs gives {part.name} the shape {list(array.shape)}, which holds nothing"


def told(stage: Stage, error: BaseException) -> str:
    """An exception of a stage's own code in one sentence: file, line, and what was raised."""
    if isinstance(error, StageError):
        return str(error)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(stage.folder))]
    where = f"{own[-1].filename.removeprefix(f'{stage.folder}/')} line {own[-1].lineno}: " if own else ""
    return f"{where}{type(error).__name__}: {str(error)[:300]}"
