// Inclusive prefix sum in three launches: scan of tiles, scan of the tiles' totals, addition.
#include <cuda_runtime.h>

constexpr int kTile = 128;
__device__ int totals[kTile];

__device__ int scan_tile(int v, int* shared) {
    const int t = threadIdx.x;
    shared[t] = v;
    __syncthreads();
    for (int offset = 1; offset < kTile; offset *= 2) {
        const int below = t >= offset ? shared[t - offset] : 0;
        __syncthreads();
        shared[t] += below;
        __syncthreads();
    }
    return shared[t];
}
__global__ void scan_tiles(const int* x, int* out, int n) {
    extern __shared__ int shared[];
    const int i = blockIdx.x * kTile + threadIdx.x;
    const int sum = scan_tile(i < n ? x[i] : 0, shared);
    if (i < n) out[i] = sum;
    if (threadIdx.x == kTile - 1) totals[blockIdx.x] = sum;
}
__global__ void scan_totals(int tiles) {
    __shared__ int shared[kTile];
    const int sum = scan_tile((int)threadIdx.x < tiles ? totals[threadIdx.x] : 0, shared);
    if ((int)threadIdx.x < tiles) totals[threadIdx.x] = sum;
}
__global__ void add_totals(int* out, int n) {
    const int i = blockIdx.x * kTile + threadIdx.x;
    if (blockIdx.x > 0 && i < n) out[i] += totals[blockIdx.x - 1];
}

extern "C" void scan(const int* x, int* out, int n, cudaStream_t stream) {
    const int tiles = (n + kTile - 1) / kTile;
    scan_tiles<<<tiles, kTile, kTile * sizeof(int), stream>>>(x, out, n);
    scan_totals<<<1, kTile, 0, stream>>>(tiles);
    add_totals<<<tiles, kTile, 0, stream>>>(out, n);
}
