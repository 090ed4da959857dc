"""What a submitter reads of the compiler: their own lines and names, no header and no helper of ours."""

from __future__ import annotations

import re

import pytest

from kernelgate.verdicts import Verdict
from tests.worker.emulator.conftest import compiling
from tests.worker.emulator.test_other_compilers import toolchain_of
from worker.emulator.build import messages
from worker.emulator.toolchain import Pass
from worker.judging.failures import Failure
from worker.sandbox import Sandbox

SIGNATURE = 'extern "C" void errors(float* x, int n, cudaStream_t stream)'
SOURCE = """#include <cooperative_groups.h>
__global__ void scale(float* x, int n) {
    x[n] = undeclared * 2;
    atomicAdd(x, "one");
}
struct Odd { int a, b, c; };
struct Text { Text(const char*); };
template <class T> __global__ void plain(T* x) { x->member = 0; }
template <class T> __global__ void folded(T* x) {
    auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    x[0] = cooperative_groups::reduce(tile, x[0], cooperative_groups::plus<T>());
}
extern "C" void errors(float* x, int n, cudaStream_t stream) {
    scale<<<1, 32, 0, stream>>>(x);
    plain<<<1, 32>>>(x);
    folded<<<1, 32>>>((Odd*)x);
    __shfl_sync(~0u, n, 1, 2, 3, 4, 5);
}
"""
WRONG_LINES = {3, 4, 8, 11, 14, 17}


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_every_error_has_the_submitters_line_and_nothing_of_ours(compiler: str, sandbox: Sandbox) -> None:
    toolchain = toolchain_of(compiler)
    toolchain.prepare([Pass.PLAIN])
    with pytest.raises(Failure) as caught:
        compiling(toolchain, sandbox)("errors", SIGNATURE, SOURCE, [Pass.PLAIN])
    told = caught.value
    assert (told.verdict, told.reason) == (Verdict.COMPILE_ERROR, "compiler_error")
    assert "errors.cu:" in told.message
    lines = {int(line) for line in re.findall(r"^errors\.cu:(\d+): (?:fatal )?error", told.log, re.MULTILINE)}
    assert lines == WRONG_LINES, told.log
    for ours in ("emulator", "/include/", ".cache", "cuda_runtime.h"):
        assert ours not in told.log, told.log


def test_an_error_in_a_header_is_moved_to_the_line_that_led_there() -> None:
    before = "k.cu:7:3:   required from here\n/opt/include/emulator/x.h:9:1: error: no such operation\n"
    after = "/opt/include/emulator/x.h:9:1: error: no such operation\nk.cu:7:3: note: in instantiation of f requested here\n"
    assert messages("k.cu", before) == messages("k.cu", after) == "k.cu:7: error: no such operation"


def test_where_headers_were_included_from_is_not_told() -> None:
    included = "In file included from /opt/a.h:1,\n                 from /opt/b.h:2:\n/opt/a.h:4:2: note: y\n"
    assert messages("k.cu", f"k.cu:3:1: error: no\n    3 | x\n{included}") == "k.cu:3: error: no\n    3 | x"
