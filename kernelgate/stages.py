"""A stage as data: what `graders/NAME/stage.toml` says, checked, and the hash that every result of it names.

A stage is a folder. This module reads the part of it that is data; the stage's `grader.py` is code and is loaded only by
the worker. Unknown keys and unknown files are errors: a misspelt `gate` must not silently mean "no gate".
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from kernelgate import add_ons
from kernelgate.families import Number, filled
from kernelgate.faster import Bound
from kernelgate.languages import LANGUAGES
from kernelgate.reasons import Reason
from kernelgate.stage_file import FORM, StageFile
from kernelgate.verdicts import Phase, Verdict

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$", description="Lower-case letters, digits and `_`.")]


class StageError(Exception):
    """A stage folder that cannot be used; the text names the folder, the key or file, its value and what is accepted."""


_ON_THE_CPU = frozenset({Phase.COMPILE, Phase.LOAD, Phase.CASES, Phase.JUDGE})


class Backend(StrEnum):
    """Ways to grade a stage; the worker picks the first of the stage's list that its host has.

    how: what a result says of values that were not computed as a GPU would, or "". phases: what a grading goes through.
    """

    how: str
    phases: frozenset[Phase]

    def __new__(cls, word: str, how: str = "", phases: frozenset[Phase] = frozenset()) -> Self:
        member = str.__new__(cls, word)
        member._value_ = word
        member.how = how
        member.phases = phases
        return member

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        """A backend of an installed package: stages and results name it, so every process takes its word for one."""
        if not isinstance(value, str) or (about := add_ons.backends().get(value)) is None:
            return None
        member = str.__new__(cls, value)
        member._name_, member._value_ = value.upper(), value
        member.how, member.phases = about.how, about.phases
        cls._value2member_map_[value] = member
        return member

    TORCH = "torch", "", frozenset({Phase.LOAD, Phase.CASES, Phase.JUDGE})
    """The submission is Python that runs as it is, on the CPU, in the sandbox."""
    GPU = "gpu", "", frozenset(Phase) - {Phase.LOAD}
    """Recorded without a GPU, replayed and measured on one."""
    EMULATOR = "emulator", "emulated", _ON_THE_CPU
    """CUDA C++ executed on the CPU: values are judged, speed is not."""
    INTERPRETER = "interpreter", "interpreted", _ON_THE_CPU
    """Triton's IR interpreted on the CPU: values are judged, speed is not."""


class Ranking(StrEnum):
    """What a leaderboard sorts by."""

    FIRST_ACCEPTED = "first_accepted"
    SPEEDUP = "speedup"


class Measured(StrEnum):
    """What counts of several measured cases."""

    MEAN = "mean"
    WORST = "worst"


class Visibility(StrEnum):
    """Who may read the sources that others submitted to a stage."""

    OWNER = "owner"
    SOLVERS = "solvers"
    EVERYONE = "everyone"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Seam(Strict):
    """The function a submission defines: `name`, its `signature` as a submitter reads it, and what each part means."""

    name: str
    signature: str
    contract: dict[str, str] = Field(
        default_factory=dict, description="Rows of the contract table: what → how it must be."
    )
    others: dict[str, str] = Field(
        default_factory=dict, description="Further functions that the file defines: name → signature."
    )


class Limits(Strict):
    """What one submission may use: seconds of wall clock, MiB of memory and scratch, KiB of output and source.

    On a GPU also: KiB of workspace it may allocate there, of `__device__` and `__constant__` variables, and of the stack
    frames of all threads that are resident at once.
    """

    wall_s: float = Field(60.0, gt=0)
    case_s: float = Field(10.0, gt=0)
    memory_mb: int = Field(1024, gt=0)
    scratch_mb: int = Field(64, gt=0)
    output_kb: int = Field(64, gt=0)
    source_kb: int = Field(256, gt=0)
    processes: int = Field(64, gt=0)
    workspace_kb: int = Field(0, ge=0)
    static_kb: int = Field(64, ge=0)
    frames_kb: int = Field(65_536, ge=0)


class Tolerance(Strict):
    """A value is right when `|got - want| <= absolute + relative * |want|`; `why` says where the numbers come from.

    share: of the values that must be right; the others may be off by `cap` times as much.
    """

    absolute: float = Field(ge=0)
    relative: float = Field(ge=0)
    why: str = ""
    share: float = Field(1.0, gt=0, le=1)
    cap: float = Field(1.0, ge=1)


