"""Kernels of loads, stores, atomics and copies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.worker.emulator.ptx.sample import WORDS, Lanes, Sample, given, low, signed

# --------------------------------------------------------------------------------------------------- loads and stores

LOADED = [f"{kind}{width}" for kind in "sub" for width in (8, 16, 32, 64)] + ["f32", "f64"]
ORDERS = ["", ".weak", ".volatile", ".relaxed.gpu", ".acquire.sys", ".relaxed.cta", ".acquire.cluster"]
HINTS = [
    "",
    ".ca",
    ".cg",
    ".cs",
    ".lu",
    ".cv",
    ".nc",
    ".cg.nc",
    ".L1::evict_last",
    ".nc.L1::no_allocate.L2::128B",
    ".L2::64B",
]
STORED = ["", ".wb", ".cg", ".cs", ".wt", ".L1::evict_first", ".L1::no_allocate.L2::256B"]


def _register(kind: str) -> str:
    return {"f32": "%f1", "f64": "%g1"}.get(kind) or ("%d1" if kind.endswith("64") else "%r1")


def _kept(kind: str) -> str:
    return {
        "%f1": "mov.b32 %r1, %f1; cvt.u64.u32 %d1, %r1;",
        "%g1": "mov.b64 %d1, %g1;",
        "%d1": "",
        "%r1": "cvt.u64.u32 %d1, %r1;",
    }[_register(kind)]


def _value(kind: str, word: int) -> int:
    width = int(kind[1:])
    return low(signed(word, width), max(width, 32)) if kind[0] == "s" else low(word, width)


def loads() -> Sample:
    lines, kinds = [], []
    spaces = {"": "%in", ".global": "%in", ".const": "%in"}
    for kind in LOADED:
        for space, base in spaces.items():
            lines.append(
                f"ld{space}.{kind} {_register(kind)}, [{base}+8]; {_kept(kind)} st.global.u64 [%out+{8 * len(kinds)}], %d1;"
            )
            kinds.append(kind)
    for text in [f"ld{order}.global.u32" for order in ORDERS] + [f"ld.global{hint}.u32" for hint in HINTS]:
        lines.append(f"{text} %r1, [%in+8]; cvt.u64.u32 %d1, %r1; st.u64 [%out+{8 * len(kinds)}], %d1;")
        kinds.append("u32")
    assert len(kinds) <= WORDS
    return Sample("loads", "\n".join(lines), lambda lane: [_value(kind, given(lane, 1)) for kind in kinds])


def stores() -> Sample:
    lines, kinds = (
        ["ld.global.u64 %d1, [%in]; cvt.u32.u64 %r1, %d1; mov.b32 %f1, %r1; mov.b64 %g1, %d1; mov.b64 %d2, 0;"],
        [],
    )
    texts = [(f"st{space}.{kind}", kind) for kind in LOADED for space in ("", ".global")]
    texts += [(f"st{order}.global.u32", "u32") for order in (*ORDERS[:4], ".release.sys", ".release.cta")]
    texts += [(f"st.global{hint}.u32", "u32") for hint in STORED]
    for text, kind in texts:
        at = f"[%out+{8 * len(kinds)}]"
        lines.append(f"st.global.u64 {at}, %d2; {text} {at}, {_register(kind)};")
        kinds.append(kind)
    assert len(kinds) <= WORDS
    return Sample("stores", "\n".join(lines), lambda lane: [low(given(lane, 0), int(kind[1:])) for kind in kinds])


def vectors() -> Sample:
    """Several values at once through each space that can be written, shared memory as generic addresses too."""
    body = """
    .shared .align 16 .b8 box[4096];
    .local .align 16 .b8 own[64];
    mov.u32 %r9, box; shl.b32 %r8, %t, 4; add.s32 %r9, %r9, %r8; cvt.u64.u32 %d9, %r9; cvta.shared.u64 %d8, %d9;
    mov.u64 %d7, own; cvta.local.u64 %d6, %d7;
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in];
    st.shared.v4.b32 [%r9], {%r1, %r2, %r3, %r4};
    ld.shared::cta.v2.f32 {%f1, %f2}, [%r9+8]; mov.b64 %d1, {%f1, %f2}; st.global.u64 [%out], %d1;
    ld.v2.u64 {%d1, %d2}, [%d8]; st.global.v2.u64 [%out+16], {%d1, %d2};
    st.local.v4.u16 [own+8], {%r1, %r2, %r3, %r4}; ld.local.u64 %d1, [%d6+8]; st.global.u64 [%out+8], %d1;
    ld.u16 %h1, [%d6+10]; cvt.u64.u16 %d1, %h1; st.global.u64 [%out+32], %d1;
    cvta.to.shared.u64 %d2, %d8; sub.u64 %d2, %d2, %d9; st.global.u64 [%out+40], %d2;
    isspacep.shared %p1, %d8; isspacep.global %p2, %in; isspacep.local %p3, %d6; isspacep.global %p4, %d8;
    isspacep.const %p5, %in;
    selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, 2, 0, %p2; selp.u32 %r3, 4, 0, %p3; selp.u32 %r4, 8, 0, %p4;
    selp.u32 %r5, 16, 0, %p5;
    or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3; or.b32 %r1, %r1, %r4; or.b32 %r1, %r1, %r5;
    cvt.u64.u32 %d1, %r1; st.global.u64 [%out+48], %d1;
    mov.b64 {%r1, %r2}, %in; mov.b64 %d1, {%r1, %r2}; sub.s64 %d1, %d1, %in; st.global.u64 [%out+56], %d1;
    ld.global.u32 %r1, [%in]; mov.b32 {%h1, %h2}, %r1; mov.b32 %r2, {%h2, %h1}; cvt.u64.u32 %d1, %r2;
    st.global.u64 [%out+64], %d1;
    mov.b64 {_, %r2}, %in; prefetch.global.L2 [%in]; prefetchu.L1 [%in];
    applypriority.global.L2::evict_normal [%in], 128; createpolicy.fractional.L2::evict_first.b64 %d7, 0f3F000000;
    createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d7, [%in], 128, 256;
    """

    def wanted(lane: int) -> Lanes:
        parts = [low(given(lane, at // 2) >> 32 * (at % 2), 32) for at in range(4)]
        halves = sum(low(part, 16) << 16 * at for at, part in enumerate(parts))
        first = low(given(lane, 0), 32)
        swapped = first >> 16 | low(first, 16) << 16
        return [given(lane, 1), halves, given(lane, 0), given(lane, 1), low(parts[1], 16), 0, 1 | 2 | 4, 0, swapped]

    return Sample("vectors", body, wanted)


def variables() -> Sample:
    before = """
    .global .align 8 .u64 counter = 5;
    .const .align 4 .b32 table[4] = {10, 0x20, 30, -1};
    .global .align 8 .u64 pointers[2] = {table+4, generic(counter)};
    .global .align 4 .f32 half = 0f3F000000;
    """
    body = """
    ld.global.u64 %d1, [counter]; st.global.u64 [%out], %d1;
    and.b32 %r1, %t, 3; mul.wide.u32 %d2, %r1, 4; mov.u64 %d3, table; add.s64 %d3, %d3, %d2;
    ld.const.u32 %r2, [%d3]; cvt.u64.u32 %d1, %r2; st.global.u64 [%out+8], %d1;
    ld.const.u32 %r2, [table+8]; cvt.u64.u32 %d1, %r2; st.global.u64 [%out+16], %d1;
    ld.global.u64 %d4, [pointers]; ld.u32 %r2, [%d4]; cvt.u64.u32 %d1, %r2; st.global.u64 [%out+24], %d1;
    ld.global.u64 %d4, [pointers+8]; ld.u64 %d1, [%d4]; st.global.u64 [%out+32], %d1;
    ld.global.u32 %r2, [half]; cvt.u64.u32 %d1, %r2; st.global.u64 [%out+40], %d1;
    """
    table = [10, 0x20, 30, 0xFFFFFFFF]
    return Sample("variables", body, lambda lane: [5, table[lane & 3], 30, 0x20, 5, 0x3F000000], before)


def dynamic_shared() -> Sample:
    body = """
    mov.u32 %r1, room; shl.b32 %r2, %t, 2; add.s32 %r1, %r1, %r2; st.shared.u32 [%r1], %t; bar.warp.sync 0xffffffff;
    xor.b32 %r2, %r2, 124; ld.shared.u32 %r3, [room]; mov.u32 %r1, room; add.s32 %r1, %r1, %r2;
    ld.shared.u32 %r4, [%r1];
    cvt.u64.u32 %d1, %r4; st.global.u64 [%out], %d1; mov.u32 %r5, %dynamic_smem_size; cvt.u64.u32 %d1, %r5;
    st.global.u64 [%out+8], %d1;
    """
    return Sample("dynamic_shared", body, lambda lane: [31 - lane, 256], ".extern .shared .align 16 .b8 room[];")


# --------------------------------------------------------------------------------------------------------------- atomics


def atomics() -> Sample:
    """Each operation on a word of the lane's own; what was there before and what is there after."""
    cases: list[tuple[str, str, int, Callable[[int, int, int], int]]] = []

    def add(names: str, width: int, change: Callable[[int, int, int], int]) -> None:
        cases.extend((name, name.rpartition(".")[2], width, change) for name in names.split())

    add("add.u32 add.s32", 32, lambda old, v, _: old + v)
    add("add.u64 add.s64", 64, lambda old, v, _: old + v)
    add("exch.b32", 32, lambda _old, v, _: v)
    add("exch.b64", 64, lambda _old, v, _: v)
    for width in (32, 64):
        add(f"min.u{width}", width, lambda old, v, _: min(old, v))
        add(f"max.u{width}", width, lambda old, v, _: max(old, v))
        add(f"min.s{width}", width, lambda old, v, w: min(signed(old, w), signed(v, w)))
        add(f"max.s{width}", width, lambda old, v, w: max(signed(old, w), signed(v, w)))
        add(f"and.b{width}", width, lambda old, v, _: old & v)
        add(f"or.b{width}", width, lambda old, v, _: old | v)
        add(f"xor.b{width}", width, lambda old, v, _: old ^ v)
    add("inc.u32", 32, lambda old, v, _: 0 if old >= v else old + 1)
    add("dec.u32", 32, lambda old, v, _: v if old == 0 or old > v else old - 1)
    lines = ["ld.global.u64 %d1, [%in]; ld.global.u64 %d2, [%in+8]; cvt.u32.u64 %r2, %d2;"]
    for at, (name, _, width, _) in enumerate(cases):
        place, value = f"[%out+{16 * at}]", "%r2" if width == 32 else "%d2"
        keep = "cvt.u64.u32 %d3, %r3;" if width == 32 else ""
        result = "%r3" if width == 32 else "%d3"
        start = f"st.global.u{width} {place}, {'%r1' if width == 32 else '%d1'};"
        lines.append(f"mov.b64 %d4, 0; st.global.u64 {place}, %d4; cvt.u32.u64 %r1, %d1; {start}")
        lines.append(f"atom.global.{name} {result}, {place}, {value}; {keep} st.global.u64 [%out+{16 * at + 8}], %d3;")
    assert 2 * len(cases) <= WORDS

    def wanted(lane: int) -> Lanes:
        out = []
        for _, _, width, change in cases:
            old, value = low(given(lane, 0), width), low(given(lane, 1), width)
            out += [low(change(old, value, width), width), old]
        return out

    return Sample("atomics", "\n".join(lines), wanted)


