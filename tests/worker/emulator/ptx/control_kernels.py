"""Kernels of warp instructions, barriers, calls and branches."""

from __future__ import annotations

from tests.worker.emulator.ptx.sample import Lanes, Sample, given, low

# ----------------------------------------------------------------------------------------------------------------- warps

SEGMENTS = [(31, 0), (15, 16), (7, 24), (31, 24), (0, 0), (3, 28)]


def shuffles() -> Sample:
    lines, cases = ["ld.global.u32 %r1, [%in];"], []
    for how in ("up", "down", "bfly", "idx"):
        for by, (clamp, segment) in zip((1, 3, 8, 17, 30, 0), SEGMENTS, strict=True):
            if how == "up":
                clamp = 0
            c = segment << 8 | clamp
            lines.append(f"shfl.sync.{how}.b32 %r2|%p1, %r1, {by}, {c}, 0xffffffff; selp.u32 %r3, 1, 0, %p1;")
            lines.append(f"mov.b64 %d1, {{%r2, %r3}}; st.global.u64 [%out+{8 * len(cases)}], %d1;")
            cases.append((how, by, clamp, segment))

    def wanted(lane: int) -> Lanes:
        out = []
        for how, by, clamp, segment in cases:
            last, first = (lane & segment) | (clamp & ~segment & 31), lane & segment
            source = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": first | by & ~segment & 31}[how]
            there = source >= last if how == "up" else source <= last
            out.append(low(given(source if there else lane, 0), 32) | there << 32)
        return out

    return Sample("shuffles", "\n".join(lines), wanted)


def votes() -> Sample:
    body = """
    setp.gt.u32 %p1, %t, 20; setp.lt.u32 %p2, %t, 64; and.b32 %r1, %t, 1; mov.u32 %r9, 0x0000ffff;
    setp.lt.u32 %p3, %t, 16;
    vote.sync.ballot.b32 %r2, %p1, 0xffffffff; cvt.u64.u32 %d1, %r2; st.global.u64 [%out], %d1;
    vote.sync.any.pred %p4, %p1, 0xffffffff; vote.sync.all.pred %p5, %p1, 0xffffffff;
    vote.sync.uni.pred %p6, %p2, 0xffffffff;
    vote.sync.uni.pred %p7, !%p1, 0xffffffff;
    selp.u32 %r2, 1, 0, %p4; selp.u32 %r3, 2, 0, %p5; selp.u32 %r4, 4, 0, %p6; selp.u32 %r5, 8, 0, %p7;
    add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5; cvt.u64.u32 %d1, %r2;
    st.global.u64 [%out+8], %d1;
    match.any.sync.b32 %r2, %r1, 0xffffffff; cvt.u64.u32 %d1, %r2; st.global.u64 [%out+16], %d1;
    match.all.sync.b32 %r2|%p4, %r1, 0xffffffff; selp.u32 %r3, 1, 0, %p4; mov.b64 %d1, {%r2, %r3};
    st.global.u64 [%out+24], %d1;
    cvt.u64.u32 %d2, %r9; match.all.sync.b64 %r2|%p4, %d2, 0xffffffff; selp.u32 %r3, 1, 0, %p4;
    mov.b64 %d1, {%r2, %r3}; st.global.u64 [%out+32], %d1;
    redux.sync.add.u32 %r2, %t, 0xffffffff; redux.sync.min.s32 %r3, %t, 0xffffffff; mov.b64 %d1, {%r2, %r3};
    st.global.u64 [%out+40], %d1;
    sub.s32 %r4, %t, 10; redux.sync.max.s32 %r2, %r4, 0xffffffff; redux.sync.min.s32 %r3, %r4, 0xffffffff;
    mov.b64 %d1, {%r2, %r3}; st.global.u64 [%out+48], %d1;
    redux.sync.min.u32 %r2, %r4, 0xffffffff; redux.sync.max.u32 %r3, %r4, 0xffffffff; mov.b64 %d1, {%r2, %r3};
    st.global.u64 [%out+56], %d1;
    redux.sync.and.b32 %r2, %r4, 0xffffffff; redux.sync.or.b32 %r3, %t, 0xffffffff; mov.b64 %d1, {%r2, %r3};
    st.global.u64 [%out+64], %d1;
    vote.ballot.sync.b32 %r2, %p1, 0xffffffff; match.sync.any.b32 %r2, %r1, 0xffffffff;
    redux.sync.xor.b32 %r2, %t, 0xffffffff; redux.sync.add.s32 %r3, %r4, 0xffffffff; mov.b64 %d1, {%r2, %r3};
    st.global.u64 [%out+72], %d1;
    @!%p3 bra AFTER;
    vote.sync.ballot.b32 %r2, %p2, %r9; activemask.b32 %r3; elect.sync %r4|%p4, %r9; selp.u32 %r5, 1, 0, %p4;
    bar.warp.sync %r9;
    mov.b64 %d1, {%r2, %r3}; st.global.u64 [%out+80], %d1; mov.b64 %d1, {%r4, %r5}; st.global.u64 [%out+88], %d1;
    AFTER:
    """

    def wanted(lane: int) -> Lanes:
        same = 0xAAAAAAAA if lane & 1 else 0x55555555
        out = [0xFFE00000, 1 + 4, same, 0, 1 << 32 | 0xFFFFFFFF, 496, 21 | low(-10, 32) << 32, 0 | 0xFFFFFFFF << 32]
        out += [0 | 31 << 32, 0 | (496 - 320) << 32]
        return out + ([0xFFFF | 0xFFFF << 32, (lane == 0) << 32] if lane < 16 else [])

    return Sample("votes", body, wanted)


