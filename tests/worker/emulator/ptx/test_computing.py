"""Every spelling of every computing instruction gives what the PTX ISA says, bit for bit.

The table that the translator works by is gone through as a whole: an entry without a reference, or one whose answer differs in
any lane, fails. What a GPU approximates is held to a stated number of units in the last place.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.worker.emulator.ptx import reference
from tests.worker.emulator.ptx.machine import Launch, words
from tests.worker.emulator.ptx.numbers import FORMATS, finite, flushed, number
from tests.worker.emulator.ptx.reference import APPROXIMATE, width_of
from worker.emulator.ptx import FORMS
from worker.emulator.toolchain import Toolchain
from worker.sandbox import Sandbox

LANES = 40
CARRYING = {"add", "addc", "sub", "subc", "mad", "madc"}
AMOUNTS = {"shl", "shr", "shf", "bfe", "bfi", "fns", "szext", "bmsk"}
BATCH = 150
FAMILIES = sorted({opcode.partition(".")[0] for opcode in FORMS})


def carries(opcode: str) -> bool:
    parts = opcode.split(".")
    return parts[0] in CARRYING and ("cc" in parts or parts[0].endswith("c"))


# ------------------------------------------------------------------------------------------------------------ operands


def _integers(width: int, rng: random.Random) -> list[int]:
    top = 1 << width
    edges = [0, 1, 2, top - 1, top // 2, top // 2 - 1, top // 3, 7]
    chosen = [rng.choice(edges) for _ in range(LANES // 2)]
    return chosen + [rng.getrandbits(width) >> rng.randrange(width) for _ in range(LANES - len(chosen))]


def _floats(kind: str, rng: random.Random) -> list[int]:
    form = FORMATS[kind]
    simple = [
        Fraction(text) for text in ("0", "1", "-1", "1/2", "3/2", "5/2", "-5/2", "1/10", "-7/3", "127", "-128", "1000")
    ]
    far = [
        Fraction(2) ** 31,
        -(Fraction(2) ** 31),
        Fraction(2) ** 63,
        Fraction(2) ** 64,
        Fraction(2) ** 15,
        Fraction(65535),
    ]
    edges = [form.encode(it) for it in (*simple, *far, "nan", "inf", "-inf", "-0", form.smallest_normal)]
    edges += [
        1,
        3,
        form.encode(form.smallest_normal) - 1,
        form.infinity - 1,
        form.encode(Fraction(1)) + 1,
        1 | 1 << form.width - 1,
    ]
    chosen = [rng.choice(edges) for _ in range(LANES // 2)]
    near = [
        form.encode(Fraction(rng.getrandbits(60) - (1 << 59), 1 << rng.randrange(40, 62))) for _ in range(LANES // 4)
    ]
    return chosen + near + [rng.getrandbits(form.width) for _ in range(LANES - len(chosen) - len(near))]


@cache
def vector(kind: str, at: int, use: str) -> list[int]:
    """The bits of one operand in every lane. use: "amount" for shifts and positions, "divisor" for what is no zero."""
    rng = random.Random(f"{kind} {at} {use}")  # noqa: S311 - the same operands in every run
    if use == "amount":
        return [rng.choice([0, 1, 5, 8, 15, 16, 31, 32, 33, 63, 64, 200, 255]) for _ in range(LANES)]
    if use == "carry" or kind == "pred":
        return [rng.getrandbits(1) for _ in range(LANES)]
    if kind.endswith("x2") and kind[0] in "fb":
        halves = [_floats(kind[:-2], rng) for _ in range(2)]
        return [low | high << 16 for low, high in zip(*halves, strict=True)]
    if kind in FORMATS:
        return _floats(kind, rng)
    values = _integers(32 if kind.endswith("x2") else width_of(kind), rng)
    return [value or 3 for value in values] if use == "divisor" else values


def uses(opcode: str) -> Iterator[tuple[str, int, str]]:
    """The operand vectors of an instruction: type, number and use."""
    name = opcode.partition(".")[0]
    for at, kind in enumerate(FORMS[opcode].operands):
        amount = (
            name in AMOUNTS
            and kind in ("u32", "b32", "s32")
            and (at > 0 or name == "bmsk")
            and not (name == "shf" and at < 2)
        )
        amount &= not (name == "bfi" and at < 2)
        divisor = name in ("div", "rem") and at == 1 and kind not in FORMATS
        yield kind, at, "amount" if amount else "divisor" if divisor else ""


# -------------------------------------------------------------------------------------------------------------- module


class Assembler:
    """One kernel that runs a batch of instructions on the operand vectors and stores each result's bits."""

    def __init__(self, name: str, inputs: dict[tuple[str, int, str], int]) -> None:
        self.name = name
        self.inputs = inputs
        self.lines: list[str] = []
        self.loaded: dict[tuple[str, int, str], str] = {}
        self.registers: list[str] = []

    def register(self, kind: str) -> str:
        declared = {"pred": "pred", 8: "b32", 16: "b16", 32: "b32", 64: "b64"}
        which = kind if kind in ("f32", "f64") else declared["pred" if kind == "pred" else width_of(kind)]
        name = f"%x{len(self.registers)}"
        self.registers.append(f".reg .{which} {name};")
        return name

    def operand(self, use: tuple[str, int, str]) -> str:
        if use not in self.loaded:
            kind = use[0]
            name = self.register(kind)
            self.lines.append(f"ld.global.u64 %w, [%in+{8 * LANES * self.inputs[use]}];")
            width = width_of(kind)
            if kind == "pred":
                self.lines.append(f"setp.ne.u64 {name}, %w, 0;")
            elif width == 64:
                self.lines.append(f"mov.b64 {name}, %w;")
            elif width == 16:
                self.lines.append(f"cvt.u16.u64 {name}, %w;")
            else:
                self.lines.append(f"cvt.u32.u64 %u, %w; mov.b32 {name}, %u;")
            self.loaded[use] = name
        return self.loaded[use]

    def run(self, opcode: str, slot: int) -> None:
        form = FORMS[opcode]
        operands = [self.operand(use) for use in uses(opcode)]
        result = self.register(form.result)
        if carries(opcode):
            flag = self.operand(("u32", 0, "carry"))
            sub = opcode.startswith("sub")
            self.lines.append(f"sub.cc.u32 %u, 0, {flag};" if sub else f"add.cc.u32 %u, {flag}, 0xffffffff;")
        self.lines.append(f"{opcode} {', '.join([result, *operands])};")
        if carries(opcode):
            self.lines.append("subc.u32 %u, 0, 0;" if opcode.startswith("sub") else "addc.u32 %u, 0, 0;")
            self.lines.append(f"cvt.u64.u32 %w, %u; st.global.u64 [%out+{8 * LANES * (slot + 1)}], %w;")
        self.store(result, form.result, slot)

    def store(self, register: str, kind: str, slot: int) -> None:
        width = width_of(kind)
        if kind == "pred":
            self.lines.append(f"selp.u32 %u, 1, 0, {register}; cvt.u64.u32 %w, %u;")
        elif width == 64:
            self.lines.append(f"mov.b64 %w, {register};")
        elif width == 16:
            self.lines.append(f"cvt.u64.u16 %w, {register};")
        else:
            self.lines.append(f"mov.b32 %u, {register}; cvt.u64.u32 %w, %u;")
        self.lines.append(f"st.global.u64 [%out+{8 * LANES * slot}], %w;")

    def text(self) -> str:
        head = (
            f".visible .entry {self.name}(.param .u64 {self.name}_in, .param .u64 {self.name}_out) {{\n"
            ".reg .b64 %in, %out, %w; .reg .b32 %u;\n" + "\n".join(self.registers) + "\n"
            f"ld.param.u64 %in, [{self.name}_in]; ld.param.u64 %out, [{self.name}_out];\n"
            "mov.u32 %u, %tid.x; cvt.u64.u32 %w, %u; shl.b64 %w, %w, 3; add.s64 %in, %in, %w; add.s64 %out, %out, %w;\n"
        )
        return head + "\n".join(self.lines) + "\nret;\n}\n"


