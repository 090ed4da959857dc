"""Integer, logical, comparison and selection instructions (PTX ISA, "Integer Arithmetic", "Logic and Shift", "Comparison")."""

from __future__ import annotations

from .forms import BITS, CTYPES, INTEGERS, WORDS, Form, Table, add, merged, spellings

_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
JOINS = {"": "", "and": "&", "or": "|", "xor": "^"}
"""How setp joins its outcome with a third operand."""


def _arithmetic() -> Table:
    table: Table = {}
    for name, sign in (("add", "+"), ("sub", "-")):
        add(table, f"{name}{{{INTEGERS}}}", f"T({{0}} {sign} {{1}})")
        add(table, f"{name}.sat.s32", f"ptx::saturated((int64_t){{0}} {sign} {{1}})")
    add(table, "add{.u16x2 .s16x2}", "{0} + {1}")
    add(table, f"mul.lo{{{INTEGERS}}}", "T({0} * {1})")
    add(table, f"mul.hi{{{INTEGERS}}}", "ptx::high({0}, {1})")
    add(table, f"mad.lo{{{INTEGERS}}}", "T({0} * {1} + {2})", "T T T")
    add(table, f"mad.hi{{{INTEGERS}}}", "T(ptx::high({0}, {1}) + {2})", "T T T")
    add(table, "mad.hi.sat.s32", "ptx::saturated((int64_t)ptx::high({0}, {1}) + {2})", "T T T")
    for kind in ("s16", "u16", "s32", "u32"):
        wide = f"{kind[0]}{2 * int(kind[1:])}"
        product = f"({CTYPES[wide]}){{0}} * ({CTYPES[wide]}){{1}}"
        table[f"mul.wide.{kind}"] = Form(wide, (kind, kind), product)
        table[f"mad.wide.{kind}"] = Form(wide, (kind, kind, wide), f"{product} + {{2}}")
    for half, shift in (("lo", 0), ("hi", 16)):
        for kind in ("s32", "u32"):
            product = f"({CTYPES[kind]})(ptx::times24({{0}}, {{1}}) >> {shift})"
            table[f"mul24.{half}.{kind}"] = Form(kind, (kind, kind), product)
            table[f"mad24.{half}.{kind}"] = Form(kind, (kind, kind, kind), f"{product} + {{2}}")
    table["mad24.hi.sat.s32"] = Form("s32", ("s32",) * 3, "ptx::saturated((ptx::times24({0}, {1}) >> 16) + {2})")
    add(table, f"sad{{{INTEGERS}}}", "T({2} + ({0} < {1} ? {1} - {0} : {0} - {1}))", "T T T")
    add(table, f"div{{{INTEGERS}}}", "ptx::quotient({0}, {1})")
    add(table, f"rem{{{INTEGERS}}}", "ptx::remainder({0}, {1})")
    add(table, "abs{.s16 .s32 .s64}", "T({0} < 0 ? -{0} : {0})", "T")
    add(table, "neg{.s16 .s32 .s64}", "T(-{0})", "T")
    add(table, f"min{{{INTEGERS} .u16x2 .s16x2}}", "ptx::smaller({0}, {1})")
    add(table, f"max{{{INTEGERS} .u16x2 .s16x2}}", "ptx::larger({0}, {1})")
    for first, second in [(a, b) for a in ("u32", "s32") for b in ("u32", "s32")]:
        result = "u32" if (first, second) == ("u32", "u32") else "s32"
        signs = ", ".join("true" if kind == "s32" else "false" for kind in (first, second))
        table[f"dp4a.{first}.{second}"] = Form(
            result, ("b32", "b32", result), f"ptx::dot4<{signs}>({{0}}, {{1}}) + {{2}}"
        )
        for half, at in (("lo", 0), ("hi", 2)):
            value = f"ptx::dot2<{signs}>({{0}}, {{1}}, {at}) + {{2}}"
            table[f"dp2a.{half}.{first}.{second}"] = Form(result, ("b32", "b32", result), value)
    return table


def _limits_and_distances() -> Table:
    table: Table = {}
    for name, function in (("min", "smaller"), ("max", "larger")):
        for kind in ("s32", "s16x2"):
            value = f"ptx::not_negative(ptx::{function}({{0}}, {{1}}))"
            for opcode in (f"{name}.relu.{kind}", f"{name}.{kind}.relu"):  # the ISA's spelling, and nvcc's
                table[opcode] = Form(kind, (kind, kind), value)
    for count in (2, 4):
        apart = f"ptx::distances<{32 // count}"
        for ending, value in (
            ("", f"{apart}, false>({{0}}, {{1}})"),
            (".add", f"{{2}} + {apart}, true>({{0}}, {{1}})"),
        ):
            table[f"vabsdiff{count}.u32.u32.u32{ending}"] = Form("u32", ("u32",) * 3, value)
    return table