def more_atomics() -> Sample:
    """Compare and swap, floating-point sums, reductions without a result, shared memory, every order and scope."""
    body = """
    .shared .align 8 .b8 cells[512];
    mov.u32 %r9, cells; shl.b32 %r8, %t, 3; add.s32 %r9, %r9, %r8; cvt.u64.u32 %d5, %t; st.shared.u64 [%r9], %d5;
    atom.shared.cas.b32 %r1, [%r9], %t, 77; ld.shared.u32 %r2, [%r9]; mov.b64 %d1, {%r1, %r2};
    st.global.u64 [%out], %d1;
    atom.shared.cas.b64 %d1, [%r9], 1, 2; st.global.u64 [%out+8], %d1;
    st.global.u64 [%out+16], %d5; cvt.rn.f32.u32 %f1, %t; st.global.f32 [%out+16], %f1;
    atom.global.add.f32 %f2, [%out+16], 0f3F800000; st.global.u64 [%out+24], %d5; st.global.f32 [%out+24], %f2;
    cvt.rn.f64.u32 %g1, %t; st.global.f64 [%out+32], %g1; red.global.add.f64 [%out+32], 0d3FE0000000000000;
    mov.b32 %r3, 0x3C003C00; mov.b64 %d6, 0; st.global.u64 [%out+40], %d6; st.global.u32 [%out+40], %r3;
    atom.global.add.noftz.f16x2 %r4, [%out+40], %r3; mov.b16 %h1, 0x3C00; red.global.add.noftz.f16 [%out+40], %h1;
    st.global.u64 [%out+48], %d5;
    """
    orders = ["", ".relaxed.gpu", ".acquire.cta", ".release.sys", ".acq_rel.cluster"]
    body += " ".join(
        f"red{order}.global.add.u64 [%out+48], 1; atom{order}.global.add.u32 %r1, [%out+48], 1;" for order in orders
    )
    body += " atom.add.release.gpu.u32 %r1, [%out+48], 1; atom.cas.b16 %h2, [%out+48], %h1, %h1;"
    body += " atom.global.cta.relaxed.cas.b32 %r1, [%out+48], 7777, 1; mov.b64 %d7, 0; "
    body += "st.global.u64 [%out+64], %d7; st.global.u64 [%out+72], %d7; mov.b32 %f1, 0f3F800000; "
    body += "atom.global.v2.f32.add {%f2, %f3}, [%out+64], {%f1, %f1}; "
    body += "red.relaxed.gpu.global.add.v2.f32 [%out+64], {%f1, %f1}; "
    body += (
        " red.shared.max.u32 [%r9], 1000; ld.shared.u32 %r1, [%r9]; cvt.u64.u32 %d1, %r1; st.global.u64 [%out+56], %d1;"
    )

    def bits32(value: float) -> int:
        return int(np.float32(value).view(np.uint32))

    def wanted(lane: int) -> Lanes:
        return [
            77 << 32 | lane,
            77,
            bits32(lane + 1),
            bits32(lane),
            int(np.float64(lane + 0.5).view(np.uint64)),
            0x40004200,
            lane + 11,
            1000,
            0x4000000040000000,
        ]

    return Sample("more_atomics", body, wanted)


