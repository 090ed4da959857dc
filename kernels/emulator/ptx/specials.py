"""Special registers (PTX ISA, "Special Registers") as C++; one that is missing here is refused by its name."""

from __future__ import annotations

_LANES = {
    "%lanemask_eq": "1u << ::emulator::lane()",
    "%lanemask_lt": "(1u << ::emulator::lane()) - 1u",
    "%lanemask_le": "0xffffffffu >> (31u - ::emulator::lane())",
    "%lanemask_gt": "~(0xffffffffu >> (31u - ::emulator::lane()))",
    "%lanemask_ge": "~((1u << ::emulator::lane()) - 1u)",
}
_INDICES = {"%tid": "threadIdx", "%ntid": "blockDim", "%ctaid": "blockIdx", "%nctaid": "gridDim"}
SPECIALS: dict[str, str] = {
    **{f"{name}.{axis}": f"{value}.{axis}" for name, value in _INDICES.items() for axis in "xyz"},
    **_LANES,
    "%laneid": "::emulator::lane()",
    "%warpid": "ptx::warp_number()",
    "%nwarpid": "64u",
    "%smid": "0u",
    "%nsmid": "16u",
    "%gridid": "0u",
    "%clock": "::emulator::ticks()",
    "%clock64": "::emulator::ticks()",
    "%globaltimer": "::emulator::ticks()",
    "%globaltimer_lo": "::emulator::ticks()",
    "%dynamic_smem_size": "ptx::dynamic_size()",
    "%envreg1": "ptx::grid_workspace() >> 32",
    "%envreg2": "ptx::grid_workspace()",
    "WARP_SZ": "32u",
}
"""What each stands for. A clock counts the scheduler's steps; the grid's workspace is what grid.sync() keeps its counter in."""


def special(name: str) -> str | None:
    return SPECIALS.get(name)