def registers() -> Sample:
    names = ["%ctaid.x", "%ntid.x", "%nctaid.x", "%laneid", "%warpid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le"]
    names += ["%lanemask_gt", "%lanemask_ge", "%tid.y", "WARP_SZ", "%ntid.z"]
    lines = [
        f"mov.u32 %r1, {name}; cvt.u64.u32 %d1, %r1; st.global.u64 [%out+{8 * at}], %d1;"
        for at, name in enumerate(names)
    ]
    lines.append("mov.u64 %d1, %clock64; mov.u32 %r1, %clock; mov.u64 %d2, %globaltimer; mov.u32 %r2, %nsmid;")

    def wanted(thread: int) -> Lanes:
        lane, one = thread % 32, 1 << thread % 32
        below = one - 1
        return [
            0,
            64,
            1,
            lane,
            thread // 32,
            one,
            below,
            below | one,
            0xFFFFFFFF & ~(below | one),
            0xFFFFFFFF & ~below,
            0,
            32,
            1,
        ]

    return Sample("registers", "\n".join(lines), wanted, launch=(1, 64, False))


def barriers() -> Sample:
    """A producer and a consumer warp at numbered barriers, votes at barrier 0, fences and hints."""
    body = """
    .shared .align 8 .b8 slot[256];
    mov.u32 %r9, slot; and.b32 %r8, %t, 31; shl.b32 %r7, %r8, 3; add.s32 %r9, %r9, %r7;
    setp.ge.u32 %p1, %t, 32; cvt.u64.u32 %d1, %r8;
    @%p1 bra CONSUMER;
    st.shared.u64 [%r9], %d1; membar.cta; bar.arrive 3, 64; barrier.cta.sync 4, 64; bra.uni JOINED;
    CONSUMER: bar.sync 3, 64; ld.shared.u64 %d2, [%r9]; add.s64 %d2, %d2, 100; st.global.u64 [%out], %d2;
    barrier.cta.arrive 4, 64;
    JOINED: bar.sync 0; barrier.sync.aligned 0; fence.acq_rel.gpu; fence.sc.sys; membar.gl; nanosleep.u32 20;
    griddepcontrol.wait;
    setp.lt.u32 %p2, %r8, 5; bar.red.popc.u32 %r1, 0, %p2; barrier.cta.red.and.pred %p3, 0, %p2;
    bar.red.or.pred %p4, 0, %p2;
    selp.u32 %r2, 1, 0, %p3; selp.u32 %r3, 2, 0, %p4; add.u32 %r2, %r2, %r3; mov.b64 %d3, {%r1, %r2};
    st.global.u64 [%out+8], %d3;
    """

    def wanted(thread: int) -> Lanes:
        return [100 + thread % 32 if thread >= 32 else -1, 10 | 2 << 32]

    return Sample("barriers", body, wanted, launch=(1, 64, False))


# --------------------------------------------------------------------------------------------------------------- control


