"""Chains of butterfly shuffles: which are done at once, and that the answer is that of one step after another."""

from __future__ import annotations

import numpy as np
import pytest

from tests.worker.emulator.ptx.machine import HEAD, Launch, words
from worker.emulator.ptx import translate
from worker.emulator.toolchain import Toolchain
from worker.sandbox import Sandbox

STEPS = (16, 8, 4, 2, 1)
KERNEL = """.visible .entry fold(.param .u64 fold_a, .param .u64 fold_b) {{
.reg .b64 %d<9>; .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .pred %p<20>;
ld.param.u64 %d1, [fold_a]; ld.param.u64 %d2, [fold_b];
mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 8; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
mov.u32 %r2, 31; mov.u32 %r3, -1;
ld.u32 %r10, [%d4]; mov.b32 %f10, %r10;
{before}
{chain}
{after}
mov.b32 %r39, %f{last}; st.u32 [%d5], %r39; st.u32 [%d5+4], 0; ret;
}}
"""


def chain(opcode: str = "add.f32", swapped: bool = False, steps: tuple[int, ...] = STEPS) -> str:
    lines = []
    for at, step in enumerate(steps):
        own, other = f"%f{10 + at}", f"%f{20 + at}"
        read = f"{other}, {own}" if swapped else f"{own}, {other}"
        lines += [
            f"mov.b32 %r{20 + at}, {own}; mov.u32 %r{30 + at}, {step};",
            f"shfl.sync.bfly.b32 %r{10 + at + 1}|%p{1 + at}, %r{20 + at}, %r{30 + at}, %r2, %r3;",
            f"mov.b32 {other}, %r{10 + at + 1}; {opcode} %f{11 + at}, {read};",
        ]
    return "\n".join(lines)


def kernel(**parts: str) -> str:
    return KERNEL.format(**{"before": "", "chain": chain(), "after": "", "last": "15", **parts})


WHOLE = "ptx::butterfly<float, 16, 8, 4, 2, 1>"


def translated(text: str) -> str:
    return translate(HEAD + text, "k.cu").text


def test_a_chain_becomes_one_wait() -> None:
    text = translated(kernel())
    assert WHOLE in text
    assert "shuffled<" not in text


@pytest.mark.parametrize(
    "parts",
    [
        {"after": "st.u32 [%d5+4], %r12;"},  # a shuffled value is looked at by somebody else
        {"after": "@%p2 st.u32 [%d5+4], %r1;"},  # and so is the predicate of a shuffle
        {"chain": chain(steps=(16,)), "last": "11"},
        {"chain": chain("sub.f32")},
        {"chain": chain().replace("mov.u32 %r31, 8;", "mov.u32 %r31, %r1;").replace("%r30, %r2", "%r31, %r2")},
        {"before": "mov.u32 %r3, 65535;"},  # the mask is no constant any more
    ],
    ids=["value", "predicate", "single", "subtraction", "steps", "mask"],
)
def test_what_is_no_chain_is_done_step_by_step(parts: dict[str, str]) -> None:
    assert WHOLE not in translated(kernel(**parts))


@pytest.mark.parametrize("opcode", ["add.f32", "max.f32", "min.f32"])
@pytest.mark.parametrize("swapped", [False, True])
def test_the_answer_is_that_of_the_steps(compiler: Toolchain, sandbox: Sandbox, opcode: str, swapped: bool) -> None:
    del compiler
    values = np.random.default_rng(3).standard_normal(32).astype(np.float32)
    given = np.zeros(32, np.uint64)
    given.view(np.uint32)[::2] = values.view(np.uint32)
    got = words(kernel(chain=chain(opcode, swapped)), sandbox, [Launch("fold", block=32)], given, 32)
    want = values.copy()
    both = {"add.f32": np.add, "max.f32": np.maximum, "min.f32": np.minimum}[opcode]
    for step in STEPS:
        want = both(want, want[np.arange(32) ^ step])
    assert got.astype(np.uint32).tobytes() == want.view(np.uint32).tobytes()
