"""How a submission's warps used memory in one case, as a player of its tape counted it.

A player runs beside submitted code, which can have written other numbers: they explain, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelgate.protocol import Table

ROWS = 12
SECTORS_A_PASS = 4
"""Sectors of 32 bytes that a multiprocessor takes in the time of a pass over shared memory's banks."""


@dataclass(frozen=True)
class Access:
    """What one line of a kernel asks of one array. line: 0 where it is not known. size: bytes a lane.

    requests: one for each time that a warp runs it. taken, least: sectors of 32 bytes of global memory, or passes over the
    banks of shared memory, that all of them took, and that they would take at best. bytes: different ones, by request, in sum.
    within, distinct: of some blocks, the bytes that they read in sum, and how many different ones these were.
    """

    kernel: str
    line: int
    array: str
    shared: bool
    writes: bool
    size: int
    requests: float
    taken: float
    least: float
    bytes: float = 0.0
    within: float = 0.0
    distinct: float = 0.0

    @property
    def cost(self) -> float:
        """In passes over shared memory."""
        return self.taken if self.shared else self.taken / SECTORS_A_PASS

    @property
    def waste(self) -> float:
        """What of the cost another order of the lanes would save."""
        return (self.taken - self.least) * self.cost / self.taken if self.taken else 0.0

    @property
    def verb(self) -> str:
        return "writes" if self.writes else "reads"

    @property
    def what(self) -> str:
        return f"{'write' if self.writes else 'read'} {self.array or 'shared memory'}"


@dataclass(frozen=True)
class Traffic:
    """Of one case, as it may be called. arrays: bytes of each input and output."""

    case: str
    accesses: tuple[Access, ...]
    arrays: Mapping[str, int]


def table(traffic: Traffic) -> Table:
    """The places that ask for most, the costliest first. No number tells a size: the case may be a hidden one."""
    total = sum(access.cost for access in traffic.accesses) or 1.0
    rows = sorted(traffic.accesses, key=lambda access: -access.cost)[:ROWS]
    return Table(
        title=f"Memory as the warps use it, in {traffic.case}: sectors or passes a request",
        columns=("access", "line", "bytes a lane", "share, %", "taken", "at best", "kernel"),
        rows=tuple(
            (
                f"{access.what}{' (shared)' if access.shared and access.array else ''}",
                access.line or "not known",
                access.size,
                round(100 * access.cost / total),
                round(access.taken / access.requests, 1),
                round(access.least / access.requests, 1),
                access.kernel,
            )
            for access in rows
        ),
    )