def control() -> Sample:
    """Calls with and without results, a switch by table, a loop, labels that a block repeats, both results of setp."""
    before = """
    .func (.param .b64 sum) plus(.param .b64 a, .param .align 8 .b8 pair[16]) {
      .reg .b64 %d<5>; .reg .pred %p1; ld.param.u64 %d1, [a]; ld.param.u64 %d2, [pair]; ld.param.u64 %d3, [pair+8];
      add.s64 %d1, %d1, %d2; add.s64 %d1, %d1, %d3; st.param.u64 [sum], %d1; setp.eq.u64 %p1, %d1, 0;
      @%p1 ret; ret.uni;
    }
    .func down(.param .b64 at, .param .b32 count) {
      .reg .b64 %d<3>; .reg .b32 %r<3>; .reg .pred %p1; ld.param.u64 %d1, [at]; ld.param.u32 %r1, [count];
      setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE;
      ld.u64 %d2, [%d1]; add.s64 %d2, %d2, 3; st.u64 [%d1], %d2; sub.u32 %r1, %r1, 1;
      { .param .b64 p0; .param .b32 p1; st.param.b64 [p0], %d1; st.param.b32 [p1], %r1; call.uni down, (p0, p1); }
      DONE: ret;
    }
    """
    body = """
    cvt.u64.u32 %d1, %t; mov.b64 %d2, 1000; mov.b64 %d3, 10000;
    { .param .b64 p0; .param .align 8 .b8 p1[16]; .param .b64 r0; st.param.b64 [p0], %d1;
    st.param.v2.b64 [p1], {%d2, %d3};
      call.uni (r0), plus, (p0, p1); ld.param.b64 %d4, [r0]; }
    st.global.u64 [%out], %d4; st.global.u64 [%out+8], %d1; add.s64 %d5, %out, 8;
    { .param .b64 p0; .param .b32 p1; st.param.b64 [p0], %d5; st.param.b32 [p1], %t; call down, (p0, p1); }
    and.b32 %r1, %t, 3; mov.b64 %d6, 0;
    TABLE: .branchtargets ZERO, ONE, TWO, ONE;
    brx.idx %r1, TABLE;
    ZERO: mov.b64 %d6, 70; bra.uni SWITCHED;
    ONE: mov.b64 %d6, 71; bra.uni SWITCHED;
    TWO: mov.b64 %d6, 72;
    SWITCHED: st.global.u64 [%out+16], %d6;
    mov.u32 %r2, 0; mov.b64 %d7, 0;
    LOOP: cvt.u64.u32 %d8, %r2; add.s64 %d7, %d7, %d8; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %t; @%p1 bra LOOP;
    st.global.u64 [%out+24], %d7;
    { .reg .b32 %r1; mov.u32 %r1, 5; bra IN; IN: cvt.u64.u32 %d9, %r1; }
    { .reg .b32 %r1; mov.u32 %r1, 6; bra IN; IN: cvt.u64.u32 %d10, %r1; add.s64 %d9, %d9, %d10; }
    cvt.u64.u32 %d10, %r1; shl.b64 %d10, %d10, 8; or.b64 %d9, %d9, %d10; st.global.u64 [%out+32], %d9;
    setp.lt.u32 %p1|%p2, %t, 9; selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 2, 0, %p2; add.u32 %r3, %r3, %r4;
    cvt.u64.u32 %d9, %r3; st.global.u64 [%out+40], %d9;
    setp.lt.or.u32 %p4|%p5, %t, 20, %p1; selp.u32 %r3, 1, 0, %p4; selp.u32 %r4, 2, 0, %p5; add.u32 %r3, %r3, %r4;
    mov.u32 %r4, %envreg0; add.u32 %r3, %r3, %r4; cvt.u64.u32 %d11, %r3; st.global.u64 [%out+64], %d11;
    mov.pred %p3, %p2; @%p3 st.global.u64 [%out+48], %d9; @%p1 exit; brkpt;
    st.global.u64 [%out+56], %d9;
    """

    def wanted(lane: int) -> Lanes:
        small = lane < 9
        kind = 1 if small else 2
        switch = [70, 71, 72, 71][lane & 3]
        out = [lane + 11000, lane + 3 * lane, switch, sum(range(lane)), 11 | (lane & 3) << 8, kind]
        return [*out, -1 if small else kind, -1 if small else kind, 3 if small else 1 if lane < 20 else 2]

    return Sample("control", body, wanted, before)


