"""What a stage's own files measure on one model of GPU: the starter, the plain kernels, the solutions.

A gate is one number for every card, and what it asks for differs from card to card. `kernelgate stage calibrate` measures
and stores one file a model, `calibration/<model>.json` of the stage's folder. Grading reads none of it: it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernelgate.stages import Stage, StageError
from kernelgate.verdicts import Verdict

MARGIN = 4 / 3
"""How far above the gate the best solution should be: a submitter's honest kernel is not as good as ours."""


class Calibrated(BaseModel):
    """One shipped file as it was measured: medians over `gradings` fresh gradings, times in milliseconds.

    speedup_low, speedup_high: the lowest and the highest speedup of the gradings.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$", description="The file's stem for a shipped submission, else its role."
    )
    role: Literal["starter", "shipped", "solution"]
    verdict: Verdict
    gradings: int = Field(ge=1)
    baseline_ms: float = Field(gt=0)
    user_ms: float = Field(gt=0)
    speedup: float = Field(gt=0)
    speedup_low: float = Field(gt=0)
    speedup_high: float = Field(gt=0)
    gflop_per_s: float | None = None
    share_of_fp32_peak: float | None = None

    @property
    def passes(self) -> bool:
        return self.verdict.passes


class Calibration(BaseModel):
    """The table of one stage on one model of GPU, slowest row first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gpu: str = Field(min_length=1, max_length=200, description="The model as its driver names it, e.g. NVIDIA H200.")
    driver: str = Field(max_length=200)
    measured_on: date
    stage_hash: str = Field(pattern=r"^[0-9a-f]{16}$", description="The version of the stage that was measured.")
    gate: float | None = None
    rows: tuple[Calibrated, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def names_are_unique(self) -> Self:
        names = [row.name for row in self.rows]
        if len(set(names)) < len(names):
            raise ValueError(f"every row has a name of its own; these are {names}")
        return self

    def row(self, name: str) -> Calibrated | None:
        """The row of that name, or None."""
        return next((row for row in self.rows if row.name == name), None)

    @property
    def best(self) -> Calibrated:
        """The fastest row: the mark to beat on this model."""
        return max(self.rows, key=lambda row: row.speedup)

    def warnings(self) -> Iterator[str]:
        """What is wrong with the gate on this card, in sentences."""
        if self.gate is None:
            return
        if self.best.speedup < MARGIN * self.gate:
            yield (
                f"the best file, {self.best.name}, reaches {self.best.speedup:.2f}x on {self.gpu}; the gate of "
                f"{self.gate:g}x should be cleared by a third, at {MARGIN * self.gate:.2f}x"
            )
        for row in self.rows:
            if row.role == "starter" and row.speedup >= self.gate:
                yield f"the starter reaches {row.speedup:.2f}x on {self.gpu} and passes the gate of {self.gate:g}x"
            if row.role == "solution" and row.speedup < self.gate:
                yield f"the solution reaches {row.speedup:.2f}x on {self.gpu} and misses the gate of {self.gate:g}x"


def ordered(rows: Sequence[Calibrated]) -> tuple[Calibrated, ...]:
    """Rows as a table shows them: slowest first."""
    return tuple(sorted(rows, key=lambda row: row.speedup))


def table_lines(found: Calibration) -> str:
    """The table as text, one row a file."""
    rows = [("FILE", "MS", "SPEEDUP", "LOWEST", "HIGHEST", "VERDICT")]
    for row in found.rows:
        times = f"{row.speedup:.3f}x", f"{row.speedup_low:.3f}x", f"{row.speedup_high:.3f}x"
        rows.append((row.name, f"{row.user_ms:.4f}", *times, str(row.verdict)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join(
        "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def file_name(gpu: str) -> str:
    """Where the calibration of a model lies in a stage's folder: `calibration/nvidia_h200.json` for "NVIDIA H200"."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in gpu.lower()).split()
    return f"calibration/{'_'.join(words) or 'unnamed'}.json"


def calibrations(stage: Stage) -> dict[str, Calibration]:
    """Every calibration that lies with a stage, by GPU model. Raises StageError for a file that cannot be read."""
    names = sorted(name for name in stage.files if name.startswith("calibration/"))
    return {found.gpu: found for found in (_read(stage, name) for name in names)}


def readable(stage: Stage) -> tuple[Calibration, ...]:
    """The calibrations that can be shown; a file that cannot be read is reported by `kernelgate stage verify`."""
    found = []
    for name in sorted(name for name in stage.files if name.startswith("calibration/")):
        with suppress(StageError):
            found.append(_read(stage, name))
    return tuple(found)


def calibration(stage: Stage, gpu: str | None) -> Calibration | None:
    """The calibration of one GPU model, or None where the stage has none. Raises StageError."""
    name = file_name(gpu) if gpu else ""
    return _read(stage, name) if name in stage.files else None


def _read(stage: Stage, name: str) -> Calibration:
    try:
        found = Calibration.model_validate_json(stage.text(name))
    except ValidationError as error:
        detail = error.errors()[0]
        where = ".".join(str(part) for part in detail["loc"]) or "file"
        raise StageError(f"stage {stage.name}: {name}: {where}: {detail['msg']}") from error
    if file_name(found.gpu) != name:
        raise StageError(
            f"stage {stage.name}: {name} is about {found.gpu!r}, which belongs into {file_name(found.gpu)}"
        )
    return found
