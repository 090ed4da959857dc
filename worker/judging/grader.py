"""A stage's `grader.py` and `drawn.py`, or its `stage.py`: trusted numpy code, loaded by path, that makes inputs and knows the
right answers.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import numpy as np

from kernelgate import stage_file
from kernelgate.protocol import Table
from kernelgate.reasons import Reason
from kernelgate.seams import AFTER
from kernelgate.stages import Case, Stage, StageError, Tolerance
from worker.judging.arrays import STORED, Array, Float64, RawTensor, stored_as
from worker.judging.failures import Failure
from worker.judging.short_form import ShortForm

Arrays = dict[str, Array]
DRAWN = "Drawn"
"""The group under which drawn cases are reported."""
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="reference")


@dataclass(frozen=True)
class CaseOutcome:
    """One case that ran: what went in, what came out, and what should have (float64, in judged order)."""

    case: Case
    inputs: Arrays
    outputs: Mapping[str, RawTensor]
    expected: Mapping[str, Float64]


class Grader:
    """The functions of one stage, from its files or derived from its stage.py. Errors are ours: `judge_error`."""

    def __init__(self, stage: Stage, own: Mapping[str, Sequence[float]] | None = None) -> None:
        """own: values of inputs that take the place of those made here, in every case."""
        self.stage = stage
        self._own = own or {}
        self._short = ShortForm(stage, stage.form, _load(stage, stage_file.FILE, ())) if stage.form else None
        self._module: Any = self._short or _load(stage, "grader.py", ("inputs", "reference"))
        self._drawing: Any = self._short or (
            _load(stage, "drawn.py", ("drawn",)) if "drawn.py" in stage.files else None
        )
        self._seconds: dict[str, float] = {}
        self._foreseen: dict[str, tuple[Arrays, Future[dict[str, Float64]]]] = {}

    def drawn(self, seed: str) -> tuple[Case, ...]:
        """Further cases of this grading: none can be known before its seed is, and the same seed draws the same ones."""
        made: list[Case] = self._drawing.drawn(self._generator(seed, DRAWN)) if self._drawing else []
        return tuple(
            case.model_copy(update={"name": f"drawn_{number}", "group": DRAWN, "drawn": True})
            for number, case in enumerate(made, 1)
        )

    def timed(self, case: Case, rng: np.random.Generator) -> Case:
        """A measured case with the distribution of one timed call: its `inputs` and tolerance are to be used with it."""
        draw = getattr(self._drawing, "timed", None)
        return cast(Case, draw(case, rng)) if draw else case

    def inputs(self, case: Case, seed: str) -> Arrays:
        """The case's inputs: the same for the same seed and case, whatever ran before."""
        return self.made(case, self._generator(seed, case.name))

    def _generator(self, seed: str, purpose: str) -> np.random.Generator:
        material = hashlib.sha256(f"{seed}/{self.stage.name}/{purpose}".encode()).digest()
        return np.random.default_rng(np.frombuffer(material, dtype=np.uint32))

    def made(self, case: Case, rng: np.random.Generator) -> Arrays:
        """Inputs of a case from a generator of the caller's, e.g. for one timed call."""
        made = self._module.inputs(case, rng)
        arrays = {name: np.ascontiguousarray(array) for name, array in made.items()}
        return {**arrays, **_own_arrays(case, arrays, self.dtypes(case, arrays), self._own)} if self._own else arrays

    def foresee(self, case: Case, inputs: Arrays) -> None:
        """Starts computing the reference of a case on a thread, while a compiler or a GPU is waited for."""
        self._foreseen[case.name] = (inputs, _THREADS.submit(self._compute, case, inputs, None))

    def reference(self, case: Case, inputs: Arrays, mistake: str | None = None) -> dict[str, Float64]:
        """float64 tensors in the order they are judged, of the truth or of a named mistake."""
        known = self._foreseen.get(case.name)
        if mistake is None and known is not None and known[0] is inputs:
            return known[1].result()
        return self._compute(case, inputs, mistake)

    def seconds(self, case: Case) -> float:
        """Processor seconds that the case's truth took; 0 before it was computed."""
        return self._seconds.get(case.name, 0.0)

    def _compute(self, case: Case, inputs: Arrays, mistake: str | None) -> dict[str, Float64]:
        began = time.thread_time()
        with np.errstate(all="ignore"):
            tensors = cast(dict[str, Float64], self._module.reference(case, inputs, mistake))
        if mistake is None:
            self._seconds[case.name] = time.thread_time() - began
        unknown = [name for name in tensors if name not in self.stage.spec.tensors]
        if unknown:
            raise StageError(
                f"stage {self.stage.name}: grader.py returns {unknown}; stage.toml [tensors] does not name them"
            )
        return tensors

    def tolerances(self, case: Case) -> dict[str, Tolerance]:
        """What is allowed of each judged tensor: the case's, the dtype's, or derived from the reference."""
        if self._short and case.tolerance is None:
            return self._short.tolerances(case)
        one = case.tolerance or self.stage.spec.tolerance[case.dtype]
        return dict.fromkeys(self.stage.spec.tensors, one)

    def repeat_tolerance(self, case: Case, output: str) -> Tolerance | None:
        """How far two runs of a case may be apart in an array that the seam writes; None: not by a bit."""
        return self.loosest(case, output) if self.stage.spec.repeatable == "tolerance" else None

    def loosest(self, case: Case, output: str) -> Tolerance:
        """The tolerance of the tensor of this name; of a buffer that is judged under other names, the loosest of all."""
        found = self.tolerances(case)
        return found.get(output) or found.get(output + AFTER) or max(found.values(), key=lambda it: it.absolute)

    def bounds(self, case: Case, inputs: Arrays) -> dict[str, Float64]:
        """What is allowed element by element, of the tensors of which the stage says so."""
        return self._short.bounds(case, inputs) if self._short else {}

    def accepted(self, outcome: CaseOutcome) -> Mapping[str, Float64]:
        """The right answer nearest to what came: the expected one, unless the stage accepts others as well.

        The stage's checker meets hostile values here; one that fails on them accepts none of them.
        """
        if self._short is None or "accept" not in self._short.form.defined:
            return outcome.expected
        got = {name: outcome.outputs[name].numbers() for name in outcome.expected}
        try:
            with np.errstate(all="ignore"):
                return self._short.accept(outcome.case, outcome.inputs, got, outcome.expected)
        except (ValueError, IndexError, KeyError, TypeError, OverflowError, ArithmeticError):
            return outcome.expected

    def check(self, case: Case) -> None:
        """Raises StageError unless what the stage makes of a case is what its seam says."""
        if self._short:
            self._short.check(case)

    def dtypes(self, case: Case, inputs: Arrays) -> dict[str, str]:
        """Of each input: bfloat16 travels as its bits, so an array does not say."""
        return self._short.dtypes(case, inputs) if self._short else dtypes_of(case, inputs)

    def raw(self, case: Case, judged: Arrays) -> dict[str, RawTensor]:
        """Judged arrays as they are compared, each with its dtype."""
        return {
            name: RawTensor(self.stage.dtype(case, name), values.shape, values.tobytes())
            for name, values in judged.items()
        }

    def output_shapes(self, case: Case) -> dict[str, tuple[int, ...]]:
        """CUDA stages: shapes of the buffers that the seam writes, by its parameters' names."""
        return cast(dict[str, tuple[int, ...]], self._module.outputs(case))

    def finish(self, case: Case, inputs: Arrays, written: Arrays) -> Arrays:
        """CUDA stages: the judged tensors from the buffers that the seam wrote."""
        return cast(Arrays, self._module.finish(case, inputs, written))

    def derived(self, case: Case, inputs: Arrays, written: Mapping[str, Array]) -> Arrays:
        """Python stages: judged tensors that are made from what came back, if the stage makes any."""
        make = getattr(self._module, "derived", None)
        return cast(Arrays, make(case, inputs, written)) if make else {}

    def workspace(self, case: Case) -> int:
        """Triton stages: bytes that a call may allocate besides its output."""
        allowed = getattr(self._module, "workspace", None)
        return int(allowed(case)) if allowed else self.stage.spec.limits.workspace_kb * 1024

    def calls(self, case: Case, inputs: Arrays) -> int:
        """PyTorch stages: how often at least a case calls the function through `contract.placed`; 0 where it is not said."""
        count = getattr(self._module, "calls", None)
        return int(count(case, inputs)) if count else 0

    def work(self, case: Case) -> float:
        """Floating-point operations that a case takes at least; 0 where the stage does not say."""
        count = getattr(self._module, "work", None)
        return float(count(case)) if count else 0.0

    def tables(self, outcomes: Sequence[CaseOutcome]) -> tuple[Table, ...]:
        """The stage's exported tables over the cases that ran; none where grader.py has no `experiment`."""
        make = getattr(self._module, "experiment", None)
        return tuple(make({outcome.case.name: outcome for outcome in outcomes})) if make else ()


