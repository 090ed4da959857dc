"""What a result says of kernels and memory: how they were compiled, and what was allocated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelgate.protocol import KernelResources, Table
from worker.recording.cubin import MalformedCubinError, read_cubin
from worker.triton.cases import Placed
from worker.triton.tape import Kernel

SHOWN = 12


def tables(
    calls: Sequence[Placed], kernels: Mapping[str, Mapping[str, Kernel]], peak: Mapping[str, int] | None = None
) -> tuple[Table, ...]:
    """Kernels as they were compiled, and memory: what the tape allocates (analytic), and what was measured, by case."""
    made = [call for call in calls if call.take.results]
    return (_compiled(made, kernels), _memory(made, peak or {})) if made else ()


def _compiled(calls: Sequence[Placed], kernels: Mapping[str, Mapping[str, Kernel]]) -> Table:
    rows: dict[tuple[str, int, int, int], tuple[str, int, int, int, str]] = {}
    for call in calls:
        for kernel in kernels.get(call.case.name, {}).values():
            identity = (kernel.name, kernel.warps, kernel.stages, kernel.shared)
            rows.setdefault(identity, (*identity, call.case.name))
    columns = ("kernel", "num_warps", "num_stages", "shared memory, bytes", "first case")
    return Table(title="Kernels as compiled", columns=columns, rows=tuple(rows.values())[:SHOWN])


def _memory(calls: Sequence[Placed], peak: Mapping[str, int]) -> Table:
    columns = (
        "case",
        "analytic: inputs and output, bytes",
        "analytic: workspace, bytes",
        "measured peak, bytes",
    )
    largest = sorted(calls, key=lambda call: -sum(b.size for b in call.buffers.values()))[:4]
    rows = tuple(
        (
            call.case.name,
            sum(b.size for b in call.buffers.values()) - call.workspace(),
            call.workspace(),
            peak.get(call.case.name, "not measured on this machine"),
        )
        for call in largest
    )
    return Table(title="Memory", columns=columns, rows=rows)


def resources(kernels: Mapping[str, Mapping[str, Kernel]]) -> tuple[KernelResources, ...]:
    """Registers, spills and shared memory of each compiled kernel, read from its cubin."""
    found: dict[tuple[str, int, int, int], KernelResources] = {}
    for kernel in (each for by_key in kernels.values() for each in by_key.values()):
        try:
            read = read_cubin(kernel.image).kernels.get(kernel.name)
        except MalformedCubinError:
            continue
        if read is not None:
            identity = (kernel.name, read.registers, read.frame_bytes, kernel.shared)
            label = f"{kernel.name} (num_warps {kernel.warps}, num_stages {kernel.stages})"
            found.setdefault(
                identity,
                KernelResources(
                    kernel=label, registers=read.registers, spill_bytes=read.frame_bytes, shared_bytes=kernel.shared
                ),
            )
    return tuple(found.values())[:SHOWN]
