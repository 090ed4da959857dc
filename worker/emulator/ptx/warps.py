"""Warp instructions, barriers and fences (PTX ISA, "Parallel Synchronization and Communication")."""

from __future__ import annotations

import re

from .emitter import Emitter
from .memory import Handler
from .spelling import Chosen, Pattern, Words
from .tree import Instruction, Operand, Pair

SHUFFLE = Words("shfl", sync="sync", how="up down bfly idx", type="b32")
VOTE = Words("vote", sync="sync", how="any all uni ballot", type="pred b32")
MATCH = Words("match", sync="sync", how="any all", type="b32 b64")
REDUCE = Words("redux", sync="sync", how="add min max and or xor", type="u32 s32 b32")
WARP_SYNC = re.compile(r"bar\.warp\.sync")
ACTIVE = re.compile(r"activemask\.b32")
ELECT = re.compile(r"elect\.sync")
BARRIER = re.compile(r"bar(?P<loose>rier)?(\.cta)?\.sync(?P<aligned>\.aligned)?")
ARRIVE = re.compile(r"bar(rier)?(\.cta)?\.arrive(\.aligned)?")
BARRIER_VOTE = re.compile(
    r"bar(?P<loose>rier)?(\.cta)?\.red\.(?P<how>popc|and|or)(?P<aligned>\.aligned)?\.(?P<type>u32|pred)"
)
FENCE = re.compile(
    r"membar\.(cta|gl|sys)|fence(\.sc|\.acq_rel|\.acquire|\.release)?\.(cta|cluster|gpu|sys)"
    r"|fence\.mbarrier_init\.release\.cluster|fence\.proxy\.(alias|async(\.(global|shared::cta|shared::cluster))?)"
)
SLEEP = re.compile(r"nanosleep\.u32")
HINT = re.compile(r"griddepcontrol\.(wait|launch_dependents)|setmaxnreg\.(inc|dec)\.sync\.aligned\.u32|pmevent")
_SIGNED = {"min": "MinSigned", "max": "MaxSigned"}


def _two(operand: Operand) -> tuple[Operand, Operand | None]:
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)