class Tensor(Strict):
    """A judged result. `axes` name its dimensions, for "row 3, dim 7" instead of "(3, 7)"; dtype, where not the case's."""

    axes: tuple[str, ...] = ()
    title: str = ""
    dtype: str = ""


Params = dict[str, int | float | bool | str | list[int] | list[float] | list[str]]


class Case(Strict):
    """One run of the submission.

    params: what the seam and `driver.py` need; of a case, this and the dtype alone enter a sandbox.
    data: how `grader.py` makes the inputs: distribution, magnitudes, sizes that the inputs' shapes show anyway.
    measured: its speed counts. needs_gpu: left out where there is none. drawn: made by `drawn.py` for one grading.
    seam: the name of the seam that it calls, where a stage has several. refused: it makes the calls that have to be refused.
    """

    name: Name
    title: str
    group: str
    dtype: str = "float32"
    params: Params = Field(default_factory=dict)
    data: Params = Field(default_factory=dict)
    measured: bool = False
    needs_gpu: bool = False
    refused: bool = False
    drawn: bool = False
    seam: str = ""
    tolerance: Tolerance | None = None

    @property
    def given(self) -> Params:
        """What a sandbox is told of the case beside its dtype: the params, which of several seams, or that it is refused."""
        told: Params = {"seam": self.seam} if self.seam else {}
        return {**self.params, **told, **({"refused": True} if self.refused else {})}


def _reason(word: object) -> Reason:
    """A reason by its word: pydantic's own message would list all of them."""
    try:
        return Reason(str(word))
    except ValueError:
        raise ValueError("no such reason; docs/grading.md lists them") from None


def _violation(reason: Reason) -> Reason:
    if Verdict.CONTRACT_VIOLATION not in reason.verdicts:
        raise ValueError("not a reason of contract_violation; docs/grading.md lists them")
    return reason


StatedReason = Annotated[Reason, BeforeValidator(_reason)]


class Mistake(Strict):
    """A wrong variant of the reference with a name: when a wrong output equals it, the answer says `title` and `hint`.

    A family of variants has parameters: `among` has the values that are tried, and `form` is the title with their names in
    braces, of which an answer fills in those that fit.
    """

    name: Name
    title: str
    hint: str
    form: str = ""
    among: dict[str, tuple[Number, ...]] = Field(default_factory=dict)
    violation: Annotated[StatedReason, AfterValidator(_violation)] | None = Field(
        None, description="The contract violation's reason that already tells this mistake."
    )

    @property
    def members(self) -> dict[str, dict[str, Number]]:
        """Every variant of the family: the values of its parameters by a name of its own; of one variant, its name alone."""
        if not self.among:
            return {self.name: {}}
        given = [dict(zip(self.among, values, strict=True)) for values in product(*self.among.values())]
        return {f"{self.name}({', '.join(f'{key}={value}' for key, value in each.items())})": each for each in given}

    def said_of(self, members: Collection[str]) -> str:
        """The title for these members: each parameter's values, joined by "or"."""
        chosen = [values for name, values in self.members.items() if name in members]
        return filled(self.form, chosen) if chosen and self.form else self.title


class Gate(Strict):
    """The speedup over the baseline that `accepted` takes on a machine that can measure it."""

    speedup: float = Field(gt=0)


RaceVerdict = Literal[Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR]
"""What a submission gets whose threads race, with the reason `race`, whatever its values are."""


Repeatable = Literal["bits", "tolerance"]
"""How closely two runs on one input have to agree: bit for bit, or within the case's tolerance, as sums by atomics do."""


class DoneWhen(Strict):
    """A line of the "done when" list; with `answer`, the page lets the student type a value and checks it."""

    text: str
    answer: str | None = None


SUFFIXES = "|".join(sorted({each.suffix.removeprefix(".") for each in LANGUAGES.values()}))


PROBE = r"linear in (?P<name>\w+)(\[:, (?P<first>\d+):(?P<last>\d+)\])?( by (?P<width>\d+))?"
"""An input, which of its columns, and how many of them belong together where several groups lie side by side."""


