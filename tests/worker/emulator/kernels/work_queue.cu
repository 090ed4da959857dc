// Persistent blocks take tickets from a counter; each item costs a different number of steps (Collatz).
#include <cuda_runtime.h>

__device__ unsigned next_item;

__global__ void work(const int* items, int* steps, int n) {
    __shared__ unsigned ticket;
    for (;;) {
        if (threadIdx.x == 0) ticket = atomicAdd(&next_item, blockDim.x);
        __syncthreads();
        const unsigned i = ticket + threadIdx.x;
        __syncthreads();
        if (i - threadIdx.x >= (unsigned)n) return;
        if (i < (unsigned)n) {
            long long v = items[i];
            int count = 0;
            while (v != 1) {
                v = v & 1 ? 3 * v + 1 : v / 2;
                ++count;
            }
            steps[i] = count;
        }
    }
}

extern "C" void work_queue(const int* items, int* steps, int n, cudaStream_t stream) {
    unsigned* counter = nullptr;
    cudaGetSymbolAddress((void**)&counter, next_item);
    cudaMemsetAsync(counter, 0, sizeof *counter, stream);
    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    work<<<processors < 4 ? processors : 4, 32, 0, stream>>>(items, steps, n);
}
