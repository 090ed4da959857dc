"""A stage.py as a grader: inputs, reference, drawn cases and tolerances from what the file says, in numpy float64."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

import numpy as np

from kernelgate import python_text
from kernelgate.case_lines import HIDDEN, CaseLine, Choice, Range, is_drawn
from kernelgate.drawing import sizes
from kernelgate.inputs import Distribution, Mixture, integers, named, normal, written
from kernelgate.seams import CHANGED, OF_THE_CASE, Argument, SeamLine, value_of
from kernelgate.stage_file import StageFile
from kernelgate.stage_spec import case_of
from kernelgate.stages import Case, Stage, StageError, Tolerance
from worker.judging import tolerances
from worker.judging.arrays import Array, Float64, numbers_of, stored_as
from worker.judging.tolerances import InSequence, Spread

Arrays = dict[str, Array]
Function = Callable[..., Any]
"""One of the stage's own: what it takes and returns is looked at where it is called."""
MOST_EXACT = 2.0**53
ENOUGH = 64
"""Of a size that nothing is summed over, so many show what a tolerance has to be."""
MOST_KEPT = 4096
_ALLOWED: dict[tuple[str, str], dict[str, Tolerance]] = {}
"""By version and case, for the process: every grading asks for the same ones, and drawn cases add to them."""
LARGE = 1 << 20
"""A case of so many values is drawn once for its tolerance."""


