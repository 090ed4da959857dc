"""Floating-point instructions and conversions (PTX ISA, "Floating Point", "Half Precision Floating Point", "cvt")."""

from __future__ import annotations

from .forms import CTYPES, ROUNDINGS, Form, Table, merged, spellings

_R = "{.rn .rz .rm .rp}"
_INTEGERS = [f"{kind}{width}" for kind in "su" for width in (8, 16, 32, 64)]
_TO_INTEGER = {".rni": "Nearest", ".rzi": "Zero", ".rmi": "Down", ".rpi": "Up"}
_SIXTEEN = ("f16", "bf16", "f16x2", "bf16x2")


def _enter(table: Table, pattern: str, count: int, value: str, *, kind: str, nearest: str = "") -> None:
    """Enters forms of one type: {R} in `value` is the rounding; .ftz flushes operands and result, .sat clamps the result.

    nearest: C++ for the nearest rounding where the language has it.
    """
    for opcode, *chosen in spellings(pattern):
        rounding = next((part for part in chosen if part in ROUNDINGS), ".rn")
        text = nearest if nearest and rounding == ".rn" else value.replace("{R}", f"ptx::Round::{ROUNDINGS[rounding]}")
        if ".ftz" in opcode:
            for at in range(count):
                text = text.replace(f"{{{at}}}", f"ptx::flushed({{{at}}})")
            text = f"ptx::flushed({text})"
        for modifier, function in ((".sat", "unit"), (".relu", "positive")):
            if modifier in chosen:
                text = f"ptx::{function}({text})"
        table[opcode] = Form(kind, (kind,) * count, text)


def _arithmetic() -> Table:
    table: Table = {}
    for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
        for kind, modifiers in (("f32", "{| .ftz}{| .sat}"), ("f64", "")):
            pattern, plain = f"{name}{{| .rn .rz .rm .rp}}{modifiers}.{kind}", f"({{0}} {sign} {{1}})"
            _enter(table, pattern, 2, f"ptx::{name}<{{R}}>({{0}}, {{1}})", kind=kind, nearest=plain)
    for name in ("fma", "mad"):
        _enter(
            table,
            f"{name}{_R}{{| .ftz}}{{| .sat}}.f32",
            3,
            "ptx::fma<{R}>({0}, {1}, {2})",
            kind="f32",
            nearest="__builtin_fmaf({0}, {1}, {2})",
        )
        _enter(
            table,
            f"{name}{_R}.f64",
            3,
            "ptx::fma<{R}>({0}, {1}, {2})",
            kind="f64",
            nearest="__builtin_fma({0}, {1}, {2})",
        )
    _enter(table, f"div{_R}{{| .ftz}}.f32", 2, "ptx::div<{R}>({0}, {1})", kind="f32")
    _enter(table, f"div{_R}.f64", 2, "ptx::div<{R}>({0}, {1})", kind="f64")
    _enter(table, "div{.approx .full}{| .ftz}.f32", 2, "({0} / {1})", kind="f32")
    _enter(table, f"rcp{_R}{{| .ftz}}.f32", 1, "ptx::div<{R}>(1.0f, {0})", kind="f32")
    _enter(table, f"rcp{_R}.f64", 1, "ptx::div<{R}>(1.0, {0})", kind="f64")
    _enter(table, f"sqrt{_R}{{| .ftz}}.f32", 1, "ptx::root<{R}>({0})", kind="f32")
    _enter(table, f"sqrt{_R}.f64", 1, "ptx::root<{R}>({0})", kind="f64")
    return table


def _functions() -> Table:
    """Those a GPU approximates; here the host's functions, which are within a unit or two in the last place."""
    table: Table = {}
    approximate = {
        "rcp": "(1.0f / {0})",
        "sqrt": "sqrtf({0})",
        "rsqrt": "(1.0f / sqrtf({0}))",
        "sin": "sinf({0})",
        "cos": "cosf({0})",
        "lg2": "log2f({0})",
        "ex2": "exp2f({0})",
    }
    for name, value in approximate.items():
        _enter(table, f"{name}.approx{{| .ftz}}.f32", 1, value, kind="f32")
    _enter(table, "tanh.approx.f32", 1, "tanhf({0})", kind="f32")
    _enter(table, "rsqrt.approx{| .ftz}.f64", 1, "(1.0 / sqrt({0}))", kind="f64")
    _enter(table, "rcp.approx.ftz.f64", 1, "(1.0 / {0})", kind="f64")
    return table


