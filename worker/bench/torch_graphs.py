"""A stage's baseline in torch as a side of a measurement: captured once for each call, launched as a submission's graph is.

What is timed are torch's kernels and nothing of its host code. torch reads the memory that was mapped for the call's inputs.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from contextlib import ExitStack
from functools import cache
from types import ModuleType

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from kernelgate.settings import settings
from worker.bench.driver import Handle, check
from worker.bench.memory import POISON
from worker.bench.timed import Call, mapped_call
from worker.gpu.protocol import HoldTorch

BESIDE = "BESIDE"
"""In a baseline.py: further computations by name, which are timed beside it."""


class NoTorchError(RuntimeError):
    """This interpreter has no torch, or one that cannot be used."""


@cache
def program() -> Handle:
    """kernels/measuring/torch_graph.py, which imports torch. Raises NoTorchError where this interpreter has none."""
    path = settings().kernels_dir / "measuring" / "torch_graph.py"
    spec = importlib.util.spec_from_file_location("kernelgate_torch_graph", path)
    if spec is None or spec.loader is None:
        raise NoTorchError(f"{path} is not loadable")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise NoTorchError(str(error)[:300]) from error
    return module


@cache
def baseline(text: str) -> ModuleType:
    """A stage's baseline.py, of the trusted side."""
    module = ModuleType("baseline")
    exec(compile(text, "baseline.py", "exec"), module.__dict__)  # noqa: S102 - a stage's own file, no submission
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


class Result:
    """One of its results, as an output of the call."""

    def __init__(self, graph: Handle, number: int) -> None:
        self.graph, self.number = graph, number

    def span(self) -> tuple[int, int]:
        address, size = self.graph.outputs()[self.number]
        return int(address), int(size)

    def refill(self) -> None:
        """Poison over everything that torch allocated for this graph: its results, and what it keeps between kernels."""
        for address, size in self.graph.memory() if self.number == 0 else ():
            check(cu.cuMemsetD8(address, POISON, size), "fill")

    def read_into(self, values: NDArray[np.uint8]) -> None:
        address, size = self.span()
        check(cu.cuMemcpyDtoH(values.ctypes.data, address, size), "download")


def torch_calls(
    order: HoldTorch, text: str, stack: ExitStack, device: int, stream: Handle
) -> tuple[list[Call], dict[str, str | float]]:
    """The calls of an order, and what there is to say of what they run. Raises NoTorchError."""
    torch_side, module = program(), baseline(text)
    beside = getattr(module, BESIDE, {})
    compute = beside[order.which] if order.which else getattr(module, order.function)
    calls = []
    facts: dict[str, str | float] = {}
    for places in order.calls:
        inputs, written, _ = mapped_call(stack, places, device)
        for mapped in inputs.values():
            mapped.write(np.zeros(mapped.buffer.size, np.uint8))
        known = {
            name: (mapped.buffer.address, order.shapes[name], order.dtypes[name]) for name, mapped in inputs.items()
        }
        taken = inspect.signature(compute).parameters  # a case's sizes are known by the arrays
        given = torch_side.tensors(known) | {name: value for name, value in order.params.items() if name in taken}
        graph = torch_side.Graph(compute, given, int(stream))
        captured = Captured(graph)
        results = {name: Result(graph, number) for number, name in enumerate(places.outputs)}
        calls.append(Call(captured, inputs, written, dict(results), places))
        if not facts:
            described = getattr(module, "described", None)
            what = described(**given) if described else order.function
            facts = {
                "baseline": f"{what}, torch {torch_side.VERSION}, as a CUDA graph",
                "baseline_graph_nodes": captured.nodes,
                "beside": ",".join(beside),
            }
    return calls, facts
