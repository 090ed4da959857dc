"""A Triton stage as one that torch computes on the CPU: what its baseline.py is graded by where there is no card."""

from __future__ import annotations

from dataclasses import replace

from kernelgate.seams import CHANGED
from kernelgate.stages import Backend, Stage, StageError
from worker.grade import new_seed
from worker.judging.grader import Grader

NAME = "baseline.py"


def in_torch(stage: Stage) -> Stage:
    """The same seam, inputs and truths in the short cases that make one call. Raises StageError where there is none."""
    if stage.form is None:
        raise StageError(f"stage {stage.name}: a {NAME} is graded by a stage.py")
    short, seed = stage.short(), new_seed()
    grader = Grader(short)
    cases = tuple(
        case
        for case in short.spec.cases
        if not (case.refused or case.needs_gpu or any(name.endswith(CHANGED) for name in grader.inputs(case, seed)))
    )
    if not cases:
        raise StageError(f"stage {stage.name}: no case is left that {NAME} could be graded by")
    spec = short.spec.model_copy(update={"language": "pytorch", "backends": (Backend.TORCH,), "cases": cases})
    form = replace(stage.form, lines=(), changed="", derived=(), refused=())
    return Stage(stage.folder, spec, stage.files, form)
