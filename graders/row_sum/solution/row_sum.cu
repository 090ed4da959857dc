// Row sums, a block a row: neighbouring threads read neighbouring columns, shuffles add a warp, shared memory adds the warps.
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

__global__ void __launch_bounds__(THREADS) sumRow(const float* __restrict__ x, float* __restrict__ y, int width) {
    __shared__ float part[WARPS];
    const float* row = x + (size_t)blockIdx.x * width;
    float sum = 0.0f;
    for (int column = threadIdx.x; column < width; column += THREADS) sum += row[column];
    for (int step = 16; step; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < WARPS; ++warp) sum += part[warp];
        y[blockIdx.x] = sum;
    }
}

}  // namespace

extern "C" void rowSum(const float* x, float* y, int rows, int width, cudaStream_t stream) {
    sumRow<<<rows, THREADS, 0, stream>>>(x, y, width);
}
