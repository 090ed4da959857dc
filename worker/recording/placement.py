"""Where the buffers of a case lie in device memory: addresses drawn before the seam is recorded, so that its pointer
arguments replay verbatim.

Memory is mapped in pages of 2 MiB with nothing mapped on either side. A case runs twice: once with every buffer's end at the
end of its mapping (`END`: one value read or written past it faults) and once with its start at the start (`START`: one before
it does). Addresses are random and not used again, so an answer remembered under a pointer is never asked for again.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum

PAGE = 2 << 20
WORKSPACE = "(workspace)"
"""The name of the buffer that cudaMalloc hands out of: no seam has a parameter of that name, and nobody judges it."""
LOWEST, HIGHEST = 0x6000_0000_0000, 0x6FFF_0000_0000
"""Free of both the host process's own mappings and what the driver takes."""
STRIDE = 1 << 32
"""What is reserved around a buffer. The driver gives a wanted address only to large reservations at such multiples."""


class Edge(StrEnum):
    """The side of a buffer that touches unmapped memory."""

    END = "end"
    START = "start"


@dataclass(frozen=True)
class Buffer:
    """One buffer: the seam's name of it, its device address, its bytes, and the mapping that holds it.

    written: it may be written. in_place: and what it held before is an input, given anew before every call.
    """

    name: str
    address: int
    size: int
    mapping: int
    mapped: int
    written: bool
    in_place: bool = False

    @property
    def given(self) -> bool:
        """Whether a call finds values in it."""
        return self.in_place or not self.written

    @classmethod
    def at(cls, name: str, mapping: int, size: int, edge: Edge, *, written: bool, in_place: bool = False) -> Buffer:
        """The buffer of `size` bytes that a mapping from `mapping` on holds, against one of its edges."""
        mapped = max(1, -(-size // PAGE)) * PAGE
        address = mapping + mapped - size if edge is Edge.END else mapping
        return cls(name, address, size, mapping, mapped, written, in_place)


class Slots:
    """Random starts of mappings, each in a 4 GiB neighbourhood of its own, none twice: what is mapped at the same time."""

    def __init__(self) -> None:
        self._taken: set[int] = set()

    def draw(self, count: int) -> list[int]:
        free = [slot for slot in range(LOWEST // STRIDE, HIGHEST // STRIDE) if slot not in self._taken]
        chosen = secrets.SystemRandom().sample(free, count)
        self._taken.update(chosen)
        return [slot * STRIDE + secrets.randbelow(STRIDE // PAGE // 2) * PAGE + PAGE for slot in chosen]


def place(
    sizes: dict[str, int],
    written: frozenset[str],
    edge: Edge,
    among: Slots | None = None,
    in_place: frozenset[str] = frozenset(),
) -> dict[str, Buffer]:
    """Random places for buffers of `sizes` bytes. among: of what is mapped at the same time, if there is more."""
    starts = (among or Slots()).draw(len(sizes))
    return {
        name: Buffer.at(name, start, size, edge, written=name in written, in_place=name in in_place)
        for (name, size), start in zip(sizes.items(), starts, strict=True)
    }