@pytest.fixture(scope="module")
def results(compiler: Toolchain, sandbox: Sandbox) -> dict[str, list[np.ndarray]]:
    """What every instruction gave in every lane; for those that carry, the carry too."""
    del compiler
    wanted = {use: None for opcode in FORMS for use in uses(opcode)} | {("u32", 0, "carry"): None}
    inputs = {use: at for at, use in enumerate(wanted)}
    given = np.array([vector(*use) for use in inputs], dtype=np.uint64)
    opcodes = list(FORMS)
    kernels, slots, slot = [], {}, 0
    for at in range(0, len(opcodes), BATCH):
        kernel = Assembler(f"batch{at}", inputs)
        for opcode in opcodes[at : at + BATCH]:
            slots[opcode] = slot
            kernel.run(opcode, slot)
            slot += 2 if carries(opcode) else 1
        kernels.append(kernel)
    text = "".join(kernel.text() for kernel in kernels)
    launches = [Launch(kernel.name, block=LANES) for kernel in kernels]
    found = words(text, sandbox, launches, given, slot * LANES).reshape(slot, LANES)
    return {opcode: list(found[at : at + (2 if carries(opcode) else 1)]) for opcode, at in slots.items()}


# ------------------------------------------------------------------------------------------------------------- judging


def expected(opcode: str, bits: tuple[int, ...]) -> int:
    """The bits that must come out of an instruction that is exact."""
    form, parts = FORMS[opcode], opcode.split(".")
    name, kinds = parts[0], form.operands
    if name in ("setp", "set"):
        kind = parts[-1]
        if kind.endswith("x2"):
            one = opcode.replace("x2", "")
            result = kind[:-2] if form.result == kind else "u16"
            halves = [_set(one, kind[:-2], result, tuple(it >> shift & 0xFFFF for it in bits)) for shift in (0, 16)]
            return halves[0] | halves[1] << 16
        if name == "set":
            return _set(opcode, kind, form.result, bits)
        outcome = reference.compared(parts[1], kind, bits, flush="ftz" in parts)
        join = next((part for part in parts if part in ("and", "or", "xor")), None)
        if join:
            third = bool(bits[2])
            outcome = {"and": outcome and third, "or": outcome or third, "xor": outcome != third}[join]
        return int(outcome)
    if name == "selp":
        return bits[0] if bits[2] else bits[1]
    if name == "slct":
        first = (
            reference.integer("s32", bits[2]) >= 0
            if kinds[2] == "s32"
            else _not_negative(bits[2], flush="ftz" in parts)
        )
        return bits[0] if first else bits[1]
    if name == "cvt" and {parts[-2], parts[-1]} & reference.EIGHT.keys():
        return reference.eight_bits(parts, bits)
    if (name == "cvt" and any(kind in FORMATS for kind in kinds)) or (
        form.result.removesuffix("x2") in FORMATS and name == "cvt"
    ):
        value = reference.converted(opcode, bits)
        wide = parts[-2] in FORMATS or parts[-2] == "tf32" or "x2" in parts[-2]
        return value if wide else _extended(value, parts[-2])
    if any(kind.removesuffix("x2") in FORMATS for kind in kinds):
        return reference.float_value(opcode, bits)
    value = reference.integer_value(opcode, bits, kinds)
    return _kept(form.result, parts, value)