def _signs() -> Table:
    table: Table = {}
    for kind, flush in (("f32", "{| .ftz}"), ("f64", "")):
        _enter(table, f"abs{flush}.{kind}", 1, "ptx::magnitude({0})", kind=kind)
        _enter(table, f"neg{flush}.{kind}", 1, "ptx::negated({0})", kind=kind)
        for name, function in (("min", "smaller"), ("max", "larger")):
            _enter(table, f"{name}{flush}.{kind}", 2, f"ptx::{function}({{0}}, {{1}})", kind=kind)
            if kind == "f32":
                _enter(table, f"{name}{flush}.NaN.f32", 2, f"ptx::{function}_or_nan({{0}}, {{1}})", kind=kind)
        table[f"copysign.{kind}"] = Form(kind, (kind, kind), "ptx::with_sign_of({0}, {1})")
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            table[f"testp.{test}.{kind}"] = Form("pred", (kind,), f"ptx::is_{test}({{0}})")
    return table


def _sixteen_bit() -> Table:
    table: Table = {}
    for kind in _SIXTEEN:
        flush = "{| .ftz}" if kind.startswith("f16") else ""
        clamp = "{| .sat}" if kind.startswith("f16") else ""
        for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
            _enter(table, f"{name}{{| .rn}}{flush}{clamp}.{kind}", 2, f"({{0}} {sign} {{1}})", kind=kind)
        limits = "{| .sat .relu}" if clamp else "{| .relu}"
        _enter(table, f"fma.rn{flush}{limits}.{kind}", 3, "ptx::fused({0}, {1}, {2})", kind=kind)
        _enter(table, f"neg{flush}.{kind}", 1, "ptx::negated({0})", kind=kind)
        _enter(table, f"abs{flush}.{kind}", 1, "ptx::magnitude({0})", kind=kind)
        for name, function in (("min", "smaller"), ("max", "larger")):
            _enter(table, f"{name}{flush}.{kind}", 2, f"ptx::{function}({{0}}, {{1}})", kind=kind)
            _enter(table, f"{name}{flush}.NaN.{kind}", 2, f"ptx::{function}_or_nan({{0}}, {{1}})", kind=kind)
        _enter(table, f"tanh.approx.{kind}", 1, "ptx::each({0}, tanhf)", kind=kind)
        exponent = "ex2.approx" if kind.startswith("f16") else "ex2.approx.ftz"
        table[f"{exponent}.{kind}"] = Form(kind, (kind,), "ptx::each({0}, exp2f)")
    return table


def _to_integers() -> Table:
    table: Table = {}
    for to in _INTEGERS:
        for source in ("f32", "f64", "f16", "bf16"):
            flush = "{| .ftz}" if source == "f32" else ""
            for opcode, rounding, *chosen in spellings(f"cvt{{.rni .rzi .rmi .rpi}}{flush}{{| .sat}}.{to}.{source}"):
                value = "ptx::flushed({0})" if ".ftz" in chosen else "{0}"
                function = f"ptx::to_integer<{CTYPES[to]}, ptx::Round::{_TO_INTEGER[rounding]}>"
                table[opcode] = Form(to, (source,), f"{function}({value})")
    return table


def _from_integers() -> Table:
    table: Table = {}
    for source in _INTEGERS:
        for to in ("f32", "f64", "f16", "bf16"):
            if to == "bf16" and source.endswith("64"):
                continue
            clamp = "{| .sat}" if to != "bf16" else ""
            for opcode, rounding, *chosen in spellings(
                f"cvt{_R if to in ('f32', 'f64') else '{.rn}'}{clamp}.{to}.{source}"
            ):
                function = f"ptx::from_integer<{CTYPES[to]}, ptx::Round::{ROUNDINGS[rounding]}>({{0}})"
                table[opcode] = Form(to, (source,), f"ptx::unit({function})" if ".sat" in chosen else function)
    return table