def _carries() -> Table:
    """Additions that leave a carry, or a borrow, in `carry`, and those that take it up."""
    table: Table = {}
    for name in ("add", "sub"):
        for opcode, takes, leaves, kind in spellings(f"{name}{{| c}}{{| .cc}}{{{WORDS}}}"):
            if takes or leaves:
                flags = f"{str(bool(takes)).lower()}, {str(bool(leaves)).lower()}"
                table[opcode] = Form(kind[1:], (kind[1:],) * 2, f"ptx::{name}_carry<{flags}>({{0}}, {{1}}, carry)")
    for opcode, takes, half, leaves, kind in spellings(f"mad{{| c}}{{.lo .hi}}{{| .cc}}{{{WORDS}}}"):
        if takes or leaves:
            product = f"({CTYPES[kind[1:]]})({{0}} * {{1}})" if half == ".lo" else "ptx::high({0}, {1})"
            flags = f"{str(bool(takes)).lower()}, {str(bool(leaves)).lower()}"
            table[opcode] = Form(kind[1:], (kind[1:],) * 3, f"ptx::add_carry<{flags}>({product}, {{2}}, carry)")
    return table


def _bits() -> Table:
    table: Table = {}
    for name, sign in (("and", "&"), ("or", "|"), ("xor", "^")):
        add(table, f"{name}{{.pred {BITS}}}", f"T({{0}} {sign} {{1}})")
    add(table, f"not{{{BITS}}}", "T(~{0})", "T")
    add(table, "not.pred", "!{0}", "T")
    add(table, f"cnot{{{BITS}}}", "T({0} == 0)", "T")
    add(table, f"shl{{{BITS}}}", "ptx::left({0}, {1})", "T u32")
    add(table, f"shr{{{BITS} {INTEGERS}}}", "ptx::right({0}, {1})", "T u32")
    for opcode, side, mode in spellings("shf{.l .r}{.clamp .wrap}.b32"):
        amount = "({2} > 32u ? 32u : {2})" if mode == ".clamp" else "({2} & 31u)"
        which = "left" if side == ".l" else "right"
        table[opcode] = Form("b32", ("b32", "b32", "u32"), f"ptx::funnel_{which}({{0}}, {{1}}, {amount})")
    table["lop3.b32"] = Form("b32", ("b32", "b32", "b32", "u32"), "ptx::logic3({0}, {1}, {2}, {3})")
    for opcode, mode in spellings("prmt.b32{| .f4e .b4e .rc8 .ecl .ecr .rc16}"):
        how = {"": "Index"}.get(mode, mode[1:].capitalize())
        table[opcode] = Form("b32", ("b32", "b32", "u32"), f"ptx::permute<ptx::Permute::{how}>({{0}}, {{1}}, {{2}})")
    for kind, count in (("b32", "__builtin_popcount"), ("b64", "__builtin_popcountll")):
        table[f"popc.{kind}"] = Form("u32", (kind,), f"{count}({{0}})")
        table[f"clz.{kind}"] = Form("u32", (kind,), "ptx::leading_zeros({0})")
    add(table, "brev{.b32 .b64}", "ptx::reversed({0})", "T")
    for opcode, shift, kind in spellings(f"bfind{{| .shiftamt}}{{{WORDS}}}"):
        table[opcode] = Form("u32", (kind[1:],), f"ptx::highest<{str(bool(shift)).lower()}>({{0}})")
    table["fns.b32"] = Form("b32", ("b32", "b32", "s32"), "ptx::nth_set({0}, {1}, {2})")
    add(table, f"bfe{{{WORDS}}}", "ptx::extracted({0}, {1}, {2})", "T u32 u32")
    for kind in ("b32", "b64"):
        table[f"bfi.{kind}"] = Form(kind, (kind, kind, "u32", "u32"), "ptx::inserted({0}, {1}, {2}, {3})")
    for opcode, mode, kind in spellings("szext{.clamp .wrap}{.u32 .s32}"):
        width = "({1} > 32u ? 32u : {1})" if mode == ".clamp" else "({1} & 31u)"
        table[opcode] = Form(kind[1:], (kind[1:], "u32"), f"ptx::extracted({{0}}, 0u, {width})")
    for opcode, mode in spellings("bmsk{.clamp .wrap}.b32"):
        start, width = ("{0} & 31u", "{1} & 31u") if mode == ".wrap" else ("{0}", "{1}")
        table[opcode] = Form("b32", ("u32", "u32"), f"ptx::bit_mask({start}, {width})")
    return table


def relations(kind: str) -> dict[str, str]:
    """The comparisons that a type has, with C++ for their outcome."""
    simple = {name: f"({{0}} {sign} {{1}})" for name, sign in _RELATIONS.items()}
    if kind[0] == "b" and not kind.startswith("bf"):
        return {name: simple[name] for name in ("eq", "ne")}
    if kind[0] == "u":
        return simple | {name: f"({{0}} {sign} {{1}})" for name, sign in _UNSIGNED.items()}
    if kind[0] == "s":
        return simple
    # ne is false where an operand is NaN, unlike C++'s.
    ordered = simple | {"ne": "ptx::ordered_unequal({0}, {1})"}
    unordered = {f"{name}u": f"(ptx::unordered({{0}}, {{1}}) || {value})" for name, value in simple.items()}
    return ordered | unordered | {"num": "!ptx::unordered({0}, {1})", "nan": "ptx::unordered({0}, {1})"}