def _kept(kind: str, parts: list[str], value: int) -> int:
    """An integer as its register keeps it."""
    extended = parts[0] == "cvt" and "pack" not in parts
    return _extended(value, parts[-2]) if extended else value & (1 << width_of(kind)) - 1


def _set(opcode: str, kind: str, result: str, bits: tuple[int, ...]) -> int:
    parts = opcode.split(".")
    yes = FORMATS[result].encode(Fraction(1)) if result in FORMATS else (1 << width_of(result)) - 1
    return yes if reference.compared(parts[1], kind, bits, flush="ftz" in parts) else 0


def _not_negative(bits: int, *, flush: bool) -> bool:
    value = FORMATS["f32"].decode(bits)
    value = flushed(value, FORMATS["f32"]) if flush else value
    return value not in ("nan", "-inf") and (value == "inf" or number(value) >= 0)


def _extended(value: int, kind: str) -> int:
    """An integer result as it stands in its register: eight bits stand in one of 32 here."""
    width = width_of(kind)
    if width != 8:
        return value & (1 << width) - 1
    return reference.integer(kind, value) & 0xFFFFFFFF


def same(opcode: str, got: int, want: int) -> bool:
    """Equal bits, or both NaN where the result is a float: a NaN's payload is the CPU's."""
    kind = FORMS[opcode].result
    if kind.endswith("x2") and kind[:-2] in FORMATS:
        form = FORMATS[kind[:-2]]
        pairs = [(got >> shift & 0xFFFF, want >> shift & 0xFFFF) for shift in (0, 16)]
    elif kind in FORMATS:
        form, pairs = FORMATS[kind], [(got, want)]
    else:
        return got == want
    return all(a == b or form.decode(a) == form.decode(b) == "nan" for a, b in pairs)


