// y = A x with A in compressed rows: half a warp a row, summed inside a tile of 16 lanes.
#include <cuda_runtime.h>

__global__ void multiply_rows(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, row = thread / 16, lane = thread % 16;
    float sum = 0.0f;
    if (row < rows)
        for (int i = starts[row] + lane; i < starts[row + 1]; i += 16) sum += values[i] * x[columns[i]];
    for (int offset = 8; offset; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset, 16);
    if (row < rows && lane == 0) y[row] = sum;
}

extern "C" void sparse_product(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows, cudaStream_t stream) {
    multiply_rows<<<(rows * 16 + 127) / 128, 128, 0, stream>>>(starts, columns, values, x, y, rows);
}