def _own_arrays(case: Case, made: Arrays, dtypes: Mapping[str, str], own: Mapping[str, Sequence[float]]) -> Arrays:
    """Own values in the form of the inputs they replace. Raises Failure where they do not fit.

    Of floating-point inputs alone: a whole number may be an index, and a reference believes its indices.
    """
    free = [name for name in made if "float" in dtypes[name]]
    fitting = {}
    for name, values in own.items():
        if name not in free:
            what = f"{name!r} takes no values of your own; these inputs do: {', '.join(free) or 'none'}"
            raise Failure(Reason.OWN_INPUTS, f"Case {case.name}: {what}.", case=case.name)
        array = made[name]
        if array.size != len(values):
            what = f"{name} has {array.size} values, of shape {list(array.shape)}; {len(values)} were given"
            raise Failure(Reason.OWN_INPUTS, f"Case {case.name}: {what}.", case=case.name)
        with np.errstate(over="ignore"):
            fitting[name] = stored_as(np.asarray(values, dtype=np.float64), dtypes[name]).reshape(array.shape)
    return fitting


def dtypes_of(case: Case, inputs: Arrays) -> dict[str, str]:
    """What a grader.py made: arrays of the case's dtype, and beside them whole numbers and others by their own."""
    stored = STORED.get(case.dtype)
    return {name: case.dtype if array.dtype == stored else str(array.dtype) for name, array in inputs.items()}


def _load(stage: Stage, file: str, functions: tuple[str, ...]) -> ModuleType:
    """Runs a file of the stage, once a process and version. Raises StageError when it does not load or lacks a function."""
    name = f"kernelgate_stage_{stage.name}_{file.removesuffix('.py')}_{stage.hash}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, stage.folder / file)
    if spec is None or spec.loader is None:
        raise StageError(f"stage {stage.name}: {file} is not loadable")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise StageError(f"stage {stage.name}: {file} does not load: {type(error).__name__}: {error}") from error
    for function in functions:
        if not callable(getattr(module, function, None)):
            raise StageError(f"stage {stage.name}: {file} defines no function {function!r}")
    sys.modules[name] = module
    return module
