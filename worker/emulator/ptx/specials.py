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
_CLUSTER = {"ctaid": "index", "nctaid": "size"}
_CLUSTERS = {"clusterid": "number", "nclusterid": "grid"}
_RESERVED = {"begin": 0, "0": 0, "1": 512, "cap": 1024, "end": 1024}
"""Where the system's part of shared memory starts and ends; cooperative_groups keeps what it shares from `1` on."""
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
    "%clock_hi": "::emulator::ticks() >> 32",
    "%clock64": "::emulator::ticks()",
    "%globaltimer": "::emulator::ticks()",
    "%globaltimer_lo": "::emulator::ticks()",
    "%globaltimer_hi": "::emulator::ticks() >> 32",
    "%dynamic_smem_size": "ptx::dynamic_size()",
    **{f"%envreg{at}": "0u" for at in range(32)},
    "%envreg1": "ptx::grid_workspace() >> 32",
    "%envreg2": "ptx::grid_workspace()",
    "WARP_SZ": "32u",
    "%total_smem_size": "ptx::shared_size()",
    "%aggr_smem_size": "ptx::shared_size() + 1024u",
    **{f"%reserved_smem_offset_{name}": f"ptx::reserved_offset() + {at}u" for name, at in _RESERVED.items()},
    **{
        f"%cluster_{name}.{axis}": f"ptx::cluster_part().{value}.{axis}"
        for name, value in _CLUSTER.items()
        for axis in "xyz"
    },
    **{f"%{name}.{axis}": f"ptx::cluster_part().{value}.{axis}" for name, value in _CLUSTERS.items() for axis in "xyz"},
    "%cluster_ctarank": "ptx::cluster_part().rank",
    "%cluster_nctarank": "ptx::cluster_part().blocks",
    "%is_explicit_cluster": "ptx::cluster_part().stated",
}
"""What each stands for. A clock counts the scheduler's steps; the grid's workspace is what grid.sync() keeps its counter in."""


def special(name: str) -> str | None:
    return SPECIALS.get(name)
