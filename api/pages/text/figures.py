"""Figures that a lesson asks for by name: a table that reads by itself, and data for the script that makes it move.

A lesson writes a fenced block `figure online_softmax` whose text is JSON:
`{"presets": [{"title": "…", "scores": [0, 1.0986], "values": [2, 6], "tile": 1}]}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import NamedTuple

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field, ValidationError


class Preset(BaseModel):
    """One query row: its scores against every key, each key's value, and how many keys a tile holds."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    title: str = Field(max_length=120)
    scores: list[float] = Field(min_length=1, max_length=32)
    values: list[float] = Field(min_length=1, max_length=32)
    tile: int = Field(ge=1, le=32)


class Presets(BaseModel):
    model_config = ConfigDict(extra="forbid")

    presets: list[Preset] = Field(min_length=1, max_length=8)


class Step(NamedTuple):
    """The state (m, ℓ, u) after a tile, and the factor alpha that brought the old state to the new maximum."""

    scores: list[float]
    alpha: float
    row_max: float
    normalizer: float
    numerator: float


def trace(scores: list[float], values: list[float], tile: int) -> Iterator[Step]:
    """Online softmax of one query row with scalar values, tile by tile; float64, as the recurrence is written."""
    row_max, normalizer, numerator = -math.inf, 0.0, 0.0
    for start in range(0, len(scores), tile):
        block = scores[start : start + tile]
        new_max = max(row_max, *block)
        alpha = math.exp(row_max - new_max)
        weights = [math.exp(score - new_max) for score in block]
        normalizer = alpha * normalizer + sum(weights)
        numerator = alpha * numerator + sum(w * v for w, v in zip(weights, values[start:], strict=False))
        row_max = new_max
        yield Step(block, alpha, row_max, normalizer, numerator)


def figure(name: str, body: str) -> Markup:
    """The HTML of a named figure; a name or JSON that cannot be drawn is said in its place."""
    if name != "online_softmax":
        return Markup('<p class="formula-error">Unknown figure “{}”; known: online_softmax</p>').format(name[:80])
    try:
        presets = Presets.model_validate(json.loads(body)).presets
    except (ValidationError, json.JSONDecodeError) as error:
        return Markup('<p class="formula-error">Figure online_softmax: {}</p>').format(str(error)[:300])
    data = json.dumps([preset.model_dump() for preset in presets])
    return Markup('<figure class="trace" data-figure="online_softmax" data-presets="{}">{}</figure>').format(
        data, Markup().join(_table(preset) for preset in presets)
    )


def _table(preset: Preset) -> Markup:
    rows = Markup()
    last = None
    for number, step in enumerate(trace(preset.scores, preset.values, preset.tile), 1):
        cells = (step.alpha, step.row_max, step.normalizer, step.numerator)
        rows += Markup("<tr><th scope='row'>{}</th><td>{}</td>{}</tr>").format(
            number,
            ", ".join(f"{score:.4g}" for score in step.scores),
            Markup().join(Markup("<td class='number'>{}</td>").format(f"{cell:.4f}") for cell in cells),
        )
        last = step
    end = (
        f"output {last.numerator / last.normalizer:.4f}, log-sum-exp {last.row_max + math.log(last.normalizer):.4f}"
        if last
        else ""
    )
    return Markup(
        '<table class="table"><caption>{}: {}</caption><thead><tr><th scope="col">tile</th><th scope="col">scores</th>'
        '<th scope="col" class="number">α</th><th scope="col" class="number">m</th><th scope="col" class="number">ℓ</th>'
        '<th scope="col" class="number">u</th></tr></thead><tbody>{}</tbody></table>'
    ).format(preset.title, end, rows)
