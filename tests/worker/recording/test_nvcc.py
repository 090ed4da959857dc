"""nvcc taken apart: the same kernels and the same messages as nvcc's own run gives."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from worker.recording.compile import nvcc_command
from worker.recording.cubin import Kernel, read_cubin
from worker.recording.nvcc import at_once

pytestmark = pytest.mark.nvcc
SOURCE = """
#include <cuda_runtime.h>
namespace {
template <int N> __global__ void scale(float* out, float by) { out[threadIdx.x] = by * N; }
}
extern "C" void seam(float* out, cudaStream_t stream) {
    scale<2><<<1, 32, 0, stream>>>(out, 1.0f);
    scale<3><<<1, 64, 0, stream>>>(out, 2.0f);
}
"""


def run(folder: Path, source: str, *, apart: bool) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    (folder / "seam.cu").write_text(source)
    command = nvcc_command("seam", "90a")
    words = at_once(command) if apart else command
    assert (words == command) is not apart
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def kernels(folder: Path) -> list[Kernel]:
    found = read_cubin((folder / "seam.cubin").read_bytes()).kernels
    assert all("_GLOBAL__N_" in name for name in found)
    return [
        Kernel("", each.parameters, each.registers, each.shared_bytes, each.frame_bytes, each.max_threads)
        for each in found.values()
    ]


def test_the_kernels_are_those_that_nvcc_makes(tmp_path: Path) -> None:
    for name in ("whole", "apart"):
        done = run(tmp_path / name, SOURCE, apart=name == "apart")
        assert done.returncode == 0, done.stderr
        assert "Compiling entry function" in done.stderr
        symbols = subprocess.run(["nm", "-D", tmp_path / name / "seam.so"], capture_output=True, text=True, check=True)
        assert " T seam\n" in symbols.stdout
    assert kernels(tmp_path / "apart") == kernels(tmp_path / "whole")
    assert len(kernels(tmp_path / "apart")) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("by * N;", "by * M;", 'seam.cu(4): error: identifier "M" is undefined'),
        ("by * N;", 'by * N; asm("no_such_instruction;");', "no_such_instruction"),
        ("<cuda_runtime.h>", '"not_there.h"', "not_there.h"),
        ("scale<3><<<1, 64, 0, stream>>>(out, 2.0f);", "static_assert(sizeof(long) == 1);", "static assert"),
    ],
)
def test_what_does_not_compile_is_said_once_and_fails(tmp_path: Path, old: str, new: str, said: str) -> None:
    done = run(tmp_path / "apart", SOURCE.replace(old, new), apart=True)
    assert done.returncode != 0
    assert said in done.stderr
    assert done.stderr.count("static assert") <= 2
    assert sum("error: identifier" in text for text in done.stderr.splitlines()) <= 1


def test_a_run_that_has_other_steps_is_left_to_nvcc() -> None:
    command = (*nvcc_command("seam", "90a")[:-1], "-gencode=arch=compute_80,code=sm_80", "seam.cu")
    assert at_once(command) == command
