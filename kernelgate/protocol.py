"""What is stored and shown of a grading: the result and the events on the way to it.

Everything here is data that crossed a process boundary, so every text is bounded and every number may be NaN or infinite.
In JSON such numbers are the strings "NaN", "Infinity" and "-Infinity": Postgres' jsonb and browsers know no others.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from kernelgate.faster import Bound
from kernelgate.stages import Backend, Name
from kernelgate.verdicts import Phase, Verdict

Text = Annotated[str, StringConstraints(max_length=64 * 1024)]
Line = Annotated[str, StringConstraints(max_length=2000)]

MOST_OWN_VALUES = 4096
"""Of a run, over all inputs."""
GRADE_TASK = "kernelgate.grade"
"""The Celery task's name: the API enqueues by it and never imports the worker. Its one argument is a submission id."""
CPU_QUEUE = "cpu"
"""The queue of stages that need no GPU. A GPU model has its own: `gpu_queue`."""
CHANNEL = "kernelgate_events"
"""The Postgres NOTIFY channel; a payload is `<submission id>`, sent when events of that submission were written."""


def gpu_queue(model: str) -> str:
    """The queue of one GPU model, e.g. `gpu-nvidia-h200` for "NVIDIA H200"."""
    return "gpu-" + "-".join("".join(letter if letter.isalnum() else " " for letter in model.lower()).split())


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class TensorReport(Record):
    """How one tensor of one case compared. Errors are absolute and relative maxima over all elements."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    max_abs_error: float
    max_rel_error: float
    wrong: int = Field(description="Elements outside the tolerance.")
    total: int


class CaseReport(Record):
    """One case. `state` is `not_run` when an earlier one ended the grading."""

    name: str
    title: str
    group: str
    state: Literal["right", "wrong", "failed", "not_run"]
    ms: float | None = Field(
        None, description="Milliseconds the submission took, host clock; information, never judged."
    )
    tensors: tuple[TensorReport, ...] = ()


class ErrorMap(Record):
    """Where a tensor is wrong, as a picture: rows × columns of cells, each the worst of `row_step` × `column_step` values.

    cells: base64 of rows*columns bytes; 0 within the tolerance, 1..254 the error on a log scale from one tolerance up to
    10^6 tolerances, 255 NaN, infinite or never written.
    """

    rows: int
    columns: int
    row_axis: str
    column_axis: str
    row_step: int
    column_step: int
    cells: Text


class WrongTensor(Record):
    """The earliest tensor that is wrong, and its first wrong element in row-major order."""

    case: str
    tensor: str
    index: tuple[int, ...]
    axes: tuple[str, ...]
    got: float
    want: float
    error: float = Field(description="|got - want|; NaN when `got` is.")
    tolerance: float = Field(description="What the error may be at this element.")
    wrong: int
    total: int
    pattern: Line = Field(description="The shape of the damage in words, e.g. 'every row from 32 on'.")
    map: ErrorMap | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_twins(cls, stored: Any) -> Any:
        """Results that are stored may say a small case once more in lines of text; `values` has its numbers."""
        return (
            {name: each for name, each in stored.items() if name != "by_hand"} if isinstance(stored, dict) else stored
        )


class NamedMistake(Record):
    """The known mistake whose output the submission's equals."""

    name: str
    title: Line
    hint: Text


class Recovered(Record):
    """The weights that a wrong submission gives its inputs, found by asking it, and how they differ from the true ones.

    text: a picture in characters, rows down and keys across, true and recovered side by side. got, want: base64 of rows*columns
    bytes, the root of a weight's share of its row's largest true one in 254 steps; 255: none.
    """

    case: str
    title: Line
    said: tuple[Line, ...]
    text: tuple[Line, ...]
    rows: int
    columns: int
    got: Text
    want: Text
    ms: float = Field(description="What asking took; it is no part of what was judged.")


