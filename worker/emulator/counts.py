"""What a run counted of its accesses (kernels/emulator/runtime/counting.h), put together by the submitter's lines.

It is read strictly: it comes out of a process in which submitted code ran, which can have written it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from worker.emulator import findings
from worker.judging.frames import printable
from worker.judging.traffic import Access

FILE = "accesses"
MOST_PLACES, MOST_BYTES = 2000, 1 << 20
Count = Annotated[int, Field(ge=0, lt=1 << 62)]
Some = Annotated[int, Field(gt=0, lt=1 << 62)]


class Place(BaseModel):
    """One place in the program that accesses one array. distinct: of the array, over all places that read it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    kernel: Annotated[str, StringConstraints(max_length=2000)]
    pc: findings.Address
    array: Annotated[str, StringConstraints(pattern=r"^[\w$:.<>, ]{0,200}$")]
    size: Literal[1, 2, 4, 8, 16]
    shared: bool
    writes: bool
    accesses: Some
    sampled: Count
    lanes: Some
    requests: Some
    taken: Some
    least: Some
    bytes: Count
    distinct: Count


def read(data: bytes) -> list[Place]:
    """Every place; none where a line is no place: what wrote that wrote the rest as well."""
    try:
        return [Place.model_validate(json.loads(line)) for line in data[:MOST_BYTES].splitlines()[:MOST_PLACES]]
    except (ValueError, ValidationError, RecursionError):
        return []


def accesses(places: list[Place], file: str, addr2line: Callable[[list[str]], str]) -> tuple[Access, ...]:
    """By line, array and size. addr2line: is given addresses, and returns what the tool says."""
    asked = list(dict.fromkeys(place.pc for place in places))
    lines = findings.resolve(addr2line(asked), file, asked) if asked else {}
    together: dict[tuple[str, int, str, bool, bool, int], list[Place]] = defaultdict(list)
    for place in places:
        kernel = printable(re.sub(r"\(.*", "", place.kernel), limit=100)
        key = (kernel, lines.get(place.pc, 0), place.array, place.shared, place.writes, place.size)
        together[key].append(place)
    return tuple(Access(*key, **_summed(each)) for key, each in together.items())


class Sums(TypedDict):
    requests: float
    taken: float
    least: float
    bytes: float
    within: float
    distinct: float


def _summed(places: list[Place]) -> Sums:
    """What was looked at, scaled up to all accesses of each place."""
    every = [(place, place.accesses / place.lanes) for place in places]
    return {
        "requests": sum(place.requests * scale for place, scale in every),
        "taken": sum(place.taken * scale for place, scale in every),
        "least": sum(place.least * scale for place, scale in every),
        "bytes": sum(place.bytes * scale for place, scale in every),
        "within": sum(place.bytes * place.sampled / place.lanes for place in places),
        "distinct": max(float(place.distinct) for place in places),
    }
