"""torch's own kernels as a side of a measurement: captured once for each call, launched as a submission's graph is.

What is timed are torch's kernels and nothing of its host code. torch reads the memory that was mapped for the call's inputs.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import ExitStack
from functools import cache

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from kernelgate.settings import settings
from worker.bench.driver import Handle, check
from worker.bench.memory import POISON
from worker.bench.timed import Call, mapped_call
from worker.gpu.protocol import HoldTorch


class NoTorchError(RuntimeError):
    """This interpreter has no torch, or one that cannot be used."""


@cache
def program() -> Handle:
    """kernels/triton/sdpa.py, which imports torch. Raises NoTorchError where this interpreter has none."""
    path = settings().kernels_dir / "triton" / "sdpa.py"
    spec = importlib.util.spec_from_file_location("kernelgate_sdpa", path)
    if spec is None or spec.loader is None:
        raise NoTorchError(f"{path} is not loadable")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise NoTorchError(str(error)[:300]) from error
    return module


class Captured:
    """torch's kernels as a graph, with the memory that torch gave them."""

    def __init__(self, graph: Handle) -> None:
        self.graph = graph
        raw = cu.CUgraph(graph.raw())
        self.nodes = int(check(cu.cuGraphGetNodes(raw))[1])
        self.executable = check(cu.cuGraphInstantiate(raw, 0), "instantiate")

    def launch(self, stream: Handle) -> None:
        """By the same driver call as a submission's: torch's own way takes longer on the host than the kernels run."""
        check(cu.cuGraphLaunch(self.executable, stream), "launch")

    def span(self) -> tuple[int, int]:
        address, size = self.graph.output()
        return int(address), int(size)

    def refill(self) -> None:
        """Poison over everything that torch allocated for this graph: its output, and what it keeps between kernels."""
        for address, size in self.graph.memory():
            check(cu.cuMemsetD8(address, POISON, size), "fill")

    def read_into(self, values: NDArray[np.uint8]) -> None:
        address, size = self.span()
        check(cu.cuMemcpyDtoH(values.ctypes.data, address, size), "download")


def torch_calls(
    order: HoldTorch, stack: ExitStack, device: int, stream: Handle
) -> tuple[list[Call], dict[str, str | float]]:
    """The calls of an order, and what there is to say of what they run. Raises NoTorchError."""
    torch_side = program()
    calls, causal = [], bool(order.params["causal"])
    facts: dict[str, str | float] = {}
    for places in order.calls:
        inputs, written, _ = mapped_call(stack, places, device)
        for mapped in inputs.values():
            mapped.write(np.zeros(mapped.buffer.size, np.uint8))
        known = {name: (mapped.buffer.address, order.shapes[name]) for name, mapped in inputs.items()}
        graph = Captured(torch_side.Graph(order.which, known, order.dtype, causal, int(stream)))
        (name,) = places.outputs
        calls.append(Call(graph, inputs, written, {name: graph}, places))
        if not facts:
            backend = torch_side.backend(known, order.dtype, causal)
            facts = {
                "baseline": f"scaled_dot_product_attention of torch {torch_side.VERSION}, backend {backend}, as a CUDA graph",
                "baseline_graph_nodes": graph.nodes,
            }
    return calls, facts
