// One warp a row, running maximum and denominator in one pass; rows of a block behind an early exit.
#include <cuda_runtime.h>
#include <math_constants.h>

struct Running {
    float maximum, sum;
};
__device__ __forceinline__ Running merge(Running a, Running b) {
    const float maximum = fmaxf(a.maximum, b.maximum);
    if (maximum == -CUDART_INF_F) return {maximum, 0.0f};
    return {maximum, a.sum * __expf(a.maximum - maximum) + b.sum * __expf(b.maximum - maximum)};
}

__global__ void softmax_rows(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    x += row * columns;
    Running all{-CUDART_INF_F, 0.0f};
    for (int i = lane; i < columns; i += warpSize) all = merge(all, {x[i], 1.0f});
    for (int bits = 16; bits; bits >>= 1) {
        const Running other{__shfl_xor_sync(0xffffffff, all.maximum, bits), __shfl_xor_sync(0xffffffff, all.sum, bits)};
        all = merge(all, other);
    }
    for (int i = lane; i < columns; i += warpSize) y[row * columns + i] = __expf(x[i] - all.maximum) / all.sum;
}

extern "C" void softmax(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
    softmax_rows<<<(rows + 3) / 4, dim3(32, 4), 0, stream>>>(x, y, rows, columns);
}