def approximate(opcode: str) -> bool:
    return "approx" in opcode.split(".") or "full" in opcode.split(".")


def _near(opcode: str, bits: tuple[int, ...], got: int) -> bool:
    """Whether an approximated result is within its units in the last place; NaN and infinity where they belong."""
    parts, kind = opcode.split("."), FORMS[opcode].result
    if kind.endswith("x2"):
        one = opcode.removesuffix("x2")
        return all(_near(one, tuple(it >> shift & 0xFFFF for it in bits), got >> shift & 0xFFFF) for shift in (0, 16))
    form = FORMATS[kind]
    values = [form.decode(it) for it in bits]
    if "ftz" in parts and kind != "bf16":
        values = [flushed(it, form) for it in values]
    result = form.decode(got)
    if parts[0] == "div":
        want = form.decode(reference.float_value(f"div.rn{'.ftz' if 'ftz' in parts else ''}.{kind}", bits))
        return want == result
    if values[0] == "nan":
        return result == "nan"
    function, units = APPROXIMATE[parts[0]]
    try:
        wanted = function(float(_as_float(values[0])))
    except (ValueError, ZeroDivisionError, OverflowError):
        return not finite(result)
    if wanted != wanted or wanted in (float("inf"), float("-inf")):
        return not finite(result)
    rounded = form.decode(form.encode(Fraction(wanted)))
    if "ftz" in parts and kind != "bf16":
        rounded = flushed(rounded, form)
    if not finite(rounded) or not finite(result):
        return rounded == result
    place = max(abs(number(rounded)), form.smallest_normal) * Fraction(2) ** (1 - form.digits)
    return abs(number(result) - number(rounded)) <= units * place


def _as_float(value: Any) -> float:
    return (
        {"inf": float("inf"), "-inf": float("-inf"), "-0": -0.0}.get(value) if isinstance(value, str) else float(value)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_an_instruction_computes_what_the_isa_says(results: dict[str, list[np.ndarray]], family: str) -> None:
    wrong: dict[str, str] = defaultdict(str)
    for opcode in (it for it in FORMS if it.partition(".")[0] == family):
        lanes = zip(*(vector(*use) for use in uses(opcode)), strict=True)
        carry_in = vector("u32", 0, "carry")
        for lane, bits in enumerate(lanes):
            got = int(results[opcode][0][lane])
            if carries(opcode):
                want, carry = reference.with_carry(opcode, bits, FORMS[opcode].operands, carry_in[lane])
                left = carry if "cc" in opcode.split(".") else carry_in[lane]
                flag = (-left if opcode.startswith("sub") else left) & 0xFFFFFFFF
                ok = got == want and int(results[opcode][1][lane]) == flag
            elif approximate(opcode):
                want, ok = 0, _near(opcode, bits, got)
            else:
                want = expected(opcode, bits)
                ok = same(opcode, got, want)
            if not ok:
                wrong[opcode] = wrong[opcode] or f"{opcode} of {[hex(it) for it in bits]} gave {got:#x}, not {want:#x}"
    assert not wrong, f"{len(wrong)} spellings, among them: " + "; ".join(list(wrong.values())[:5])
