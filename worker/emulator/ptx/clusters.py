"""Clusters of blocks: their barrier, and addresses in one another's shared memory (PTX ISA, "barrier.cluster", "mapa")."""

from __future__ import annotations

import re

from .emitter import Emitter
from .spelling import Chosen
from .tree import Instruction

ARRIVE = re.compile(r"barrier\.cluster\.arrive(?P<order>\.release|\.relaxed)?(\.aligned)?")
WAIT = re.compile(r"barrier\.cluster\.wait(\.acquire)?(\.aligned)?")
MAP = re.compile(r"mapa(?P<space>\.shared::cluster)?\.(?P<type>u32|u64)")
RANK = re.compile(r"getctarank(?P<space>\.shared::cluster)?\.(?P<type>u32|u64)")


def arrive(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    emitter.operands(it, 0)
    emitter.waits = emitter.serial = True
    return f"ptx::cluster_arrive({str(match['order'] != '.relaxed').lower()}, {it.line});"


def wait(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del match
    emitter.operands(it, 0)
    emitter.waits = emitter.serial = True
    return f"ptx::cluster_wait({it.line});"


def map_address(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    """An address in this block's shared memory as the same one in another block's."""
    to, place, rank = emitter.operands(it, 3)
    kind = match["type"] or ""
    other = emitter.read(rank, "u32")
    if match["space"]:
        return emitter.assign(
            to, kind, f"ptx::mapped_offset((uint32_t){emitter.read(place, kind)}, {other}, {it.line})"
        )
    return emitter.assign(to, kind, f"ptx::mapped_address({emitter.read(place, kind)}, {other}, {it.line})")


def rank_of(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    to, place = emitter.operands(it, 2)
    value = emitter.read(place, match["type"] or "")
    address = f"ptx::cluster_place((uint32_t){value})" if match["space"] else f"ptx::address({value})"
    return emitter.assign(to, "u32", f"ptx::rank_of({address})")


CLUSTERS = ((ARRIVE, arrive), (WAIT, wait), (MAP, map_address), (RANK, rank_of))
"""Spellings with the functions that write their C++."""
