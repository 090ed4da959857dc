"""`planted/bugs.cu`: one submission with a kernel for every bug, told by a number which to launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from kernelgate.stages import Limits
from tests.worker.emulator.conftest import Emulated
from worker.emulator.run import Ran
from worker.emulator.toolchain import Pass

SOURCE = (Path(__file__).parent / "planted" / "bugs.cu").read_text()
KERNELS = re.findall(r"^KERNEL\((\w+)\)", SOURCE, re.MULTILINE)
SIGNATURE = 'extern "C" void bugs(const float* x, float* y, int bug, cudaStream_t stream)'
TWO_BLOCKS = (
    "blocks_race",
    "blocks_race_on_variable",
    "flag_without_fence",
    "right_flag_with_fence",
    "right_last_block",
)
LIMITS = Limits(wall_s=30, case_s=1, memory_mb=2048)
Planted = Callable[[str, Pass], Ran]


def compile_bugs(emulate: Callable[..., Emulated], passes: Sequence[Pass]) -> Planted:
    """planted(name, pass) runs one of the kernels."""
    emulated = emulate("bugs", SIGNATURE, _listed(), passes)
    x = np.linspace(1, 2, 64, dtype=np.float32)

    def planted(name: str, build: Pass) -> Ran:
        return emulated(build, {"x": x}, {"y": 256}, {"bug": KERNELS.index(name)}, limits=LIMITS)

    return planted


def _listed() -> str:
    """The file with its kernels listed in their order."""
    numbers = {name: str(KERNELS.index(name)) for name in ("host_pointer", "null_pointer")}
    two = " || ".join(f"(bug) == {KERNELS.index(name)}" for name in TWO_BLOCKS)
    text = SOURCE.replace("        BUGS\n", f"        {', '.join(KERNELS)}\n").replace("TWO_BLOCKS(bug)", f"({two})")
    return text.replace("case HOST", f"case {numbers['host_pointer']}").replace(
        "case NULL_POINTER", f"case {numbers['null_pointer']}"
    )
