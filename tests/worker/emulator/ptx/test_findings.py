"""What the check pass finds in translated code, and whom it names: the other side of a race is another thread, of another warp
where one took part, and what is missing is told by that."""

from __future__ import annotations

import numpy as np
import pytest

from tests.worker.emulator.ptx.machine import Launch, Programs, played, programs
from worker.emulator.findings import Finding
from worker.emulator.toolchain import Pass, Toolchain
from worker.sandbox import Sandbox

HEAD = """
.visible .entry {name}(.param .u64 {name}_in, .param .u64 {name}_out) {{
.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>; .shared .align 4 .b8 {name}_words[1024];
.loc 1 1 1
mov.u32 %r1, %tid.x; mov.u32 %r2, {name}_words; shl.b32 %r3, %r1, 2; add.s32 %r3, %r2, %r3; mov.b32 %r4, 5;
ld.param.u64 %d1, [{name}_out]; mad.wide.u32 %d1, %r1, 4, %d1;
{body}
ret;
}}
"""
ALL_READ_ONE = "st.shared.u32 [%r3], %r1; bar.sync 0;\n.loc 1 6 1\nld.shared.u32 %r5, [%r2];\n.loc 1 7 1\n"
GUESS = "st.shared.u32 [%r3], %r1; bar.sync 0; ld.shared.u32 %r5, [%r2];\n"
SWAP = """AGAIN: max.u32 %r6, %r5, %r1; atom.shared.cas.b32 %r7, [%r2], %r5, %r6; setp.ne.u32 %p1, %r7, %r5; mov.u32 %r5, %r7;
@%p1 bra AGAIN;
"""
BODIES = {
    # Lanes 0 to 3 of warp 1 meet the barrier of line 9, the others of the same warp that of line 10.
    "parted": "setp.ge.u32 %p1, %r1, 36; @%p1 bra OTHERS;\n.loc 1 9 1\nbar.sync 0;\nOTHERS:\n.loc 1 10 1\nbar.sync 0;",
    # Whole warps may meet different barriers, and threads that are gone meet none.
    "whole": "setp.eq.u32 %p2, %r1, 63; @%p2 ret; setp.ge.u32 %p1, %r1, 32; @%p1 bra OTHERS;\nbar.sync 0; bra.uni LAST;\n"
    "OTHERS: bar.sync 0;\nLAST: bar.sync 0;",
    "two_warps": ALL_READ_ONE
    + "st.global.u32 [%d1], %r5; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; st.shared.u32 [%r2], %r4; DONE:",
    # A float's own atomicMax: what is read plainly is compared before anything is stored.
    "guess": GUESS + SWAP,
    # Another word than the one that is compared, which thread 1 then writes.
    "guess_of_another": GUESS.replace("[%r2]", "[%r2+4]")
    + SWAP
    + "setp.ne.u32 %p2, %r1, 40; @%p2 bra DONE; st.shared.u32 [%r2+4], %r4; DONE:",
    "guess_not_compared": GUESS.replace("%r5", "%r8") + "st.global.u32 [%d1], %r8; mov.b32 %r5, 0;\n" + SWAP,
    "guess_of_a_plain_word": GUESS + SWAP + "setp.ne.u32 %p2, %r1, 40; @%p2 bra DONE; st.shared.u32 [%r2], %r4; DONE:",
    # nvcc reads ahead of a choice: thread 0 takes the constant, and in the second one the word that nothing has written.
    "spare": "ld.shared.u32 %r5, [%r3]; setp.ge.u32 %p1, %r1, 0; selp.b32 %r6, %r4, %r5, %p1; st.global.u32 [%d1], %r6;",
    "spare_taken": "\n.loc 1 6 1\nld.shared.u32 %r5, [%r3];\n.loc 1 7 1\nsetp.eq.u32 %p1, %r1, 3; "
    "selp.b32 %r6, %r5, %r4, %p1; st.global.u32 [%d1], %r6;",
    "one_warp": ALL_READ_ONE
    + "setp.ne.u32 %p1, %r1, 0; shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1; st.global.u32 [%d1], %r6; @%p1 bra DONE;\n"
    "st.shared.u32 [%r2], %r4; DONE:",
}
FILE = '.file 1 "/somewhere/kernel.cu"\n'


@pytest.fixture(scope="module")
def made(compiler: Toolchain, sandbox: Sandbox) -> Programs:
    del compiler
    text = "".join(HEAD.format(name=name, body=body) for name, body in BODIES.items())
    return programs(text + FILE, sandbox, [Pass.CHECK])


def _found(made: Programs, sandbox: Sandbox, name: str, threads: int) -> tuple[Finding | None, str]:
    ran = played(made, sandbox, [Launch(name, block=threads)], np.zeros(16, np.uint64), 256, Pass.CHECK)
    return ran.finding, ran.finding.sentence(ran.lines) if ran.finding else ""


def test_a_warp_that_a_barrier_parts_is_found(made: Programs, sandbox: Sandbox) -> None:
    finding, sentence = _found(made, sandbox, "parted", 64)
    assert finding is not None
    assert (finding.kind, finding.site.thread) == ("warp_divergence", (36, 0, 0))
    assert "a part of a warp meets this barrier" in sentence
    assert "line 10" in sentence
    assert "a wait: line 9, block (0, 0, 0), thread (35, 0, 0)" in sentence


def test_whole_warps_may_meet_different_barriers(made: Programs, sandbox: Sandbox) -> None:
    finding, sentence = _found(made, sandbox, "whole", 64)
    assert finding is None, sentence


@pytest.mark.parametrize("name", ["guess", "spare"])
def test_a_read_that_only_guesses_or_is_not_taken_is_no_finding(made: Programs, sandbox: Sandbox, name: str) -> None:
    finding, sentence = _found(made, sandbox, name, 64)
    assert finding is None, sentence


@pytest.mark.parametrize("name", ["guess_of_another", "guess_not_compared", "guess_of_a_plain_word"])
def test_a_read_beside_a_compare_and_swap_is_a_race_where_it_is_no_guess(
    made: Programs, sandbox: Sandbox, name: str
) -> None:
    finding, _ = _found(made, sandbox, name, 64)
    assert finding is not None
    assert finding.kind == "race"


def test_a_word_that_nothing_has_written_is_found_where_it_is_taken(made: Programs, sandbox: Sandbox) -> None:
    finding, sentence = _found(made, sandbox, "spare_taken", 64)
    assert finding is not None
    assert (finding.kind, finding.site.thread) == ("uninitialised", (3, 0, 0))
    assert "line 7" in sentence


@pytest.mark.parametrize(("name", "threads"), [("two_warps", 64), ("one_warp", 32)])
def test_a_race_names_another_thread_and_what_is_missing(
    made: Programs, sandbox: Sandbox, name: str, threads: int
) -> None:
    finding, sentence = _found(made, sandbox, name, threads)
    assert finding is not None
    assert finding.kind == "race"
    assert finding.other is not None
    assert finding.site.thread is not None
    assert finding.other.thread is not None
    assert finding.other.thread != finding.site.thread
    assert "line 6" in sentence
    assert "line 7" in sentence
    within = finding.other.thread[0] // 32 == finding.site.thread[0] // 32
    assert within == (name == "one_warp")
    assert ("__syncwarp()" in sentence) == within
    assert ("a shuffle or a vote orders no memory" in sentence) == within
