// Bitonic sort of blocks of 512 integers in shared memory.
#include <climits>

constexpr int kBlock = 512;

__global__ void sort_blocks(const int* in, int* out, int n) {
    __shared__ int keys[kBlock];
    const int base = blockIdx.x * kBlock;
    for (int i = threadIdx.x; i < kBlock; i += blockDim.x) keys[i] = base + i < n ? in[base + i] : INT_MAX;
    __syncthreads();
    for (int size = 2; size <= kBlock; size <<= 1)
        for (int stride = size >> 1; stride > 0; stride >>= 1) {
            const int i = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            const bool ascending = (i & size) == 0;
            const int low = keys[i], high = keys[i + stride];
            if ((low > high) == ascending) {
                keys[i] = high;
                keys[i + stride] = low;
            }
            __syncthreads();
        }
    for (int i = threadIdx.x; i < kBlock; i += blockDim.x)
        if (base + i < n) out[base + i] = keys[i];
}

extern "C" void bitonic_sort(const int* in, int* out, int n, cudaStream_t stream) {
    sort_blocks<<<(n + kBlock - 1) / kBlock, kBlock / 2, 0, stream>>>(in, out, n);
}
