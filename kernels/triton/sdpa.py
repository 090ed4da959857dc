"""torch's attention as CUDA graphs over memory that is not torch's: the baseline of the Triton attention stage.

sdpa: `scaled_dot_product_attention` with the backend that torch picks by itself. dense: scores, softmax and product in float32,
with an N × N matrix in memory; an algorithmic comparison, no rival. Both read q, k, v [N, D] where they lie and write to memory
of torch's own. Imported by the bench alone, in the process that holds the CUDA context.
"""

import math

import torch
from torch.nn import functional

VERSION = torch.__version__
STORED = {"float16": "<f2", "bfloat16": "<i2"}
BACKENDS = {0: "math", 1: "flash attention", 2: "memory-efficient attention", 3: "cuDNN"}
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


def tensors(places, dtype):
    """q, k, v as tensors over the memory at `places`: name → (address, shape)."""
    found = [torch.as_tensor(Place(*places[name], dtype), device="cuda") for name in ("q", "k", "v")]
    return [each.view(torch.bfloat16) for each in found] if dtype == "bfloat16" else found


def sdpa(q, k, v, causal):
    return functional.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None], is_causal=causal)[0, 0]


def dense(q, k, v, causal):
    scores = (q.float() @ k.float().T) / math.sqrt(q.shape[1])
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    return (torch.softmax(scores, dim=-1) @ v.float()).to(q.dtype)


def backend(places, dtype, causal):
    """The name of the backend that torch picks for this input."""
    q, k, v = (each[None, None] for each in tensors(places, dtype))
    return BACKENDS.get(int(torch._fused_sdp_choice(q, k, v, is_causal=causal)), "unknown")


class Graph:
    """One of the two computations, captured on the given stream."""

    def __init__(self, which, places, dtype, causal, stream):
        q, k, v = tensors(places, dtype)
        compute = {"sdpa": sdpa, "dense": dense}[which]
        self.stream = torch.cuda.ExternalStream(stream)
        with torch.cuda.stream(self.stream), torch.inference_mode():
            for _ in range(WARM_UP):
                compute(q, k, v, causal)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph(keep_graph=True)
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.out = compute(q, k, v, causal)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # what the warm-up left behind
        pool = tuple(self.graph.pool())
        segments = [each for each in torch.cuda.memory_snapshot() if tuple(each.get("segment_pool_id", ())) == pool]
        self.segments = [(each["address"], each["total_size"]) for each in segments] or [self.output()]

    def raw(self):
        """The captured cudaGraph_t, as a number: the bench instantiates and launches it as it does a submission's."""
        return int(self.graph.raw_cuda_graph())

    def output(self):
        """(address, bytes) of what it writes."""
        return self.out.data_ptr(), self.out.numel() * self.out.element_size()

    def memory(self):
        """(address, bytes) of everything that was allocated for it."""
        return self.segments

    def close(self):
        self.graph.reset()