class ShortForm:
    """What a grader.py and a drawn.py would define, made from a stage.py. Errors are StageErrors: ours, or the author's."""

    def __init__(self, stage: Stage, form: StageFile, module: ModuleType) -> None:
        self.stage = stage
        self.form = form
        self.module = module
        self.experiment = getattr(module, "experiment", None)

    # --- inputs -------------------------------------------------------------------------------------------------------

    def seam(self, case: Case) -> SeamLine:
        return self.form.seams[case.seam]

    def inputs(self, case: Case, rng: np.random.Generator) -> Arrays:
        """Every array that is given, as numpy stores its dtype, and those that only the reference sees."""
        together = self._together(case, rng)
        made = {}
        for each in self.seam(case).arrays:
            if each.name not in together:
                made[each.name] = self._made(each, case, rng)
                continue
            made[each.name] = self._fitting(each, case, together.pop(each.name))
            if each.name == self.form.changed and each.name + CHANGED in together:
                made[each.name + CHANGED] = self._fitting(each, case, together.pop(each.name + CHANGED))
        if together and self.stage.spec.language != "cuda":
            names = ", ".join(each.name for each in self.seam(case).arrays)
            raise StageError(
                f"stage {self.stage.name}: stage.py: case {case.name}: {', '.join(together)} is no input; the seam has {names}"
            )
        return made | {name: np.asarray(array) for name, array in together.items()}

    def _together(self, case: Case, rng: np.random.Generator) -> dict[str, Any]:
        """What the stage's function makes of all inputs at once; nothing where it has none."""
        own = getattr(self.module, f"inputs_{case.seam}", None) or getattr(self.module, "inputs", None)
        stated = all(each.name in case.data for each in self.seam(case).arrays)
        return dict(self._call(own, case, {"rng": rng})) if callable(own) and not stated else {}

    def _fitting(self, each: Argument, case: Case, values: Any) -> Array:
        array, shape = np.asarray(values), each.shape(case.params)
        if array.shape != shape:
            raise StageError(
                f"stage {self.stage.name}: stage.py: case {case.name}: {each.name} has shape {list(array.shape)}; "
                f"the seam has [{', '.join(each.dims)}], here {list(shape)}"
            )
        self._check_exact(case, each.name, array, _dtype(each, case))
        return stored_as(array, _dtype(each, case))

    def _check_exact(self, case: Case, name: str, values: Array, dtype: str) -> None:
        """Raises StageError for whole numbers that float64, in which all is compared, does not tell from their neighbours."""
        if dtype in ("int64", "uint64") and values.size and float(np.abs(values.astype(float)).max()) >= MOST_EXACT:
            raise StageError(
                f"stage {self.stage.name}: stage.py: case {case.name}: {name} holds {np.abs(values.astype(float)).max():g}; "
                "whole numbers of 64 bits are accepted below 2^53, where all are told apart"
            )

    def _made(self, each: Argument, case: Case, rng: np.random.Generator) -> Array:
        shape, dtype = each.shape(case.params), _dtype(each, case)
        stated = case.data.get(each.name)
        if isinstance(stated, str) and stated.startswith("["):
            values = np.array(python_text.literal(stated))
        elif isinstance(stated, int | float):
            values = np.full(shape, stated)
        else:
            values = self._distribution(each, dtype, str(stated or ""))(rng, shape, case.params)
        return self._fitting(each, case, values)

    def _distribution(self, each: Argument, dtype: str, text: str) -> Distribution:
        """The part of the array's mixture that has this text, any other by its name, or the first."""
        parts = self._parts(each, dtype)
        for part in parts:
            if text in ("", part.text):
                return part
        try:
            return written(text)
        except ValueError as error:
            names = ", ".join(part.text for part in parts)
            raise StageError(
                f"stage {self.stage.name}: stage.py: {each.name}={error}, or of its own: {names}"
            ) from None

    def _parts(self, each: Argument, dtype: str) -> tuple[Distribution, ...]:
        stated = getattr(self.module, "inputs", {})
        made = None if callable(stated) else stated.get(each.name)
        if made is None:
            kind = np.dtype(dtype.replace("bfloat16", "float32")).kind
            return (normal() if kind == "f" else integers(0, 1) if kind == "b" else integers(0, 100),)
        return made.parts if isinstance(made, Mixture) else (named(made),)

    def dtypes(self, case: Case, inputs: Mapping[str, Array]) -> dict[str, str]:
        """Of each input; what only the reference sees has numpy's own."""
        stated = {each.name: _dtype(each, case) for each in self.seam(case).arrays}
        return {name: stated.get(name.removesuffix(CHANGED), str(array.dtype)) for name, array in inputs.items()}

    # --- the right answers --------------------------------------------------------------------------------------------

    def reference(self, case: Case, inputs: Mapping[str, Array], mistake: str | None = None) -> dict[str, Float64]:
        """The judged tensors in float64, of the truth or of a named mistake; one of another seam's changes nothing here."""
        tensors = {} if case.refused else self._judged(case, self._numbers(case, inputs), mistake)
        for name, values in tensors.items() if mistake is None else ():
            self._check_exact(case, name, values, self.stage.dtype(case, name))
        return tensors

    def _judged(self, case: Case, arrays: Mapping[str, Any], mistake: str | None = None) -> dict[str, Any]:
        """What comes back, on changed inputs once more, and what is made of these."""
        tensors = self._answers(case, arrays, mistake)
        if self.form.changed + CHANGED in arrays:
            other = {**arrays, self.form.changed: arrays[self.form.changed + CHANGED]}
            tensors |= {name + CHANGED: value for name, value in self._answers(case, other, mistake).items()}
        return {**tensors, **self._derived(case, arrays, tensors)}

    def _answers(self, case: Case, arrays: Mapping[str, Any], mistake: str | None) -> dict[str, Any]:
        made = None
        if mistake is not None:
            about = self.stage.mistake(mistake)
            tried = about.members.get(mistake) or next(iter(about.members.values()))
            what, given = self.module.mistakes[about.name][0], {**arrays, **tried}
            if isinstance(what, Mapping):
                made = self._call(self._reference(case), case, {**given, **what})
            elif set(_asked(self._mistake(about.name))) <= {*self._values(case), *given}:
                made = self._call(self._mistake(about.name), case, given)
        if made is None or (case.seam and _count(made) != len(self.seam(case).judged)):
            made = self._call(self._reference(case), case, arrays)
        return self._results(case, made)

    def _derived(self, case: Case, arrays: Mapping[str, Any], tensors: Mapping[str, Any]) -> dict[str, Any]:
        """The tensors that are made of others, in the cases that have all that they are made of."""
        known, found = {**self._values(case), **arrays, **tensors}, {}
        for each in self.form.derived:
            function = getattr(self.module, each.name)
            if set(_asked(function)) <= known.keys():
                found[each.name] = np.asarray(self._call(function, case, {**arrays, **tensors}))
        return found

    def _values(self, case: Case) -> dict[str, Any]:
        """What functions may ask for by name beside arrays."""
        return {**case.params, **case.data, "dtype": case.dtype, "seam": case.seam}

    def derived(self, case: Case, inputs: Arrays, written: Mapping[str, Array]) -> Arrays:
        """The judged tensors that are made of what came back, as they are stored."""
        if not self.form.derived:
            return {}
        back = {name: numbers_of(array, self.stage.dtype(case, name)) for name, array in written.items()}
        with np.errstate(all="ignore"):
            made = self._derived(case, self._numbers(case, inputs), back)
        return {name: stored_as(np.asarray(values), self.stage.dtype(case, name)) for name, values in made.items()}

    def _numbers(self, case: Case, inputs: Mapping[str, Array]) -> dict[str, Float64]:
        return {name: numbers_of(inputs[name], dtype) for name, dtype in self.dtypes(case, inputs).items()}

    def _reference(self, case: Case) -> Function:
        name = f"reference_{case.seam}" if case.seam else "reference"
        return cast(Function, getattr(self.module, name))

    def _mistake(self, name: str) -> Function:
        function = self.module.mistakes[name][0]
        if not callable(function):
            raise StageError(f"stage {self.stage.name}: stage.py: mistake {name!r} has no function")
        return cast(Function, function)

    def _call(self, function: Function, case: Case, arrays: Mapping[str, Any]) -> Any:
        """Calls with the arrays, numbers and sizes that the function asks for by name; copies, so that it may write."""
        known = {**self._values(case), **arrays}
        rest = arrays if function.__code__.co_flags & inspect.CO_VARKEYWORDS else ()
        return function(**{name: _copied(known[name]) for name in (*_asked(function), *rest) if name in known})

    def _results(self, case: Case, made: Any) -> dict[str, Float64]:
        judged = self.seam(case).judged
        parts = made if isinstance(made, tuple) else (made,)
        if len(parts) != len(judged):
            raise StageError(
                f"stage {self.stage.name}: stage.py: the reference returns {len(parts)} arrays; the seam has "
                f"{len(judged)}: {', '.join(each.judged for each in judged)}"
            )
        return {
            each.judged: part if isinstance(part, InSequence) else np.asarray(part, np.float64)
            for each, part in zip(judged, parts, strict=True)
        }

    def check(self, case: Case) -> None:
        """Raises StageError unless the reference gives what the seam says, in one sentence."""
        tensors = self.reference(case, self.inputs(case, np.random.default_rng(0)))
        for each in () if case.refused else self.seam(case).judged:
            shape, found = each.shape(case.params), tensors[each.judged].shape
            if found != shape:
                raise StageError(
                    f"stage {self.stage.name}: stage.py: case {case.name}: the reference gives {each.judged} the shape "
                    f"{list(found)}; the seam has [{', '.join(each.dims)}], here {list(shape)}"
                )

    def accept(
        self, case: Case, inputs: Mapping[str, Array], got: Mapping[str, Float64], want: Mapping[str, Float64]
    ) -> dict[str, Float64]:
        """The right answer nearest to what came, of a stage that defines `accept`; it may fail on hostile values."""
        arrays = self._numbers(case, inputs)
        order = [each.judged for each in self.seam(case).judged]
        pair = [tuple(values[name].copy() for name in order) for values in (got, want)]
        one = [values[0] if len(order) == 1 else values for values in pair]
        made = self._call(self.module.accept, case, {**arrays, "got": one[0], "want": one[1]})
        return self._results(case, made)

    # --- what CUDA's seam writes --------------------------------------------------------------------------------------

    def outputs(self, case: Case) -> dict[str, tuple[int, ...]]:
        return {each.name: each.shape(case.params) for each in self.seam(case).results}

    def finish(self, case: Case, inputs: Arrays, written_: Arrays) -> Arrays:
        judged = {each.judged: written_[each.name] for each in self.seam(case).judged}
        return {**judged, **self.derived(case, inputs, judged)}

    def work(self, case: Case) -> float:
        return value_of(self.form.work, case.params)

    def calls(self, case: Case, inputs: Arrays) -> int:
        """How often the submission's function is called at least in a stage that has ways of calling it; else not counted."""
        own = getattr(self.module, "calls", None)
        stated = int(self._call(own, case, inputs)) if own and case.seam in self.form.ways else 1
        return stated if self.form.ways else 0

    def workspace(self, case: Case) -> int:
        own = getattr(self.module, "workspace", None)
        return int(self._call(own, case, {})) if own else self.stage.spec.limits.workspace_kb * 1024

    # --- cases that are drawn -----------------------------------------------------------------------------------------

    def drawn(self, rng: np.random.Generator) -> list[Case]:
        """The lines with ranges, choices or the mark `hidden`, each as often as it says."""
        made = []
        for line in self.form.lines:
            if line.drawn:
                dtypes = _dealt(rng, tuple(line.dtype.split("|")), line.times)
                drawn = zip(self._drawn_values(line, rng), dtypes, strict=True)
                made += [self._drawn(replace(line, dtype=str(dtype)), values, rng) for values, dtype in drawn]
        return made

    def _drawn_values(self, line: CaseLine, rng: np.random.Generator) -> list[dict[str, object]]:
        """`times` sets of the line's values; a range between numbers covers every kind of size."""
        found: list[dict[str, object]] = [{} for _ in range(line.times)]
        waiting = {}
        for name, value in line.values.items():
            match value:
                case Range(low=int() as low, high=int() as high):
                    drawn: list[Any] = (
                        sizes(rng, line.times, low, high)
                        if low >= 1
                        else list(rng.integers(low, high, line.times, endpoint=True))
                    )
                case Range():
                    waiting[name] = value
                    continue
                case Choice(among=among):
                    drawn = _dealt(rng, among, line.times)
                case list() if is_drawn(value):
                    drawn = [[_one(rng, each) for each in value] for _ in range(line.times)]
                case _:
                    drawn = [value] * line.times
            for values, one in zip(found, drawn, strict=True):
                values[name] = int(one) if isinstance(one, np.integer) else one
        for name, value in waiting.items():
            for values in found:
                values[name] = _between(rng, value, values)
        return found

    def _drawn(self, line: CaseLine, values: dict[str, object], rng: np.random.Generator) -> Case:
        ordered = {name: values[name] for name in line.values}
        case = Case.model_validate(case_of(line, self.form.seams[line.seam], ordered))
        case = self._mixed(case, rng)
        title = HIDDEN if "hidden" in line.marks else case.title
        return case.model_copy(update={"title": title, "measured": False})

    def _mixed(self, case: Case, rng: np.random.Generator) -> Case:
        """The case with one part of each array's mixture, where it names none."""
        data, title = dict(case.data), case.title
        for each in self.seam(case).arrays:
            parts = self._parts(each, _dtype(each, case))
            if each.name not in data and len(parts) > 1:
                data[each.name] = str(parts[int(rng.integers(len(parts)))].text)
                title += f", {each.name} = {data[each.name]}"
        return case.model_copy(update={"data": data, "title": title})

    def timed(self, case: Case, rng: np.random.Generator) -> Case:
        """The case with what one of the lines `timed` draws, and one part of each mixture."""
        if self.form.timed:
            line = self.form.timed[int(rng.integers(len(self.form.timed)))]
            (values,) = self._drawn_values(replace(line, times=1), rng)
            case = case.model_copy(update={"data": {**case.data, **values}})
        return self._mixed(case, rng)

    # --- tolerances ---------------------------------------------------------------------------------------------------

    def tolerances(self, case: Case) -> dict[str, Tolerance]:
        """Of each judged tensor: the stage's own, or derived, the same for the same sizes and distributions."""
        key = repr((case.seam, case.dtype, sorted(case.params.items()), sorted(case.data.items())))
        known = _ALLOWED.get((self.stage.hash, key))
        if known is None:
            stated = self._stated(case)
            missing = [name for name in self._names(case) if name not in stated]
            found = {**stated, **self._derived_tolerances(case, key, missing)}
            known = {name: self._with_share(name, found[name]) for name in self._names(case)}
            if len(_ALLOWED) >= MOST_KEPT:
                _ALLOWED.clear()
            _ALLOWED[self.stage.hash, key] = known
        return known

    def _names(self, case: Case) -> list[str]:
        """Every tensor that the case may have judged, in its order."""
        own = [each.judged for each in self.seam(case).judged]
        changed = [name + CHANGED for name in own] if self.form.changed else []
        return [*own, *changed, *(each.name for each in self.form.derived)]

    def _stated(self, case: Case) -> dict[str, Tolerance]:
        """What the stage says: by tensor, or by a function of the case, of all tensors or by name."""
        own = getattr(self.module, "tolerance", {})
        made = self._call(own, case, {}) if callable(own) else own
        by_name = made if isinstance(made, Mapping) else dict.fromkeys(self._names(case), made)
        return {
            name: Tolerance(absolute=float(it[0]), relative=float(it[1]), why=str(it[2]))
            for name, it in by_name.items()
            if not callable(it[0])
        }

    def _with_share(self, tensor: str, tolerance: Tolerance) -> Tolerance:
        share = getattr(self.module, "share", {}).get(tensor)
        return tolerance.model_copy(update={"share": share[0], "cap": share[1]}) if share else tolerance

    def bounds(self, case: Case, inputs: Mapping[str, Array]) -> dict[str, Float64]:
        """What is allowed element by element, of the tensors that the stage gives a function for."""
        stated = getattr(self.module, "tolerance", {})
        stated = {} if callable(stated) else stated
        functions = {tensor: each[0] for tensor, each in stated.items() if callable(each[0])}
        arrays = self._numbers(case, inputs) if functions else {}
        return {tensor: np.asarray(self._call(each, case, arrays), np.float64) for tensor, each in functions.items()}

    def _derived_tolerances(self, case: Case, key: str, names: list[str]) -> dict[str, Tolerance]:
        small, spread = self._smaller(case), {name: Spread(self.stage.dtype(case, name)) for name in names}
        if any(each.dtype in tolerances.UNIT for each in spread.values()):
            large = sum(int(np.prod(each.shape(small.params))) for each in self.seam(small).arrays) > LARGE
            for number in range(1 if large else tolerances.MOST_DRAWS):
                if number >= 2 and min(each.count for each in spread.values()) >= tolerances.ENOUGH_VALUES:
                    break
                seed = hashlib.sha256(f"{self.stage.name}/{key}/{number}".encode()).digest()
                self._see(small, self.inputs(small, np.random.default_rng(np.frombuffer(seed, np.uint32))), spread)
        return {name: each.allowed() for name, each in spread.items()}

    def _smaller(self, case: Case) -> Case:
        """With fewer of what nothing is summed over; as it is where arrays are written out."""
        if any(str(value).startswith("[") for value in case.data.values()):
            return case
        least = {
            name: min(int(str(case.params[name])), ENOUGH) for name in self.form.independent if name in case.params
        }
        return case.model_copy(update={"params": {**case.params, **least}})

    def _see(self, case: Case, inputs: Arrays, spread: Mapping[str, Spread]) -> None:
        """Adds one draw of the inputs: the reference in 32 bits beside float64.

        What 64 bits are off by cannot be seen beside float64; it is what 32 bits are off by, as much smaller as their unit is.
        """
        want = self.reference(case, inputs)
        made = self._in_sequence(case, inputs)
        finer = tolerances.UNIT["float64"] / tolerances.UNIT["float32"]
        for name in spread.keys() & want.keys():
            got = np.asarray(made[name])
            if spread[name].dtype == "float64":
                got = want[name] + (got.astype(float) - want[name]) * finer
            spread[name].add(got, want[name])

    def _in_sequence(self, case: Case, inputs: Arrays) -> dict[str, Any]:
        """The judged tensors with every array of floats in 32 bits, and its sums term after term."""
        arrays = {}
        for name, dtype in self.dtypes(case, inputs).items():
            values = numbers_of(inputs[name], dtype)
            arrays[name] = values.astype(np.float32).view(InSequence) if dtype in tolerances.UNIT else values
        with np.errstate(all="ignore"):
            return self._judged(case, arrays)


