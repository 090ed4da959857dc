// What lanes of a warp tell one another: votes, shuffles of every kind, reductions, with all lanes and with halves.
#include <cuda_runtime.h>

__global__ void votes(const int* x, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    const int v = i < n ? x[i] : 0;
    const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    int h = __all_sync(~0u, v > -90) * 3 + __any_sync(half, v > 80) * 5;
    h = h * 31 + __reduce_add_sync(~0u, v);
    h = h * 31 + __reduce_max_sync(half, v) - __reduce_min_sync(half, v);
    h = h * 31 + (int)(__reduce_xor_sync(~0u, (unsigned)v) & 0xff);
    h = h * 31 + __shfl_sync(~0u, v, 5) + __shfl_sync(~0u, v, 3, 8);
    h = h * 31 + __shfl_up_sync(~0u, v, 2) + __shfl_up_sync(~0u, v, 1, 4);
    int same;
    const unsigned all = __match_all_sync(half, v > 1000, &same);
    h = h * 31 + same + __popc(all);
    if (i < n) out[i] = h;
}

extern "C" void votes(const int* x, int* out, int n, cudaStream_t stream) {
    votes<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
