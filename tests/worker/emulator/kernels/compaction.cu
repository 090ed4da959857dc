// Keeps the positive values in order: ballots inside warps, coalesced groups for a count of the rest.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void keep_positive(const int* x, int* out, int* counts, int n) {
    __shared__ int warp_counts[8];
    __shared__ int base;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) base = 0, counts[0] = counts[1] = 0;
    __syncthreads();
    for (int first = 0; first < n; first += blockDim.x) {
        const int i = first + threadIdx.x;
        const bool keep = i < n && x[i] > 0;
        const unsigned kept = __ballot_sync(0xffffffffu, keep);
        if (lane == 0) warp_counts[warp] = __popc(kept);
        __syncthreads();
        int before = base;
        for (int w = 0; w < warp; ++w) before += warp_counts[w];
        if (keep) out[before + __popc(kept & ((1u << lane) - 1))] = x[i];
        if (i < n && !keep) {
            const cg::coalesced_group rest = cg::coalesced_threads();
            if (rest.thread_rank() == 0) atomicAdd(&counts[1], (int)rest.size());
        }
        __syncthreads();
        if (threadIdx.x == 0)
            for (int w = 0; w < (int)blockDim.x / 32; ++w) base += warp_counts[w];
        __syncthreads();
    }
    if (threadIdx.x == 0) counts[0] = base;
}

extern "C" void compaction(const int* x, int* out, int* counts, int n, cudaStream_t stream) {
    cudaMemsetAsync(out, 0, n * sizeof(int), stream);
    keep_positive<<<1, 128, 0, stream>>>(x, out, counts, n);
}
