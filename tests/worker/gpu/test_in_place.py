"""CUDA stages whose arrays are changed in place, and of 16 bits, replayed and measured on a card."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.protocol import Result
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Backend, Stage
from kernelgate.verdicts import Verdict
from worker.gpu.backend import missing_gpu
from worker.grade import grade, new_seed
from worker.sandbox import Sandbox
from worker.stages.agreement import disagreements

STAGE = '''"""Twice each value, in place, and the half of it beside."""

title, path, order, language = "Twice", "Practice", 9, "cuda"
seam = "twice(inout x: bf16[rows, width], rows: int, width: int) -> y: f16[rows, width]"


def reference(x):
    return x / 2, 2 * x


cases = """
small   rows=3 width=5
odd     rows=33 width=257
drawn   rows=1..90 width=1..300 times=3
long    rows=1024 width=1024 measured needs_gpu
wide    rows=16 width=65536 measured needs_gpu
"""
'''
KERNEL = """#include "twice.h"

__global__ void turn(__nv_bfloat16* x, __half* y, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    float value = __bfloat162float(x[at]);
    y[at] = __float2half(value / 2);
    x[at] = __float2bfloat16(2 * value);
}

extern "C" void twice(__nv_bfloat16* x, __half* y, int rows, int width, cudaStream_t stream) {
    turn<<<(rows * width + 255) / 256, 256, 0, stream>>>(x, y, rows * width);
}
"""
UNCHANGED = KERNEL.replace("    x[at] = __float2bfloat16(2 * value);\n", "")
AGAIN = KERNEL.replace("y, rows * width);\n}", "y, rows * width);\n    turn<<<1, 32, 0, stream>>>(x, y, 1);\n}")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    folder = tmp_path / "twice"
    (folder / "solution").mkdir(parents=True)
    for name in ("solution/twice.cu", "baseline.cu"):
        (folder / name).write_text(KERNEL)
    (folder / "lesson.md").write_text("# Twice\n")
    (folder / "stage.py").write_text(STAGE)
    return load_stage(folder)


def graded(stage: Stage, sandbox: Sandbox, source: str) -> Result:
    why = missing_gpu()
    if why is not None:
        pytest.skip(why)
    result = grade(stage, source.encode(), sandbox=sandbox, seed=new_seed())
    assert result.backend is Backend.GPU
    return result


def test_a_stage_in_place_is_for_a_card_and_agrees_with_itself(stage: Stage) -> None:
    assert stage.spec.backends == (Backend.GPU, Backend.EMULATOR)
    assert stage.spec.tensors["x_after"].dtype == "bfloat16"
    assert list(disagreements(stage)) == []


@pytest.mark.gpu
@pytest.mark.timeout(300)
def test_what_is_changed_in_place_is_judged_and_measured(stage: Stage, sandbox: Sandbox) -> None:
    result = graded(stage, sandbox, KERNEL)
    assert result.verdict.passes, result.message
    assert result.timing is not None
    assert 0.8 < result.timing.speedup < 1.25, "the same kernel on both sides"
    assert set(result.timing.facts) >= {"counts", "long_speedup", "wide_speedup"}
    assert [table.title for table in result.tables] == ["Speed against the baseline"]


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("source", "reason"), [(UNCHANGED, "wrong_value"), (AGAIN, "wrong_value")])
def test_an_array_left_alone_or_changed_twice_is_wrong(
    stage: Stage, sandbox: Sandbox, source: str, reason: str
) -> None:
    result = graded(stage, sandbox, source)
    assert (result.verdict, result.reason) == (Verdict.WRONG_ANSWER, reason), result.message
    assert result.wrong is not None
    assert result.wrong.tensor in ("x_after", "y")


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("folder", ["tests/stages/turned_in_place", "graders/rope_in_place"])
def test_shipped_stages_in_place_are_right_on_a_card(sandbox: Sandbox, folder: str) -> None:
    stage = load_stage(ROOT / folder)
    result = graded(stage, sandbox, stage.text(f"solution/{stage.spec.file}"))
    assert result.verdict.passes, result.message
