"""Barrier objects in shared memory, and copies that complete on them (PTX ISA, "mbarrier", "Non-tensor copy instructions")."""

from __future__ import annotations

import re

from .emitter import Emitter
from .spelling import Chosen, Words
from .tree import Address, Instruction, Name, Operand

_SHARED = "|shared shared::cta shared::cluster"
_ORDER, _SCOPE = "|relaxed acquire release", "|cta cluster"
INIT = Words("mbarrier", what="init inval", space=_SHARED, type="b64")
ARRIVE = Words(
    "mbarrier",
    what="arrive arrive_drop",
    partly="|noComplete",
    expects="|expect_tx",
    order=_ORDER,
    scope=_SCOPE,
    space=_SHARED,
    type="b64",
)
EXPECT = Words("mbarrier", what="expect_tx complete_tx", order=_ORDER, scope=_SCOPE, space=_SHARED, type="b64")
WAIT = Words(
    "mbarrier", what="test_wait try_wait", parity="|parity", order=_ORDER, scope=_SCOPE, space=_SHARED, type="b64"
)
PENDING = Words("mbarrier", what="pending_count", type="b64")
ARRIVE_WITH_COPIES = re.compile(
    r"cp\.async\.mbarrier\.arrive(?P<counted>\.noinc)?(?P<space>\.shared|\.shared::cta)?\.b64"
)
BULK_IN = re.compile(
    r"cp\.async\.bulk\.(?P<to>shared::cluster|shared::cta)\.(?P<source>global|shared::cta)"
    r"\.mbarrier::complete_tx::bytes(?P<hint>\.L2::cache_hint)?"
)
BULK_OUT = re.compile(r"cp\.async\.bulk\.global\.shared::cta\.bulk_group(?P<hint>\.L2::cache_hint)?")
BULK_GROUP = re.compile(r"cp\.async\.bulk\.(?P<what>commit_group|wait_group)(\.read)?")
BULK_HINT = re.compile(r"cp\.async\.bulk\.prefetch\.L2\.global(\.L2::cache_hint)?")


def _object(emitter: Emitter, operand: Operand, space: str | None) -> str:
    return emitter.address(operand, (space or "").removeprefix(".").replace("shared::cta", "shared"))


def init(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    if match["what"] == "inval":
        (place,) = emitter.operands(it, 1)
        return f"ptx::object_ended({_object(emitter, place, match['space'])});"
    place, count = emitter.operands(it, 2)
    return f"ptx::object_init({_object(emitter, place, match['space'])}, {emitter.read(count, 'u32')}, {it.line});"


def arrive(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    """`arrive state, [a], n`: with expect_tx n are bytes, else arrivals; without a state there is none to the left."""
    operands = list(it.operands)
    state = operands.pop(0) if operands and not isinstance(operands[0], Address) else None
    if not 1 <= len(operands) <= 2 or (match["expects"] and len(operands) != 2):
        raise emitter.error("its operands are not known to the emulator")
    place = _object(emitter, operands[0], match["space"])
    number = emitter.read(operands[1], "u32") if len(operands) == 2 else "1u"
    bytes_, count = (number, "1u") if match["expects"] else ("0u", number)
    drops = str(match["what"] == "arrive_drop").lower()
    publishes = str(match["order"] != "relaxed").lower()
    emitter.waits = emitter.serial = True
    value = f"ptx::object_arrive({place}, {count}, {bytes_}, {drops}, {publishes}, {it.line})"
    if state is None or (isinstance(state, Name) and state.text == "_"):
        return f"{value};"
    return emitter.assign(state, "b64", value)


def expect(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    place, count = emitter.operands(it, 2)
    sign = "-" if match["what"] == "complete_tx" else ""
    where = _object(emitter, place, match["space"])
    return f"ptx::object_expect({where}, {sign}(int32_t){emitter.read(count, 'u32')}, {it.line});"


def wait(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    """A time limit may stand behind: the emulator waits for others once and answers."""
    if not 3 <= len(it.operands) <= 4:
        raise emitter.error("its operands are not known to the emulator")
    to, place, phase = it.operands[:3]
    emitter.waits = emitter.serial = True
    which = emitter.read(phase, "u32" if match["parity"] else "b64")
    odd = f"({which} & 1u) != 0" if match["parity"] else f"({which} >> 63) != 0"
    patient = str(match["what"] == "try_wait").lower()
    acquires = str(match["order"] != "relaxed").lower()
    where = _object(emitter, place, match["space"])
    return emitter.assign(to, "pred", f"ptx::object_passed({where}, {odd}, {patient}, {acquires}, {it.line})")


def pending(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del match
    to, state = emitter.operands(it, 2)
    return emitter.assign(to, "b32", f"ptx::object_pending({emitter.read(state, 'b64')})")


def arrive_with_copies(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    """Arrives when this thread's earlier cp.async are done: they are done here and now."""
    (place,) = emitter.operands(it, 1)
    emitter.waits = emitter.serial = True
    where = _object(emitter, place, (match["space"] or "").removeprefix("."))
    counted = "true" if match["counted"] else "false"
    return f"::emulator::close_copy_batch(); ::emulator::finish_copies(0); ptx::object_copied({where}, {counted}, {it.line});"


def bulk_in(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    to, source, size, place = emitter.operands(it, 5 if match["hint"] else 4)[:4]
    emitter.waits = emitter.serial = True
    kind = "shared" if match["to"] == "shared::cta" else "shared::cluster"
    where, start = emitter.address(to, kind), emitter.address(source, (match["source"] or "").partition("::")[0])
    return f"ptx::bulk_copy({where}, {start}, {emitter.read(size, 'u32')}, {emitter.address(place, kind)}, {it.line});"


def bulk_out(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    to, source, size = emitter.operands(it, 4 if match["hint"] else 3)[:3]
    where, start = emitter.address(to, "global"), emitter.address(source, "shared")
    return f"ptx::bulk_copy({where}, {start}, {emitter.read(size, 'u32')}, nullptr, {it.line});"


def bulk_group(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    if match["what"] == "commit_group":
        emitter.operands(it, 0)
        return "ptx::close_bulk_batch();"
    (left,) = emitter.operands(it, 1)
    return f"ptx::finish_bulk_copies({emitter.read(left, 'u32')});"


def bulk_hint(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del emitter, it, match
    return ";"


BARRIERS = (
    (INIT, init),
    (ARRIVE, arrive),
    (EXPECT, expect),
    (WAIT, wait),
    (PENDING, pending),
    (ARRIVE_WITH_COPIES, arrive_with_copies),
    (BULK_IN, bulk_in),
    (BULK_OUT, bulk_out),
    (BULK_GROUP, bulk_group),
    (BULK_HINT, bulk_hint),
)
"""Spellings with the functions that write their C++."""