def grid() -> Sample:
    """Blocks that wait for one another, as cooperative_groups does it: a counter in the memory that %envreg1 and 2 name."""
    body = """
    mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %d1, {%r2, %r1}; mov.u32 %r3, %ctaid.x;
    setp.ne.u32 %p1, %t, 0;
    mad.wide.u32 %d2, %r3, 8, %out; add.u32 %r4, %r3, 1; cvt.u64.u32 %d3, %r4; @%p1 bra WAITED;
    st.global.u64 [%d2], %d3;
    fence.acq_rel.gpu; atom.add.release.gpu.u32 %r5, [%d1+4], 1;
    WAIT: ld.acquire.gpu.u32 %r6, [%d1+4]; setp.lt.u32 %p2, %r6, 3; @%p2 bra WAIT;
    WAITED: bar.sync 0; xor.b32 %r7, %r3, 1; setp.gt.u32 %p3, %r3, 1; @%p3 ret; @%p1 ret;
    mad.wide.u32 %d2, %r7, 8, %out; ld.global.u64 %d4, [%d2]; mad.wide.u32 %d2, %r3, 8, %out;
    st.global.u64 [%d2+32], %d4;
    """
    return Sample("grid", body, lambda lane: [1, 2, 3, -1, 2, 1] if lane == 0 else [], launch=(3, 32, True))


TEXT, WORD = r"n=%d u=%5u c=%c x=%#x l=%lld f=%.3f s=%s p%%", "word"


def _characters(text: str) -> str:
    return ", ".join(str(code) for code in (*text.encode(), 10, 0))


PRINTED = "n=-7 u=   12 c=A x=0x1f l=-5000000000 f=0.125 s=word\n p%\n"
PRINTING = f"""
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 $str[{len(TEXT) + 2}] = {{{_characters(TEXT)}}};
.global .align 1 .b8 $word[{len(WORD) + 2}] = {{{_characters(WORD)}}};
.visible .entry printing(.param .u64 printing_a, .param .u64 printing_b) {{
.local .align 8 .b8 list[64]; .reg .b64 %d<9>; .reg .b32 %r<4>;
st.local.b32 [list], -7; st.local.b32 [list+4], 12; st.local.b32 [list+8], 65; st.local.b32 [list+12], 31;
mov.b64 %d1, -5000000000; st.local.b64 [list+16], %d1; st.local.b64 [list+24], 0d3FC0000000000000;
mov.u64 %d2, $word; st.local.b64 [list+32], %d2; mov.u64 %d3, list; cvta.local.u64 %d3, %d3; mov.u64 %d4, $str;
{{ .param .b64 p0; .param .b64 p1; .param .b32 r0; st.param.b64 [p0], %d4; st.param.b64 [p1], %d3;
call.uni (r0), vprintf, (p0, p1); ld.param.b32 %r1, [r0]; }}
{{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4; st.param.b64 [p0], %d2;
st.param.b64 [p1], %d2; st.param.b32 [p2], 41; st.param.b64 [p3], %d2; st.param.b64 [p4], 1;
call.uni __assertfail, (p0, p1, p2, p3, p4); }}
ret;
}}
"""
"""A kernel that prints one of everything and then asserts what does not hold."""


def pointers() -> Sample:
    """Calls through pointers to functions: from a table in memory, and one that ends the thread inside the function."""
    before = """
    .func (.param .b32 r) doubled(.param .b32 a) {
      .reg .b32 %r<3>; ld.param.u32 %r1, [a]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret;
    }
    .func (.param .b32 r) ends(.param .b32 a) {
      .reg .b32 %r<3>; .reg .pred %p1; ld.param.u32 %r1, [a]; setp.gt.u32 %p1, %r1, 20; @%p1 exit;
      add.u32 %r1, %r1, 100; st.param.b32 [r], %r1; ret;
    }
    .global .align 8 .u64 functions[2] = {doubled, ends};
    """
    body = """
    and.b32 %r1, %t, 1; mul.wide.u32 %d1, %r1, 8; mov.u64 %d2, functions; add.s64 %d2, %d2, %d1;
    ld.global.u64 %d3, [%d2];
    { .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %t; proto: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (r0), %d3, (p0), proto; ld.param.b32 %r2, [r0]; }
    mov.u64 %d4, doubled;
    { .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r2; other: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (r0), %d4, (p0), other; ld.param.b32 %r3, [r0]; }
    cvt.u64.u32 %d5, %r3; st.global.u64 [%out], %d5;
    """

    def wanted(lane: int) -> Lanes:
        return [4 * lane if lane % 2 == 0 else 2 * (lane + 100) if lane <= 20 else -1]

    return Sample("pointers", body, wanted, before)


SAMPLES = [pointers(), shuffles(), votes(), registers(), barriers(), control(), grid()]
