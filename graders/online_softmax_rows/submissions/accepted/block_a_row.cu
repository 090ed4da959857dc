// A block a row: each thread takes two neighbouring columns at a time, the states meet in shared memory as a tree.
#include <cuda_runtime.h>

#include <math.h>

constexpr int THREADS = 64;

__global__ void onlineRow(const float* __restrict__ x, const float* __restrict__ v, float* __restrict__ m, float* __restrict__ l,
                          float* __restrict__ out, int width) {
    __shared__ float ms[THREADS], ls[THREADS], as[THREADS];
    const float* row = x + (size_t)blockIdx.x * width;
    const int t = threadIdx.x;
    float largest = -1e30f, sum = 0.0f, weighted = 0.0f;  // finite, so that nothing becomes inf - inf
    for (int column = 2 * t; column < width; column += 2 * THREADS) {
        const bool two = column + 1 < width;
        const float larger = fmaxf(largest, two ? fmaxf(row[column], row[column + 1]) : row[column]);
        const float alpha = expf(largest - larger), p = expf(row[column] - larger), q = two ? expf(row[column + 1] - larger) : 0.0f;
        sum = alpha * sum + p + q;
        weighted = alpha * weighted + p * v[column] + (two ? q * v[column + 1] : 0.0f);
        largest = larger;
    }
    ms[t] = largest, ls[t] = sum, as[t] = weighted;
    __syncthreads();
    for (int step = THREADS / 2; step; step >>= 1) {
        if (t < step) {
            const float larger = fmaxf(ms[t], ms[t + step]), alpha = expf(ms[t] - larger), beta = expf(ms[t + step] - larger);
            ls[t] = alpha * ls[t] + beta * ls[t + step];
            as[t] = alpha * as[t] + beta * as[t + step];
            ms[t] = larger;
        }
        __syncthreads();
    }
    if (t == 0) m[blockIdx.x] = ms[0], l[blockIdx.x] = ls[0], out[blockIdx.x] = as[0] / ls[0];
}

extern "C" void onlineSoftmaxRows(const float* x, const float* v, float* m, float* l, float* out, int rows, int width,
                                  cudaStream_t stream) {
    onlineRow<<<rows, THREADS, 0, stream>>>(x, v, m, l, out, width);
}
