// Softmax of rows in three passes, a block a row: the maximum, the sum of exponentials, the quotients.
#include <cuda_runtime.h>

#include <math.h>

namespace {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

// Both leave the block's value in every thread, and may be called one after the other on the same scratch.
__device__ float blockMaximum(float value, float* scratch) {
    for (int step = 16; step; step >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    for (int warp = 0; warp < WARPS; ++warp) value = fmaxf(value, scratch[warp]);
    __syncthreads();
    return value;
}

__device__ float blockSum(float value, float* scratch) {
    for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) value += scratch[warp];
    __syncthreads();
    return value;
}

__global__ void __launch_bounds__(THREADS) softmaxRow(const float* __restrict__ x, float* __restrict__ y, int width) {
    __shared__ float scratch[WARPS];
    const float* from = x + (size_t)blockIdx.x * width;
    float* to = y + (size_t)blockIdx.x * width;

    float largest = -INFINITY;
    for (int column = threadIdx.x; column < width; column += THREADS) largest = fmaxf(largest, from[column]);
    largest = blockMaximum(largest, scratch);

    float sum = 0.0f;
    for (int column = threadIdx.x; column < width; column += THREADS) sum += expf(from[column] - largest);
    sum = blockSum(sum, scratch);

    for (int column = threadIdx.x; column < width; column += THREADS) to[column] = expf(from[column] - largest) / sum;
}

}  // namespace

extern "C" void softmaxRows(const float* x, float* y, int rows, int width, cudaStream_t stream) {
    softmaxRow<<<rows, THREADS, 0, stream>>>(x, y, width);
}