class Spec(Strict):
    """What `stage.toml` holds, or `stage.py` says.

    draft: students do not see it. pulled: it is the public part of a server's stage.
    short: it was read from a stage.py, which derives the tolerances that are not stated.
    """

    title: str
    summary: str
    path: str
    order: int
    needs: tuple[str, ...] = Field(
        (),
        description="What a reader comes from: stages by their folders' names, anything else in words. Advice, no lock.",
    )
    hours: str = Field(
        "", pattern=r"^(\d{1,3}( to \d{1,3})?)?$", description="A newcomer's hours, roughly: `2`, `8 to 12`."
    )
    language: str
    file: str = Field(pattern=rf"^[a-z][a-z0-9_]*\.({SUFFIXES})$", description="The name of the submitted file.")
    backends: tuple[Backend, ...] = Field(min_length=1)
    ranking: Ranking = Ranking.FIRST_ACCEPTED
    sources: Visibility = Visibility.OWNER
    several: bool = Field(
        False, description="Whether a submission may have further files beside `file`; limits hold in sum."
    )
    gate: Gate | None = None
    measured: Measured = Field(
        Measured.MEAN, description="What counts of several measured cases: their geometric mean, or the worst."
    )
    draft: bool = False
    pulled: bool = False
    short: bool = False
    races: RaceVerdict = Verdict.WRONG_ANSWER
    repeatable: Repeatable = "bits"
    probe: str = Field(
        "",
        pattern=rf"^({PROBE})?$",
        description="What the outputs are linear in, `linear in v` or `linear in qkv[:, 640:768] by 64`: a wrong submission is "
        "asked for its weights there.",
    )
    seam: Seam
    limits: Limits = Limits()
    tolerance: dict[str, Tolerance]
    tensors: dict[str, Tensor]
    cases: tuple[Case, ...] = Field(min_length=1)
    mistakes: tuple[Mistake, ...] = ()
    done_when: tuple[DoneWhen, ...] = ()
    calibrated: tuple[str, ...] = Field(
        (), description="Files under submissions/ that a calibration measures beside starter and solution."
    )
    evidence: dict[str, str] = Field(
        default_factory=dict, description="Labels of the evidence block, where not the default."
    )
    faster: dict[Bound, str] = Field(
        default_factory=dict,
        description="The next step of a right submission, by what bounds it, where not the default.",
    )

    @property
    def suffix(self) -> str:
        """Of the submitted file."""
        return LANGUAGES[self.language].suffix

    @field_validator("language")
    @classmethod
    def language_is_known(cls, name: str) -> str:
        if name not in LANGUAGES:
            raise ValueError(f"no such language; known: {', '.join(LANGUAGES)}")
        return name

    @field_validator("cases", "mistakes")
    @classmethod
    def names_are_unique(cls, items: tuple[Any, ...]) -> tuple[Any, ...]:
        seen: set[str] = set()
        for item in items:
            if item.name in seen:
                raise ValueError(f"{item.name!r} stands twice; every name stands once")
            seen.add(item.name)
        return items

    @model_validator(mode="after")
    def parts_agree(self) -> Self:
        for case in self.cases:
            if case.drawn:
                raise ValueError(
                    f"case {case.name!r} says drawn = true; drawn cases are made by drawn.py, see docs/stage-reference.md"
                )
            if case.tolerance is None and case.dtype not in self.tolerance and not self.short:
                raise ValueError(
                    f"case {case.name!r} has dtype {case.dtype!r}; [tolerance] has only {sorted(self.tolerance)}"
                )
        if not self.file.endswith(self.suffix):
            raise ValueError(f"a file of {self.language} ends in {self.suffix}, not as {self.file!r} does")
        if self.gate and self.ranking is not Ranking.SPEEDUP:
            raise ValueError("a stage with a [gate] ranks by 'speedup'")
        return self


class Expectation(Strict):
    """What a shipped file must be answered with; `message` is a part of the message."""

    verdict: Verdict
    reason: StatedReason | None = None
    mistake: str | None = None
    message: str | None = None


class Example(Expectation):
    """A file under `submissions/<verdict>/`, with the verdict its folder promises and, where stated, the reason.

    emulator: what it must get where CUDA C++ is emulated, when that differs from what a GPU shows.
    """

    path: Path
    emulator: Expectation | None = None