def async_copies() -> Sample:
    body = """
    .shared .align 16 .b8 staged[1536];
    mov.u32 %r9, staged; mul.lo.u32 %r8, %t, 48; add.s32 %r9, %r9, %r8; mov.u32 %r7, 3;
    cp.async.ca.shared.global [%r9], [%in], 8; cp.async.cg.shared::cta.global.L2::128B [%r9+16], [%in+16], 16;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r9+8], [%in+8], 4; cp.async.ca.shared.global [%r9+32], [%in+32], 8, %r7;
    cp.async.commit_group;
    cp.async.wait_group 1; ld.shared.u64 %d1, [%r9]; st.global.u64 [%out], %d1; ld.shared.u64 %d1, [%r9+24];
    st.global.u64 [%out+8], %d1;
    setp.ne.u32 %p1, %t, 99; cp.async.ca.shared.global [%r9+40], [%in+40], 8, %p1;
    cp.async.wait_all; ld.shared.u64 %d1, [%r9+40]; st.global.u64 [%out+32], %d1;
    ld.shared.u32 %r1, [%r9+8]; cvt.u64.u32 %d1, %r1; st.global.u64 [%out+16], %d1;
    ld.shared.u64 %d1, [%r9+32]; st.global.u64 [%out+24], %d1;
    """
    return Sample(
        "async_copies",
        body,
        lambda lane: [given(lane, 0), given(lane, 3), low(given(lane, 1), 32), low(given(lane, 4), 24), 0],
    )


SAMPLES = [loads(), stores(), vectors(), variables(), dynamic_shared(), atomics(), more_atomics(), async_copies()]