def _comparisons() -> Table:
    table: Table = {}
    kinds = [*(kind[1:] for kind in f"{BITS} {INTEGERS}".split()), "f32", "f64", "f16", "bf16"]
    for kind in kinds:
        for flush in ("", ".ftz") if kind in ("f32", "f16") else ("",):
            for name, outcome in relations(kind).items():
                value = (
                    outcome.replace("{0}", "ptx::flushed({0})").replace("{1}", "ptx::flushed({1})")
                    if flush
                    else outcome
                )
                for join, sign in JOINS.items():
                    third = ("pred",) if join else ()
                    whole = f"({value} {sign} {{2}})" if join else value
                    table[f"setp.{name}{join and '.'}{join}{flush}.{kind}"] = Form("pred", (kind, kind, *third), whole)
                if kind in ("f16", "bf16"):
                    table |= _sixteen_bit_sets(name, outcome, flush, kind)
                    continue
                for result, choice in (("u32", "~0u : 0u"), ("s32", "-1 : 0"), ("f32", "1.0f : 0.0f")):
                    table[f"set.{name}{flush}.{result}.{kind}"] = Form(result, (kind, kind), f"({value} ? {choice})")
    return table


def _sixteen_bit_sets(name: str, outcome: str, flush: str, kind: str) -> Table:
    """set of sixteen-bit floats, and of pairs of them, half by half."""
    one = CTYPES[kind]

    def asked(part: str) -> str:
        first, second = (f"ptx::flushed({{{at}}}{part})" if flush else f"{{{at}}}{part}" for at in (0, 1))
        return outcome.replace("{0}", first).replace("{1}", second)

    table = {
        f"set.{name}{flush}.{to}.{kind}": Form(to, (kind, kind), f"({asked('')} ? {yes} : {no})")
        for to, yes, no in (
            (kind, f"{one}(1.0f)", f"{one}(0.0f)"),
            ("u32", "~0u", "0u"),
            ("s32", "-1", "0"),
            ("u16", "(uint16_t)~0u", "(uint16_t)0"),
            ("s16", "(int16_t)-1", "(int16_t)0"),
        )
    }
    halves = [f"{one}({asked(part)} ? 1.0f : 0.0f)" for part in (".x", ".y")]
    pair = f"{kind}x2"
    masks = [f"(uint32_t)({asked(part)} ? 0xffffu : 0u)" for part in (".x", ".y")]
    for to in ("u32", "s32"):
        table[f"set.{name}{flush}.{to}.{pair}"] = Form(to, (pair, pair), f"({masks[0]} | {masks[1]} << 16)")
    table[f"set.{name}{flush}.{pair}.{pair}"] = Form(pair, (pair, pair), f"ptx::Two<{one}>{{{{{', '.join(halves)}}}}}")
    return table


def _selections() -> Table:
    table: Table = {}
    kinds = [kind[1:] for kind in f"{BITS} {INTEGERS} .f32 .f64".split()]
    for kind in kinds:
        table[f"selp.{kind}"] = Form(kind, (kind, kind, "pred"), "({2} ? {0} : {1})")
        table[f"slct.{kind}.s32"] = Form(kind, (kind, kind, "s32"), "({2} >= 0 ? {0} : {1})")
        table[f"slct.{kind}.f32"] = Form(kind, (kind, kind, "f32"), "({2} >= 0 ? {0} : {1})")
        table[f"slct.ftz.{kind}.f32"] = Form(kind, (kind, kind, "f32"), "(ptx::flushed({2}) >= 0 ? {0} : {1})")
    return table


def _conversions() -> Table:
    """cvt between integer types; a result in a wider register is extended as its own type says."""
    table: Table = {}
    kinds = [f"{kind}{width}" for kind in "su" for width in (8, 16, 32, 64)]
    for to in kinds:
        for source in kinds:
            table[f"cvt.{to}.{source}"] = Form(to, (source,), f"({CTYPES[to]}){{0}}")
            table[f"cvt.sat.{to}.{source}"] = Form(to, (source,), f"ptx::clamped<{CTYPES[to]}>({{0}})")
    for to, ending, below in (("16", "", "0u"), ("8", ".b32", "{2}")):
        for sign in "su":
            operands = ("s32", "s32", "b32")[: 3 if ending else 2]
            value = f"ptx::packed<{CTYPES[sign + to]}>({{0}}, {{1}}, {below})"
            table[f"cvt.pack.sat.{sign}{to}.s32{ending}"] = Form("b32", operands, value)
    return table


def integer_forms() -> Table:
    return merged(
        _arithmetic(), _limits_and_distances(), _carries(), _bits(), _comparisons(), _selections(), _conversions()
    )
