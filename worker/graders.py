"""A stage's `grader.py`: trusted numpy code, loaded by path, that makes inputs and knows the right answers."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kernelgate.protocol import Table
from kernelgate.stages import Case, Stage, StageError
from worker.arrays import Float64, RawTensor

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class CaseOutcome:
    """One case that ran: what went in, what came out, and what should have (float64, in judged order)."""

    case: Case
    inputs: Arrays
    outputs: Mapping[str, RawTensor]
    expected: Mapping[str, Float64]


class Grader:
    """The functions of one stage's grader.py. Its errors are ours: they end as `judge_error`."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._module = _load(stage)

    def inputs(self, case: Case, seed: str) -> Arrays:
        """The case's inputs: the same for the same seed and case, whatever ran before."""
        material = hashlib.sha256(f"{seed}/{self.stage.name}/{case.name}".encode()).digest()
        made = self._module.inputs(case, np.random.default_rng(np.frombuffer(material, dtype=np.uint32)))
        return {name: np.ascontiguousarray(array) for name, array in made.items()}

    def reference(self, case: Case, inputs: Arrays, mistake: str | None = None) -> dict[str, Float64]:
        """float64 tensors in the order they are judged, of the truth or of a named mistake."""
        with np.errstate(all="ignore"):
            tensors = cast(dict[str, Float64], self._module.reference(case, inputs, mistake))
        unknown = [name for name in tensors if name not in self.stage.spec.tensors]
        if unknown:
            raise StageError(
                f"stage {self.stage.name}: grader.py returns {unknown}; stage.toml [tensors] does not name them"
            )
        return tensors

    def tables(self, outcomes: Sequence[CaseOutcome]) -> tuple[Table, ...]:
        """The stage's exported tables over the cases that ran; none where grader.py has no `experiment`."""
        make = getattr(self._module, "experiment", None)
        return tuple(make({outcome.case.name: outcome for outcome in outcomes})) if make else ()


def _load(stage: Stage) -> ModuleType:
    name = f"kernelgate_stage_{stage.name}_{stage.hash}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, stage.folder / "grader.py")
    if spec is None or spec.loader is None:
        raise StageError(f"stage {stage.name}: grader.py is not loadable")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise StageError(f"stage {stage.name}: grader.py does not load: {type(error).__name__}: {error}") from error
    for function in ("inputs", "reference"):
        if not callable(getattr(module, function, None)):
            raise StageError(f"stage {stage.name}: grader.py defines no function {function!r}")
    sys.modules[name] = module
    return module
