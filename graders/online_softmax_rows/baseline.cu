// The same three numbers by the book, a warp a row: one pass for the maximum, and a second one for both sums.
#include <cuda_runtime.h>

#include <math.h>

__global__ void twoPasses(const float* __restrict__ x, const float* __restrict__ v, float* __restrict__ m, float* __restrict__ l,
                          float* __restrict__ out, int rows, int width) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* from = x + (size_t)row * width;
    float largest = -INFINITY, sum = 0.0f, weighted = 0.0f;
    for (int column = lane; column < width; column += 32) largest = fmaxf(largest, from[column]);
    for (int step = 16; step; step >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    for (int column = lane; column < width; column += 32) {
        const float p = expf(from[column] - largest);
        sum += p;
        weighted += p * v[column];
    }
    for (int step = 16; step; step >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
        weighted += __shfl_xor_sync(0xffffffffu, weighted, step);
    }
    if (lane == 0) m[row] = largest, l[row] = sum, out[row] = weighted / sum;
}

extern "C" void onlineSoftmaxRows(const float* x, const float* v, float* m, float* l, float* out, int rows, int width,
                                  cudaStream_t stream) {
    twoPasses<<<(rows + 3) / 4, 128, 0, stream>>>(x, v, m, l, out, rows, width);
}