class Stage:
    """A stage folder that was read and checked. `name` is the folder's; `hash` covers every byte that grading reads."""

    def __init__(self, folder: Path, spec: Spec, files: Mapping[str, bytes], form: StageFile | None = None) -> None:
        self.folder = folder
        self.name = folder.name
        self.spec = spec
        self.files = files
        self.form = form
        """What its stage.py says beside the spec; None of a stage that has a stage.toml."""

    @cached_property
    def hash(self) -> str:
        """16 hex digits over the names and bytes of all that grading reads: not the lesson, what is shipped, calibrations."""
        digest = hashlib.sha256(FORM if self.form else b"")
        for name in sorted(self.files):
            if name != "lesson.md" and not name.startswith(("submissions/", "calibration/")):
                body = self.files[name]
                digest.update(f"{name}\0{len(body)}\0".encode() + body)
        return digest.hexdigest()[:16]

    def text(self, name: str) -> str:
        """A file of the folder, e.g. `lesson.md`. Raises StageError when the stage has no such file."""
        if name not in self.files:
            raise StageError(f"stage {self.name}: no file {name!r}; it has {sorted(self.files)}")
        return self.files[name].decode()

    @property
    def starter(self) -> str:
        return self.text(f"starter/{self.spec.file}")

    @property
    def provided(self) -> dict[str, str]:
        """Files that a submission may import and a submitter may download: name → text."""
        return {name.removeprefix("provided/"): self.text(name) for name in self.files if name.startswith("provided/")}

    def short(self) -> Stage:
        """The same stage without the listed cases that are measured; it keeps at least one."""
        cases = tuple(case for case in self.spec.cases if not case.measured)
        spec = self.spec.model_copy(update={"cases": cases or self.spec.cases[:1]})
        return Stage(self.folder, spec, self.files, self.form)

    @property
    def runnable(self) -> tuple[Case, ...]:
        """The listed cases that may be run alone: those that every machine runs soon."""
        return tuple(case for case in self.spec.cases if not (case.measured or case.needs_gpu)) or self.spec.cases[:1]

    def dtype(self, case: Case, tensor: str) -> str:
        """What a judged tensor has to be in a case."""
        return self.spec.tensors[tensor].dtype or case.dtype

    def mistake(self, name: str) -> Mistake:
        """By its name, or by that of a member of its family."""
        return next(mistake for mistake in self.spec.mistakes if mistake.name == name.partition("(")[0])

    def _expectations(self) -> dict[str, Any]:
        name = "submissions/expected.toml"
        edits = (
            {f"{edit.verdict}/{edit.name}{self.spec.suffix}": edit.expected for edit in self.form.edits}
            if self.form
            else {}
        )
        if name not in self.files:
            return edits
        try:
            return edits | tomllib.loads(self.text(name))
        except tomllib.TOMLDecodeError as error:
            raise StageError(f"stage {self.name}: {name} is not TOML: {error}") from error

    def examples(self) -> Iterator[Example]:
        """Every shipped submission with the verdict it must get, in the order of the verdicts."""
        expected = self._expectations()
        for verdict in Verdict:
            for name in sorted(self.files):
                if name.startswith(f"submissions/{verdict}/"):
                    short = name.removeprefix("submissions/")
                    yield _example(self, verdict, short, expected)


def _example(stage: Stage, verdict: Verdict, short: str, expected: Mapping[str, Any]) -> Example:
    stated = _expectation(stage.name, short, expected)
    try:
        return Example(path=stage.folder / "submissions" / short, verdict=verdict, **stated)
    except ValidationError as error:
        raise StageError(f"stage {stage.name}: submissions/expected.toml [{short!r}] {first_error(error)}") from error


def _expectation(stage: str, short: str, expected: Mapping[str, Any]) -> dict[str, Any]:
    stated = expected.get(short, {})
    unknown = set(stated) - {"reason", "mistake", "message", "emulator"}
    if unknown:
        raise StageError(
            f"stage {stage}: submissions/expected.toml [{short!r}] has {sorted(unknown)}; known: reason, mistake, message, "
            "emulator"
        )
    if "emulator" not in stated:
        return dict(stated)
    try:
        elsewhere = Expectation.model_validate({"verdict": short.split("/")[0], **stated["emulator"]})
    except (ValidationError, TypeError) as error:
        what = first_error(error) if isinstance(error, ValidationError) else "it is no table"
        raise StageError(f"stage {stage}: submissions/expected.toml [{short!r}] emulator: {what}") from error
    return {**stated, "emulator": elsewhere}


def first_error(error: ValidationError) -> str:
    detail = error.errors()[0]
    where = ".".join(str(part) for part in detail["loc"]) or "file"
    return f"{where}: {detail['msg']} (value: {str(detail.get('input'))[:80]!r})"
