"""Reduction loops over a warp are done in one go where that gives the same bits, and left alone everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.worker.emulator.conftest import Emulated
from worker.emulator.toolchain import Pass, rewriter

SOURCE = (Path(__file__).parent / "planted" / "butterflies.cu").read_text()
SIGNATURE = (
    'extern "C" void butterflies(const float* x, float* y, float* z, int* differ, int* ticks, cudaStream_t stream)'
)
OUTPUTS = {"y": 512, "z": 192, "differ": 4, "ticks": 8}


def summed(x: np.ndarray, width: int) -> np.ndarray:
    """Every lane's sum in float32, in the order of the steps."""
    step = width // 2
    while step:
        x = x + x[np.arange(x.size) ^ step]
        step //= 2
    return x


@pytest.fixture(scope="module")
def emulated(emulate: Callable[..., Emulated]) -> Emulated:
    return emulate("butterflies", SIGNATURE, SOURCE, [Pass.PLAIN, Pass.CHECK])


@pytest.mark.parametrize(
    ("build", "order"),
    [(Pass.PLAIN, "forward"), (Pass.PLAIN, "reverse"), (Pass.PLAIN, "random"), (Pass.CHECK, "forward")],
)
def test_a_loop_gives_the_bits_of_its_steps(emulated: Emulated, build: Pass, order: str) -> None:
    x = np.random.default_rng(3).standard_normal(128).astype(np.float32)
    ran = emulated(build, {"x": x}, OUTPUTS, {}, order=order)
    assert ran.returned, ran.finding
    assert np.frombuffer(ran.written["differ"], np.int32)[0] == 0
    assert np.frombuffer(ran.written["y"], np.float32).tobytes() == summed(x, 32).tobytes()
    assert np.frombuffer(ran.written["z"], np.float32).tobytes() == summed(x[:48], 16).tobytes()


def test_a_loop_waits_for_the_warp_once(emulated: Emulated) -> None:
    """clock64 counts changes of fibres: five steps take several times as many as the loop."""
    ran = emulated(Pass.PLAIN, {"x": np.ones(128, np.float32)}, OUTPUTS, {})
    loop, steps = np.frombuffer(ran.written["ticks"], np.int32)
    assert steps > 3 * loop, (loop, steps)


TAKEN = (
    "for (int s = 16; s > 0; s >>= 1) v += __shfl_xor_sync(~0u, v, s);",
    "for (int s = 16; s; s /= 2) { v = fmaxf(v, __shfl_down_sync(mask, v, s, 32)); }",
    "for (unsigned s = 1; s < 32; s <<= 1) v[i] = v[i] + __shfl_xor_sync(0xffffffff, v[i], s);",
    "for (auto s = n / 2; s >= 1; s >>= 1) v = max(__shfl_xor_sync(~0u, v, s), v);",
)
LEFT = {
    "another step": "for (int s = 16; s; s -= 4) v += __shfl_xor_sync(~0u, v, s);",
    "stops early": "for (int s = 16; s > 2; s >>= 1) v += __shfl_xor_sync(~0u, v, s);",
    "another variable": "for (int s = 16; s; s >>= 1) v += __shfl_xor_sync(~0u, w, s);",
    "more in the body": "for (int s = 16; s; s >>= 1) { v += __shfl_xor_sync(~0u, v, s); count++; }",
    "a function of its own": "for (int s = 16; s; s >>= 1) v = joined(v, __shfl_xor_sync(~0u, v, s));",
    "an index by position": "for (int s = 16; s; s >>= 1) v += __shfl_sync(~0u, v, s);",
    "a mask that is asked for anew": "for (int s = 16; s; s >>= 1) v += __shfl_xor_sync(__activemask(), v, s);",
    "a counter from outside": "for (s = 16; s; s >>= 1) v += __shfl_xor_sync(~0u, v, s);",
    "a difference": "for (int s = 16; s; s >>= 1) v -= __shfl_xor_sync(~0u, v, s);",
    "the step in the width": "for (int s = 16; s; s >>= 1) v += __shfl_xor_sync(~0u, v, s, s);",
}


def rewritten(body: str, before: str = "") -> str:
    return str(rewriter().rewrite(f"{before}\n__device__ void f() {{\n{body}\n}}\n", "k.cu").text)


@pytest.mark.parametrize("loop", TAKEN)
def test_the_usual_forms_are_taken(loop: str) -> None:
    text = rewritten(loop)
    assert "if (::emulator::butterfly(" in text
    assert text.splitlines()[3].startswith("for (")


@pytest.mark.parametrize("what", LEFT)
def test_other_loops_are_left_as_they_are(what: str) -> None:
    assert LEFT[what] in rewritten(LEFT[what])


@pytest.mark.parametrize(
    "before", ["#define max(a, b) ((a) < (b) ? (b) : (a))", "__device__ float max(float a, float b);"]
)
def test_a_maximum_of_the_files_own_is_not_moved(before: str) -> None:
    loop = "for (int s = 16; s; s >>= 1) v = max(v, __shfl_xor_sync(~0u, v, s));"
    assert loop in rewritten(loop, before)


def test_lines_stay() -> None:
    loop = "for (int s = 16; s; s >>= 1)\n  v +=\n    __shfl_xor_sync(~0u,\n v, s);\nint here;"
    assert rewritten(loop).splitlines()[7] == "int here;"
