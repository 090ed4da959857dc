"""What can bound a kernel, and what then is to be done, where a stage has no words of its own for it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Bound(StrEnum):
    """A reason why a right kernel is slow, or fast enough."""

    UNCOALESCED = "uncoalesced"
    BANK_CONFLICTS = "bank_conflicts"
    READ_AGAIN = "read_again"
    READ_BY_EVERY_BLOCK = "read_by_every_block"
    SPILLS = "spills"
    OCCUPANCY = "occupancy"
    BANDWIDTH = "bandwidth"
    ARITHMETIC = "arithmetic"


STEPS: Mapping[Bound, str] = {
    Bound.UNCOALESCED: (
        "Let neighbouring lanes take neighbouring elements: the index that changes from lane to lane belongs to the axis that "
        "is contiguous in memory. Where the work needs another order, load a tile so and turn it round in shared memory."
    ),
    Bound.BANK_CONFLICTS: (
        "Let the 32 lanes of a warp meet 32 different banks: a row of shared memory that is one element longer (a pitch of 33 "
        "instead of 32) moves each row's start to another bank."
    ),
    Bound.READ_AGAIN: (
        "Keep what a block has read, in shared memory or in registers, and use it there for everything that needs it."
    ),
    Bound.READ_BY_EVERY_BLOCK: (
        "Let a block compute more of what it reads for: several rows or a larger tile of results, so that each value that is "
        "loaded serves all of them."
    ),
    Bound.SPILLS: (
        "Hold fewer values in a thread at a time: smaller tiles, less unrolling, or a larger bound of registers by "
        "__launch_bounds__."
    ),
    Bound.OCCUPANCY: (
        "Let more warps be resident: fewer registers a thread or less shared memory a block, or more independent work in each "
        "thread, so that the few warps wait less."
    ),
    Bound.BANDWIDTH: "Only fewer bytes would make it faster: no order of the accesses will.",
    Bound.ARITHMETIC: "Only fewer operations, or others, would make it faster: the pipe is busy.",
}