def _dtype(each: Argument, case: Case) -> str:
    return case.dtype if each.dtype == OF_THE_CASE else each.dtype


def _asked(function: Function) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _dealt(rng: np.random.Generator, among: Sequence[Any], times: int) -> list[Any]:
    """Each of some about as often as the others, in a drawn order."""
    rounds = [rng.permutation(len(among)) for _ in range(-(-times // len(among)))]
    return [among[int(at)] for at in np.concatenate(rounds)[:times]]


def _one(rng: np.random.Generator, value: Any) -> Any:
    match value:
        case Range():
            return _between(rng, value, {})
        case Choice(among=among):
            return among[int(rng.integers(len(among)))]
    return value


def _count(made: object) -> int:
    return len(made) if isinstance(made, tuple) else 1


def _copied(value: object) -> object:
    return value.copy() if isinstance(value, np.ndarray) else value


def _between(rng: np.random.Generator, value: Range, known: Mapping[str, object]) -> int | float:
    """A number of a range with an end that is another size, or of real numbers: those by their logarithm."""
    low, high = (value_of(str(end), known) for end in (value.low, value.high))
    if isinstance(value.low, float) or isinstance(value.high, float):
        return float(np.exp(rng.uniform(np.log(low), np.log(high)))) if low > 0 else float(rng.uniform(low, high))
    return int(rng.integers(int(low), max(int(low), int(high)), endpoint=True))
