"""Kernels of barrier objects, bulk copies and clusters (PTX ISA, "mbarrier", "cp.async.bulk", "barrier.cluster")."""

from __future__ import annotations

from tests.worker.emulator.ptx.sample import Lanes, Sample, given, low

HALF = 32
"""Threads of each block below; a cluster has two blocks."""


def objects() -> Sample:
    """Two warps: one arrives, the other waits; then phases with counts, with drops, and by a token."""
    body = """
    .shared .align 8 .b8 gates[24]; .shared .align 8 .b8 slot[512];
    mov.u32 %r1, gates; mov.u32 %r2, slot; and.b32 %r8, %t, 31; shl.b32 %r3, %r8, 3; add.s32 %r2, %r2, %r3;
    setp.eq.u32 %p1, %t, 0; setp.ge.u32 %p2, %t, 32;
    @%p1 mbarrier.init.shared.b64 [%r1], 32; @%p1 mbarrier.init.shared::cta.b64 [%r1+8], 64;
    @%p1 mbarrier.init.shared.b64 [%r1+16], 64; fence.mbarrier_init.release.cluster; fence.proxy.async;
    bar.sync 0;
    cvt.u64.u32 %d1, %r8; add.s64 %d1, %d1, 500;
    @%p2 bra TAKES;
    st.shared.u64 [%r2], %d1; mbarrier.arrive.release.cta.shared::cta.b64 %d2, [%r1];
    mbarrier.pending_count.b64 %r4, %d2; setp.le.u32 %p3, %r4, 32; @!%p3 trap; bra.uni BOTH;
    TAKES: mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0; @!%p3 bra TAKES;
    ld.shared.u64 %d3, [%r2]; st.global.u64 [%out], %d3;
    BOTH: mbarrier.arrive.shared.b64 %d2, [%r1+8];
    AGAIN: mbarrier.test_wait.acquire.cta.shared::cta.b64 %p3, [%r1+8], %d2; @!%p3 bra AGAIN;
    setp.lt.u32 %p4, %t, 16; @%p4 mbarrier.arrive_drop.shared.b64 %d4, [%r1+16];
    @!%p4 mbarrier.arrive.shared::cluster.b64 _, [%r1+16], 1;
    FIRST: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p3, [%r1+16], 0, 1000; @!%p3 bra FIRST;
    @%p4 bra DONE;
    mbarrier.arrive.noComplete.shared.b64 %d4, [%r1+16], 1;
    SECOND: mbarrier.try_wait.parity.shared.b64 %p3, [%r1+16], 1; @!%p3 bra SECOND;
    mov.b64 %d5, 7; st.global.u64 [%out+8], %d5;
    DONE: bar.sync 0; @%p1 mbarrier.inval.shared.b64 [%r1];
    """

    def wanted(thread: int) -> Lanes:
        return [500 + thread % 32 if thread >= 32 else -1, -1 if thread < 16 else 7]

    return Sample("objects", body, wanted, launch=(1, 64, False))


def bulk() -> Sample:
    """A copy into shared memory that a barrier object waits for; then one back, in a group; and ordinary copies that arrive."""
    body = """
    .shared .align 16 .b8 tile[2048]; .shared .align 8 .b8 gate[8]; .shared .align 16 .b8 back[2048];
    mov.u32 %r1, tile; mov.u32 %r2, gate; mov.u32 %r3, back; setp.eq.u32 %p1, %t, 0; shl.b32 %r4, %t, 6;
    @%p1 mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;
    @!%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 %d1, [%r2], 2048;
    cp.async.bulk.prefetch.L2.global [%in], 2048;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 1024, [%r2];
    add.s64 %d2, %in, 1024;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+1024], [%d2], 1024, [%r2];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;
    add.s32 %r5, %r1, %r4; ld.shared.u64 %d3, [%r5]; st.global.u64 [%out], %d3; add.s32 %r6, %r3, %r4;
    add.s64 %d3, %d3, 1; st.shared.u64 [%r6], %d3; st.shared.u64 [%r6+8], %d3; fence.proxy.async.shared::cta; bar.sync 0;
    add.s64 %d4, %out, 16; cp.async.bulk.global.shared::cta.bulk_group [%d4], [%r6], 16; cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0; ld.global.u64 %d5, [%out+16]; st.global.u64 [%out+8], %d5;
    bar.sync 0; @%p1 mbarrier.init.shared.b64 [%r2], 32; bar.sync 0;
    cp.async.ca.shared.global [%r6], [%in+8], 8; cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];
    LAST: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra LAST;
    ld.shared.u64 %d6, [%r6]; st.global.u64 [%out+32], %d6;
    cp.async.mbarrier.arrive.shared.b64 [%r2]; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 8;
    mbarrier.complete_tx.shared.b64 [%r2], 8;
    """

    def wanted(lane: int) -> Lanes:
        first = given(lane, 0)
        return [first, low(first + 1, 64), low(first + 1, 64), low(first + 1, 64), given(lane, 1)]

    return Sample("bulk", body, wanted)


