// RMSNorm, a block a row: coalesced reads, a sum by shuffles, and the row stays in registers between the sum and the product.
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int KEPT = 16;  // values a thread keeps: rows of up to 4096 are read from memory once

__device__ float blockSum(float value) {
    __shared__ float part[WARPS];
    for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) value += part[warp];
    return value;
}

__global__ void __launch_bounds__(THREADS) rmsNormRow(const float* __restrict__ x, const float* __restrict__ w,
                                                      float* __restrict__ y, int width, float eps) {
    const float* from = x + (size_t)blockIdx.x * width;
    float* to = y + (size_t)blockIdx.x * width;
    float kept[KEPT], sum = 0.0f;
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        const int column = threadIdx.x + i * THREADS;
        kept[i] = column < width ? from[column] : 0.0f;
        sum += kept[i] * kept[i];
    }
    for (int column = threadIdx.x + KEPT * THREADS; column < width; column += THREADS) sum += from[column] * from[column];

    const float scale = rsqrtf(blockSum(sum) / width + eps);
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        const int column = threadIdx.x + i * THREADS;
        if (column < width) to[column] = kept[i] * scale * w[column];
    }
    for (int column = threadIdx.x + KEPT * THREADS; column < width; column += THREADS) to[column] = from[column] * scale * w[column];
}

}  // namespace

extern "C" void rmsNorm(const float* x, const float* w, float* y, int rows, int width, float eps, cudaStream_t stream) {
    rmsNormRow<<<rows, THREADS, 0, stream>>>(x, w, y, width, eps);
}
