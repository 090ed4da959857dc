// Shared-memory histogram with atomics, aggregated over equal values of a warp by __match_any_sync.
#include <cuda_runtime.h>

constexpr int kBins = 64;

__global__ void count(const int* x, unsigned* bins, int n) {
    __shared__ unsigned local[kBins];
    for (int i = threadIdx.x; i < kBins; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int base = blockIdx.x * blockDim.x; base < n; base += gridDim.x * blockDim.x) {
        const int i = base + threadIdx.x;
        const unsigned active = __ballot_sync(0xffffffffu, i < n);
        if (i < n) {
            const int bin = x[i] & (kBins - 1);
            const unsigned same = __match_any_sync(active, bin);
            if (__ffs(same) - 1 == (int)(threadIdx.x % 32)) atomicAdd(&local[bin], __popc(same));
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kBins; i += blockDim.x)
        if (local[i]) atomicAdd(bins + i, local[i]);
}

extern "C" void histogram(const int* x, unsigned* bins, int n, cudaStream_t stream) {
    cudaMemsetAsync(bins, 0, kBins * sizeof(unsigned), stream);
    count<<<4, 128, 0, stream>>>(x, bins, n);
}
