"""Times a Triton submission against torch's own attention, both as CUDA graphs in this process, in turn, on the same input.

The baseline is `scaled_dot_product_attention` with the backend that torch picks, captured once: what is timed are its kernels
and nothing of torch's host code, as for the submission. torch shares this process's context and reads the very memory that
the submission reads. A dense float32 expression is timed after them, alone, as an algorithmic comparison.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from kernelgate.settings import settings
from kernelgate.stages import Case, Tolerance, load_stage
from worker.bench.clocks import Clocks
from worker.bench.driver import check
from worker.bench.measure import Bout, Samples
from worker.bench.memory import Mapped
from worker.bench.outcome import Call, Peaks, measured
from worker.bench.replay import Replay
from worker.bench.statistics import Ratio
from worker.judging.grader import Grader
from worker.recording.placement import Buffer
from worker.recording.tape import read_tape

if TYPE_CHECKING:
    from worker.bench.__main__ import Bench

DENSE_SAMPLES = 15
STORED: dict[str, type[np.generic]] = {"float16": np.float16, "bfloat16": np.uint16}


@cache
def peer() -> Any:
    """kernels/triton/sdpa.py, which imports torch. Raises ImportError where this interpreter has none."""
    path = settings().kernels_dir / "triton" / "sdpa.py"
    spec = importlib.util.spec_from_file_location("kernelgate_sdpa", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not loadable")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def warm() -> None:
    """Imports torch before it is needed; that it is missing is said when it is."""
    try:
        peer()
    except ImportError:
        return


class Captured:
    """torch's kernels as a graph, with the interface of a Replay and of the one buffer that it writes."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        raw = cu.CUgraph(graph.raw())
        self.nodes = int(check(cu.cuGraphGetNodes(raw))[1])
        self.executable = check(cu.cuGraphInstantiate(raw, 0), "instantiate")

    def launch(self, stream: Any) -> None:
        """By the same driver call as a submission's: torch's own way takes longer on the host than the kernels run."""
        check(cu.cuGraphLaunch(self.executable, stream), "launch")

    def close(self) -> None:
        check(cu.cuGraphExecDestroy(self.executable))
        self.graph.close()

    def fill(self, word: int) -> None:
        """Over everything that torch allocated for this graph: its output, and what it keeps between kernels."""
        for address, size in self.graph.memory():
            check(cu.cuMemsetD32(address, word, size // 4), "fill")

    def read(self) -> NDArray[np.float32]:
        address, size = self.graph.output()
        values = np.empty(size // 4, np.float32)
        check(cu.cuMemcpyDtoH(values.ctypes.data, address, size), "download")
        return values


def numbers(dtype: str) -> Any:
    """A function from a buffer's words to its values in float64."""

    def values(words: NDArray[np.float32]) -> NDArray[np.float64]:
        stored = words.view(STORED[dtype])
        if dtype == "bfloat16":
            stored = (stored.astype(np.uint32) << 16).view(np.float32)
        return stored.astype(np.float64)

    return values


def measure(bench: Bench, order: dict[str, Any], payload: bytes) -> None:
    """One case. The payload is the submission's tape and then the input to draw others from."""
    try:
        torch_side = peer()
    except ImportError as error:
        bench.send({"kind": "no_peer", "what": str(error)[:300]})
        return
    stage = load_stage(Path(order["stage"]))
    grader = Grader(stage)
    case = next(case for case in stage.spec.cases if case.name == order["case"])
    inputs, user = ({n: Buffer(**fields) for n, fields in order[group].items()} for group in ("inputs", "user"))
    base = _arrays(order, case, payload[order["tape"] :])
    with ExitStack() as stack:
        held, written = (
            {name: stack.enter_context(Mapped(buffer, bench.card.device)) for name, buffer in group.items()}
            for group in (inputs, user)
        )
        for name, mapped in held.items():
            mapped.write(base[name])
        places = {name: (buffer.address, base[name].shape) for name, buffer in inputs.items()}
        sdpa, dense = (
            Captured(torch_side.Graph(which, places, case.dtype, bool(case.params["causal"]), int(bench.stream)))
            for which in ("sdpa", "dense")
        )
        bout = Bout(
            stream=bench.stream,
            baseline=sdpa,  # type: ignore[arg-type] # launched and closed as a Replay is
            user=Replay(
                bench.modules["user"], read_tape(payload[: order["tape"]], {**inputs, **user}), bench.card.context
            ),
            inputs=held,
            baseline_outputs={"out": sdpa},  # type: ignore[dict-item] # filled and read as a Mapped is
            user_outputs={"out": written["out"]},
            fresh=lambda rng: grader.again(case, base, rng),
            tolerance=_twice(stage.tolerance(case)),
            clocks=Clocks(bench.card.bus),
            call_s=order["within_s"],
            values=numbers(case.dtype),
        )
        result: tuple[Samples, Ratio | None] = (Samples(), None)
        for result in bout.run(None, order["measure_s"]):
            bench._progress(*result)
        dense_ms = _dense(bout, dense)
        bout.close()
        backend = torch_side.backend(places, case.dtype, bool(case.params["causal"]))
        facts: dict[str, Any] = {
            "baseline": f"scaled_dot_product_attention of torch {torch_side.VERSION}, backend {backend}, as a CUDA graph",
            "baseline_graph_nodes": sdpa.nodes,
        }
        for graph in (sdpa, dense):
            graph.close()
    facts |= _beside_dense(dense_ms, result[0])
    # No peak of arithmetic: these kernels compute on tensor cores, and the driver does not say how fast those are.
    call = Call(grader.work(case), sum(buffer.size for buffer in (*inputs.values(), user["out"])))
    bench.send(measured(*result, call, Peaks(moved=bench.card.bandwidth_peak()), facts))


def _arrays(order: dict[str, Any], case: Case, data: bytes) -> dict[str, NDArray[Any]]:
    found, at = {}, 0
    for name, shape in order["shapes"].items():
        count = int(np.prod(shape))
        found[name] = np.frombuffer(data, STORED[case.dtype], count, at).reshape(shape)
        at += found[name].nbytes
    return found


def _twice(tolerance: Tolerance) -> Tolerance:
    """Two right answers, each within the tolerance of the truth."""
    return Tolerance(absolute=2 * tolerance.absolute, relative=2 * tolerance.relative)


def _dense(bout: Bout, dense: Captured) -> float:
    """Median milliseconds of the dense float32 expression, on a swept cache."""
    samples = [bout.timed(dense, {"out": dense}) for _ in range(DENSE_SAMPLES)]  # type: ignore[arg-type, dict-item]
    return round(statistics.median(samples[3:]), 5)


def _beside_dense(dense_ms: float, samples: Samples) -> dict[str, float]:
    """How the dense float32 expression did, and how the submission does against it."""
    user_ms = statistics.median(samples.user) if samples.user else float("nan")
    return {"dense_fp32_ms": dense_ms, "speedup_over_dense_fp32": round(dense_ms / user_ms, 3)}
