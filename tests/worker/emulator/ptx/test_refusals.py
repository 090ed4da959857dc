"""What is not known is refused by its name, with the submitter's line and the kernel; nothing is guessed at."""

from __future__ import annotations

import numpy as np
import pytest

from tests.worker.emulator.ptx.machine import HEAD, Launch, played, programs
from worker.emulator.ptx import PtxError, translate
from worker.emulator.toolchain import Pass, Toolchain
from worker.sandbox import Sandbox

KERNEL = """.visible .entry first(.param .u64 first_a) {{
.reg .b64 %d<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .pred %p<3>; .reg .b16 %h<3>;
.loc 1 7 3
mov.b32 %r1, 5;
.loc 1 12 3
.loc 2 900 1, function_name $name, inlined_at 1 12 3
{statement}
ret;
}}
.file 1 "/somewhere/kernel.cu"
.file 2 "/cuda/include/header.h"
"""
UNKNOWN = {
    "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%r1], 32;": "`tcgen05.alloc.cta_group::1.sync.aligned.b32` is not known",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1,%f2}, {%r1}, {%r2}, {%f1};": "f32.f16.f16.f32` is not known",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2}, {%r1}, {%r2}, {%f1};": "1 registers where a fragment has 4",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 %r1, %r1, %r1, %r1;": "f32.f16.f16.f16` is not known",
    "wgmma.fence.sync.aligned;": "`wgmma.fence.sync.aligned` is not known",
    "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r1}], [%r2];": "is not known",
    "vote.any.sync.b32 %r1, %p1, %r2;": "`vote.any.sync.b32` is not known",
    "atom.global.add.noftz.u32 %r1, [%d1], 1;": "`atom.global.add.noftz.u32` is not known",
    "add.rn.s32 %r1, %r2, %r3;": "`add.rn.s32` is not known",
    "add.sat.u32 %r1, %r2, %r3;": "`add.sat.u32` is not known",
    "cvt.f32.s32 %f1, %r1;": "`cvt.f32.s32` is not known",
    "ld.global.v8.f32 %f1, [%d1];": "`ld.global.v8.f32` is not known",
    "atom.global.add.b32 %r1, [%d1], 1;": "`atom.global.add.b32` is not known",
    "mov.u32 %r1, %pm0;": "'%pm0' is not known",
    "mov.u32 %r1, nowhere;": "'nowhere' is not known",
    "add.s32 %r1, %r2;": "it has 2 operands, not 3",
    "add.s32 %r1, %r2, %d1;": "a register of type .b64 is used as .s32",
    "add.s32 %h1, %r2, %r3;": "a register of type .b16 is used as .s32",
    "add.s32 5, %r2, %r3;": "its result goes to something that is no register",
    "add.f32 %f1, %f2, 1;": "the constant 1 is none of type .f32",
    "call.uni missing, ();": "the function missing is not in the module",
    "call %d1, (), proto, proto;": "its operands are not known",
    "bra NOWHERE;": "there is no label NOWHERE",
    "ld.shared.u32 %r1, [first_a];": "lies in .param, not .shared",
    "st.const.u32 [%d1], %r1;": "`st.const.u32` is not known",
    "bar.red.popc.u32 %r1, 3, %p1;": "known for barrier 0 alone",
    ".reg .b128 %wide; mov.b128 %wide, %wide;": "registers of type .b128",
}


@pytest.mark.parametrize("statement", UNKNOWN)
def test_an_unknown_statement_is_named_with_its_line_and_kernel(statement: str) -> None:
    with pytest.raises(PtxError) as raised:
        translate(HEAD + KERNEL.format(statement=statement), "kernel.cu", {"first": "first(float*)"})
    assert UNKNOWN[statement] in raised.value.message
    assert raised.value.kernel == "first(float*)"
    assert raised.value.line == 12 or statement.startswith(".reg")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (".entry k() { add.s32 %r1 %r2; }", "cannot be read"),
        (".entry k() { ret;", "expected before"),
        (".address_size 32", "32-bit"),
        (".frobnicate 1;", "'.frobnicate' is not known"),
        ("\x00", "cannot be read"),
        (".global .b32 a = {1, 2, 3};", "longer than the variable"),
    ],
)
def test_a_text_that_cannot_be_read_is_an_error(text: str, words: str) -> None:
    with pytest.raises(PtxError, match=words):
        translate(text, "kernel.cu")


def test_no_word_of_the_text_reaches_the_translation_as_code() -> None:
    hostile = ".visible .entry k$evil() { .reg .b32 %system; mov.b32 %system, 1; bra exec; exec: ret; }"
    text = translate(HEAD + hostile, 'x".cu\n#error', {"k$evil": 'a"; system("x'}).text
    assert not [word for word in ("%system", "exec", "#error") if word in text]
    assert r'"a\"; system(\"x"' in text


FAULTS = {
    "plain": ("mul.wide.u32 %d2, %r1, 4096; add.s64 %d1, %d1, %d2; st.global.u32 [%d1], %r1;", "out_of_bounds"),
    "check": ("mov.u32 %r2, %tid.x; st.shared.u32 [box], %r2;", "race"),
}


@pytest.mark.parametrize("build", list(Pass))
def test_each_pass_finds_its_faults_in_translated_code(compiler: Toolchain, sandbox: Sandbox, build: Pass) -> None:
    """The finding has the submitter's line: 12 is where the statement was inlined."""
    del compiler
    statement, kind = FAULTS[str(build)]
    text = KERNEL.format(statement=f".shared .align 4 .b8 box[1024]; ld.param.u64 %d1, [first_a]; {statement}")
    given = np.zeros(16, np.uint64)
    made = programs(text, sandbox, [build])
    ran = played(made, sandbox, [Launch("first")], given, 64, build)
    assert ran.finding is not None
    assert ran.finding.kind == kind
    assert "line 12" in ran.finding.sentence(ran.lines)
    assert "kernel first" in ran.finding.sentence(ran.lines)
