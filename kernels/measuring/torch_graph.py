"""A computation in torch as a CUDA graph over memory that is not torch's: a Triton stage's baseline.

Inputs are read where they lie, results are written to memory of torch's own. Imported by the bench alone, in the process that
holds the CUDA context.
"""

import torch

VERSION = torch.__version__
STORED = {
    "float16": "<f2",
    "bfloat16": "<i2",
    "float32": "<f4",
    "float64": "<f8",
    "bool": "|b1",
    **{f"int{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    "uint8": "|u1",
}
WARM_UP = 3


class Place:
    """Device memory that torch can look at without owning it."""

    def __init__(self, address, shape, dtype):
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": tuple(shape),
            "typestr": STORED[dtype],
            "version": 3,
        }


def tensors(places):
    """Tensors over the memory at `places`: name → (address, shape, dtype)."""
    found = {name: torch.as_tensor(Place(*place), device="cuda") for name, place in places.items()}
    return {name: each.view(torch.bfloat16) if places[name][2] == "bfloat16" else each for name, each in found.items()}


class Graph:
    """`compute`, called by name with tensors and numbers, captured on the given stream."""

    def __init__(self, compute, given, stream):
        self.stream = torch.cuda.ExternalStream(stream)
        with torch.cuda.stream(self.stream), torch.inference_mode():
            for _ in range(WARM_UP):
                compute(**given)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph(keep_graph=True)
            with torch.cuda.graph(self.graph, stream=self.stream):
                made = compute(**given)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # what the warm-up left behind
        self.results = made if isinstance(made, tuple) else (made,)
        pool = tuple(self.graph.pool())
        segments = [each for each in torch.cuda.memory_snapshot() if tuple(each.get("segment_pool_id", ())) == pool]
        self.segments = [(each["address"], each["total_size"]) for each in segments] or self.outputs()

    def raw(self):
        """The captured cudaGraph_t, as a number: the bench instantiates and launches it as it does a submission's."""
        return int(self.graph.raw_cuda_graph())

    def outputs(self):
        """(address, bytes) of each result."""
        return [(each.data_ptr(), each.numel() * each.element_size()) for each in self.results]

    def memory(self):
        """(address, bytes) of everything that was allocated for it."""
        return self.segments