def clusters() -> Sample:
    """Two blocks: each reads and adds to the other's shared memory, by both kinds of address, and signals its object."""
    body = """
    .shared .align 16 .b8 mine[1024]; .shared .align 8 .b8 gate[8];
    mov.u32 %r1, mine; mov.u32 %r2, gate; shl.b32 %r3, %t, 3; add.s32 %r4, %r1, %r3; setp.eq.u32 %p1, %t, 0;
    mov.u32 %r5, %cluster_ctarank; mov.u32 %r6, %ctaid.x; mul.wide.u32 %d0, %r6, 16384; add.s64 %out, %out, %d0;
    @%p1 mbarrier.init.shared.b64 [%r2], 32;
    mad.lo.u32 %r7, %r6, 1000, %t; cvt.u64.u32 %d1, %r7; st.shared.u64 [%r4], %d1; st.shared.u64 [%r4+512], %d1;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    xor.b32 %r8, %r5, 1; mapa.shared::cluster.u32 %r9, %r4, %r8; ld.shared::cluster.u64 %d2, [%r9];
    st.global.u64 [%out], %d2;
    cvt.u64.u32 %d3, %r4; cvta.shared.u64 %d3, %d3; mapa.u64 %d4, %d3, %r8; ld.u64 %d5, [%d4+512];
    st.global.u64 [%out+8], %d5;
    atom.shared::cluster.add.u64 %d6, [%r9], 5; getctarank.shared::cluster.u32 %r10, %r9; getctarank.u64 %r11, %d4;
    cvta.shared::cluster.u64 %d10, %r9;
    """.replace("cvta.shared::cluster.u64 %d10, %r9;", "cvt.u64.u32 %d9, %r9; cvta.shared::cluster.u64 %d10, %d9;")
    body += """
    mov.b64 %d7, {%r10, %r11}; st.global.u64 [%out+16], %d7; sub.s64 %d10, %d10, %d4; st.global.u64 [%out+24], %d10;
    mapa.shared::cluster.u32 %r12, %r2, %r8; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
    WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra WAIT;
    ld.shared.u64 %d8, [%r4]; st.global.u64 [%out+32], %d8;
    mov.u32 %r13, %cluster_nctarank; mov.u32 %r14, %clusterid.x; mov.b64 %d9, {%r13, %r14}; st.global.u64 [%out+40], %d9;
    mov.u32 %r13, %nclusterid.x; mov.u32 %r14, %cluster_ctaid.x; mov.b64 %d9, {%r13, %r14}; st.global.u64 [%out+48], %d9;
    barrier.cluster.arrive; barrier.cluster.wait;
    """

    def wanted(thread: int) -> Lanes:
        block, lane = divmod(thread, HALF)
        rank, other = block % 2, block ^ 1
        return [
            1000 * other + lane,
            1000 * other + lane,
            (rank ^ 1) | (rank ^ 1) << 32,
            0,
            1000 * block + lane + 5,
            2 | block // 2 << 32,
            2 | rank << 32,
        ]

    return Sample("clusters", body, wanted, launch=(4, HALF, False))


SAMPLES = [objects(), bulk(), clusters()]