def shuffle(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    to, value, by, segment, mask = emitter.operands(it, 5)
    result, there = _two(to)
    arguments = ", ".join(
        emitter.read(item, kind) for item, kind in ((value, "b32"), (by, "b32"), (segment, "b32"), (mask, "b32"))
    )
    how = (match["how"] or "").capitalize()
    text = f"const uint32_t got = ptx::shuffled<ptx::Shuffle::{how}>({arguments}, there, {it.line}); "
    text += emitter.assign(result, "b32", "got")
    if there is not None:
        text += " " + emitter.assign(there, "pred", "there")
    return f"{{ bool there; {text} }}"


def vote(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    to, value, mask = emitter.operands(it, 3)
    where, asked = emitter.read(mask, "b32"), emitter.read(value, "pred")
    if (match["how"] == "ballot") != (match["type"] == "b32"):
        raise emitter.unknown()
    if match["how"] == "ballot":
        return emitter.assign(
            to, "b32", f"(uint32_t)::emulator::vote({where}, ::emulator::Vote::Ballot, {asked}, {it.line})"
        )
    if match["how"] == "uni":
        return emitter.assign(to, "pred", f"ptx::uniform({where}, {asked}, {it.line})")
    kind = (match["how"] or "").capitalize()
    return emitter.assign(to, "pred", f"::emulator::vote({where}, ::emulator::Vote::{kind}, {asked}, {it.line}) != 0")


def matching(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    to, value, mask = emitter.operands(it, 3)
    where, asked = emitter.read(mask, "b32"), emitter.read(value, match["type"] or "")
    result, equal = _two(to)
    if match["how"] == "any":
        if equal is not None:
            raise emitter.error("it has one result")
        return emitter.assign(
            result, "b32", f"(uint32_t)::emulator::vote({where}, ::emulator::Vote::MatchAny, {asked}, {it.line})"
        )
    text = emitter.assign(result, "b32", f"ptx::matching({where}, {asked}, equal, {it.line})")
    if equal is not None:
        text += " " + emitter.assign(equal, "pred", "equal")
    return f"{{ bool equal; {text} }}"


def reduce(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    to, value, mask = emitter.operands(it, 3)
    kind, name = match["type"] or "", match["how"] or ""
    if (kind == "b32") != (name in ("and", "or", "xor")):
        raise emitter.unknown()
    vote_kind = _SIGNED.get(name, name.capitalize()) if kind == "s32" else name.capitalize()
    text = f"ptx::reduced({emitter.read(mask, 'b32')}, {emitter.read(value, kind)}, ::emulator::Vote::{vote_kind}, {it.line})"
    return emitter.assign(to, kind, text)


def warp_sync(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del match
    (mask,) = emitter.operands(it, 1)
    return f"::emulator::warp_operation({emitter.read(mask, 'b32')}, ::emulator::WarpKind::Sync, nullptr, nullptr, {it.line});"


def active(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del match
    (to,) = emitter.operands(it, 1)
    return emitter.assign(to, "b32", f"::emulator::active_mask({it.line})")


def elect(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del match
    to, mask = emitter.operands(it, 2)
    leader, chosen = _two(to)
    if chosen is None:
        raise emitter.error("it has two results")
    text = emitter.assign(chosen, "pred", f"ptx::elected({emitter.read(mask, 'b32')}, leader, {it.line})")
    return f"{{ uint32_t leader; {text} {emitter.assign(leader, 'b32', 'leader')} }}"


def _site(emitter: Emitter, match: Chosen) -> int:
    """The barrier's number in the module; 0 for one that threads of a warp may meet apart."""
    return 0 if match["loose"] and not match["aligned"] else emitter.site()


def barrier(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    if len(it.operands) == 1:
        return f"ptx::block_barrier({emitter.read(it.operands[0], 'u32')}, {it.line}, {_site(emitter, match)});"
    number, threads = emitter.operands(it, 2)
    return f"ptx::named_barrier({emitter.read(number, 'u32')}, {emitter.read(threads, 'u32')}, true, {it.line});"


def arrive(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del match
    number, threads = emitter.operands(it, 2)
    return f"ptx::named_barrier({emitter.read(number, 'u32')}, {emitter.read(threads, 'u32')}, false, {it.line});"


def barrier_vote(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    if (match["how"] == "popc") != (match["type"] == "u32"):
        raise emitter.unknown()
    to, number, asked = emitter.operands(it, 3)
    if emitter.read(number, "u32") not in ("(uint32_t)0u",):
        raise emitter.error("it is known for barrier 0 alone")
    kind = {"popc": "Count", "and": "And", "or": "Or"}[match["how"] or ""]
    asked_for = f"{emitter.read(asked, 'pred')}, {_site(emitter, match)}"
    value = f"::emulator::barrier({it.line}, ::emulator::Barrier::{kind}, {asked_for})"
    return emitter.assign(to, match["type"] or "", f"(uint32_t){value}" if kind == "Count" else f"{value} != 0")


def fence(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del match
    emitter.operands(it, 0)
    return "::emulator::fence();"


def sleep(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del match
    emitter.operands(it, 1)
    return f"::emulator::spin({it.line});"


def hint(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del emitter, it, match
    return ";"


WARPS: tuple[tuple[Pattern, Handler], ...] = (
    (SHUFFLE, shuffle),
    (VOTE, vote),
    (MATCH, matching),
    (REDUCE, reduce),
    (WARP_SYNC, warp_sync),
    (ACTIVE, active),
    (ELECT, elect),
    (BARRIER, barrier),
    (ARRIVE, arrive),
    (BARRIER_VOTE, barrier_vote),
    (FENCE, fence),
    (SLEEP, sleep),
    (HINT, hint),
)
"""Spellings with the functions that write their C++."""
