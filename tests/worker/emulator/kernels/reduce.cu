// Block sums by warp shuffles, then one block over the partial sums; the partial sums live in a __device__ array.
#include <cuda_runtime.h>

constexpr int kBlocks = 8, kThreads = 128;
__device__ float partial[kBlocks];

template <int Threads>
__device__ float block_sum(float v) {
    __shared__ float warp_sums[Threads / 32];
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffffu, v, offset);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < Threads / 32 ? warp_sums[threadIdx.x] : 0.0f;
    if (threadIdx.x < 32)
        for (int offset = Threads / 64; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffffu, v, offset);
    return v;
}

__global__ void sum_blocks(const float* x, int n) {
    float v = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
    v = block_sum<kThreads>(v);
    if (threadIdx.x == 0) partial[blockIdx.x] = v;
}
__global__ void sum_partial(float* out) {
    const float v = block_sum<32>(threadIdx.x < kBlocks ? partial[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) *out = v;
}

extern "C" void reduce(const float* x, float* out, int n, cudaStream_t stream) {
    sum_blocks<<<kBlocks, kThreads, 0, stream>>>(x, n);
    sum_partial<<<1, 32, 0, stream>>>(out);
}