def _wider() -> Table:
    """cvt to a whole number of the same type, and to a wider type."""
    table: Table = {}
    for kind in ("f32", "f64", "f16", "bf16"):
        flush = "{| .ftz}" if kind == "f32" else ""
        clamp = "{| .sat}" if kind != "bf16" else ""
        for opcode, rounding, *chosen in spellings(f"cvt{{| .rni .rzi .rmi .rpi}}{flush}{clamp}.{kind}.{kind}"):
            value = f"ptx::whole<ptx::Round::{_TO_INTEGER[rounding]}>({{0}})" if rounding else "{0}"
            table[opcode] = Form(kind, (kind,), _limited(value, chosen))
    for source, to in (("f32", "f64"), ("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("bf16", "f64")):
        flush = "{| .ftz}" if "f32" in (source, to) and source != "bf16" else ""
        for opcode, *chosen in spellings(f"cvt{flush}{{| .sat}}.{to}.{source}"):
            value = _limited(f"({CTYPES[to]}){{0}}", chosen, operand=source == "f32", result=to == "f32")
            table[opcode] = Form(to, (source,), value)
    return table


def _narrower() -> Table:
    """cvt to a narrower type, with a rounding."""
    table: Table = {}
    for opcode, rounding, *chosen in spellings(f"cvt{_R}{{| .ftz}}{{| .sat}}.f32.f64"):
        value = f"ptx::narrowed<ptx::Round::{ROUNDINGS[rounding]}>({{0}})"
        table[opcode] = Form("f32", ("f64",), _limited(value, chosen, operand=False))
    patterns = {"f16": f"cvt{_R}{{| .ftz}}{{| .sat .relu}}.f16.f32", "bf16": f"cvt{_R}{{| .relu}}.bf16.f32"}
    for to, pattern in patterns.items():
        for opcode, rounding, *chosen in spellings(pattern):
            value = _limited(_sixteen(to, rounding, 0), chosen, result=False)
            table[opcode] = Form(to, ("f32",), value)
        for opcode, rounding, *chosen in spellings(f"cvt{{.rn .rz}}{{| .relu}}.{to}x2.f32"):
            pair = f"ptx::Two<{CTYPES[to]}>{{{{{_sixteen(to, rounding, 1)}, {_sixteen(to, rounding, 0)}}}}}"
            table[opcode] = Form(f"{to}x2", ("f32", "f32"), _limited(pair, chosen))
    for opcode, rounding in spellings(f"cvt{_R}.f16.f64"):
        table[opcode] = Form("f16", ("f64",), _sixteen("f16", rounding, 0))
    table["cvt.rn.bf16.f64"] = Form("bf16", ("f64",), _sixteen("bf16", ".rn", 0))
    for rounding, how in (("rna", "Away"), ("rn", "Even"), ("rz", "Cut")):
        table[f"cvt.{rounding}.tf32.f32"] = Form("b32", ("f32",), f"ptx::to_tf32<ptx::Tie::{how}>({{0}})")
        if rounding != "rna":
            table[f"cvt.{rounding}.relu.tf32.f32"] = Form(
                "b32", ("f32",), f"ptx::to_tf32<ptx::Tie::{how}>(ptx::positive({{0}}))"
            )
    return table


def _sixteen(to: str, rounding: str, operand: int) -> str:
    return f"ptx::sixteen<{CTYPES[to]}, ptx::Round::{ROUNDINGS[rounding]}>({{{operand}}})"


def _limited(value: str, chosen: list[str], *, operand: bool = True, result: bool = True) -> str:
    """`value` with its modifiers; .ftz is for values of type f32 alone: `operand` and `result` say which are."""
    if ".ftz" in chosen:
        value = value.replace("{0}", "ptx::flushed({0})") if operand else value
        value = f"ptx::flushed({value})" if result else value
    if ".sat" in chosen:
        value = f"ptx::unit({value})"
    return f"ptx::positive({value})" if ".relu" in chosen else value


def _eight_bit() -> Table:
    """cvt to and from pairs of eight-bit floats; the first operand becomes the upper half."""
    table: Table = {}
    for kind in ("e4m3", "e5m2"):
        wide = "true" if kind == "e5m2" else "false"
        for opcode, *chosen in spellings(f"cvt.rn.satfinite{{| .relu}}.{kind}x2.f32"):
            parts = ["ptx::positive({1})", "ptx::positive({0})"] if ".relu" in chosen else ["{1}", "{0}"]
            table[opcode] = Form("b16", ("f32", "f32"), f"ptx::two_eights<{wide}>({', '.join(parts)})")
        for opcode, *chosen in spellings(f"cvt.rn.satfinite{{| .relu}}.{kind}x2.f16x2"):
            value = "ptx::positive({0})" if ".relu" in chosen else "{0}"
            table[opcode] = Form("b16", ("f16x2",), f"ptx::two_eights<{wide}>({value})")
        for opcode, *chosen in spellings(f"cvt.rn{{| .relu}}.f16x2.{kind}x2"):
            value = f"ptx::two_halves<{wide}>({{0}})"
            table[opcode] = Form("f16x2", ("b16",), f"ptx::positive({value})" if ".relu" in chosen else value)
    return table


def float_forms() -> Table:
    return merged(
        _arithmetic(),
        _functions(),
        _signs(),
        _sixteen_bit(),
        _to_integers(),
        _from_integers(),
        _wider(),
        _narrower(),
        _eight_bit(),
    )