def _few(inputs: dict[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
    if sum(map(len, inputs.values())) > MOST_OWN_VALUES:
        raise ValueError(f"at most {MOST_OWN_VALUES} values in all")
    return inputs


def _flat(values: object) -> object:
    """Lists in lists as one list, so that rows may be written as rows."""
    if not isinstance(values, list):
        return values
    flat: list[object] = []
    open_lists = [iter(values)]
    while open_lists:
        for each in open_lists[-1]:
            if isinstance(each, list):
                open_lists.append(iter(each))
                break
            flat.append(each)
        else:
            open_lists.pop()
    return flat


OwnInputs = Annotated[
    dict[Name, Annotated[tuple[float, ...], BeforeValidator(_flat)]], Field(max_length=16), AfterValidator(_few)
]


class Trial(Record):
    """What a run asks for: one case, and values for some of its inputs in the place of those that the grader makes."""

    case: Name = Field(description="The case that is run.")
    inputs: OwnInputs = Field(
        default_factory=dict,
        description="Own values by the input's name, row by row, as many as the input has; floating-point inputs only.",
    )


class Values(Record):
    """An array in whole, row by row; `values` is empty where it has more than a page can show."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: tuple[float, ...]


class CaseValues(Record):
    """The numbers of one case: what went in, what came out, and what should have."""

    case: str
    inputs: tuple[Values, ...]
    got: tuple[Values, ...] = ()
    want: tuple[Values, ...] = ()


class Timing(Record):
    """Milliseconds and the speedup `baseline_ms / user_ms` with its 95 % interval; every raw sample is kept."""

    baseline_ms: float
    user_ms: float
    speedup: float
    speedup_low: float
    speedup_high: float
    gate: float | None
    baseline_samples_ms: tuple[float, ...]
    user_samples_ms: tuple[float, ...]
    facts: dict[str, float | str] = Field(
        default_factory=dict,
        description="Clocks, temperature, operations and bytes of one call, what of them in a second, the card's peaks; "
        "docs/measuring.md names each.",
    )


class KernelResources(Record):
    """What the compiler says one kernel takes."""

    kernel: Line
    registers: int
    spill_bytes: int
    shared_bytes: int
    occupancy: float | None = None


class Faster(Record):
    """What bounds a right submission, by facts that were measured or counted, and the one next step."""

    bound: Bound
    sentence: Line
    step: Text
    lines: tuple[int, ...] = Field((), description="Of the submitted file, where the sentence is about some.")


class Table(Record):
    """A result table that a stage exports, e.g. the errors of an experiment over block sizes."""

    title: Line
    columns: tuple[Line, ...]
    rows: tuple[tuple[float | int | str, ...], ...]


class Result(Record):
    """One grading, whole. Stored as JSON, served as it is; `evidence.evidence(result)` is its plain-text form."""

    verdict: Verdict
    reason: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = Field(description="Why, as a word for machines.")
    message: Text = Field(description="Why, in a sentence that says what happened, the value and what to do next.")
    stage: str
    stage_hash: str
    backend: Backend | None = Field(None, description="What graded it; null where no backend ever saw it.")
    seed: str = Field(description="Hex seed of the inputs; stored so that a grading can be repeated.")
    phases: dict[Phase, float] = Field(default_factory=dict, description="Milliseconds spent in each phase.")
    cases: tuple[CaseReport, ...] = ()
    wrong: WrongTensor | None = None
    values: CaseValues | None = Field(
        None, description="The numbers of the first case that is not right, or of the case that was run."
    )
    mistake: NamedMistake | None = None
    possible: tuple[NamedMistake, ...] = Field(
        (),
        description="Where several known mistakes explain the outputs equally well: all of them; `mistake` is null then.",
    )
    recovered: Recovered | None = None
    timing: Timing | None = None
    resources: tuple[KernelResources, ...] = ()
    faster: Faster | None = Field(
        None, description="Of a right submission: what bounds it, and the next step; null where no fact speaks."
    )
    tables: tuple[Table, ...] = ()
    output: Text = Field("", description="What the submission printed, bounded; never evidence of anything.")
    log: Text = Field("", description="Compiler or interpreter messages, bounded.")
    held: Line = Field(
        "",
        description="Why the result counts nowhere until an administrator has looked at it, in a sentence for the submitter; "
        "empty: it counts.",
    )
    machine: dict[str, str] = Field(
        default_factory=dict, description="GPU, driver, CPU, package versions; `check pass`: what was checked beside."
    )

    def stored(self) -> dict[str, Any]:
        """The result as Postgres' jsonb takes it: numbers that JSON lacks are strings, and no text holds a NUL.

        `model_dump(mode="json")` would leave NaN a float, which jsonb refuses.
        """
        body: dict[str, Any] = json.loads(self.model_dump_json().replace("\\u0000", "\\ufffd"))
        return body

    @property
    def speed_judged(self) -> bool:
        return self.timing is not None


class EventKind(StrEnum):
    """What an event says. Its data: see each."""

    STATE = "state"
    """`{"state": …, "attempt": n}`: queued, running, done, cancelled; `note` says why when it went back to queued."""
    PHASE = "phase"
    """`{"phase": …, "state": "started" | "ended", "ms": …}`."""
    CASE = "case"
    """`{"index": i, "total": n, "name": …, "state": "right" | "wrong" | "failed", "ms": …}`; `i` counts from 0."""
    MEASURE = "measure"
    """`{"pairs": n, "speedup": …, "low": …, "high": …}` while a measurement converges."""
    RESULT = "result"
    """`{"verdict": …, "reason": …, "message": …}`; the last event of a graded submission."""


class Event(Record):
    """One line of a submission's history; `id` grows and is what `Last-Event-ID` names."""

    id: int
    kind: EventKind
    at: str
    data: dict[str, Any]
