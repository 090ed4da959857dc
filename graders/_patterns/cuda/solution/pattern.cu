#include "pattern.h"

__global__ void scaleAndAdd(const float* x, const float* y, float* out, int count, float factor) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) out[at] = factor * x[at] + y[at];
}

extern "C" void pattern(const float* x, const float* y, float* out, int rows, int width, float factor, cudaStream_t stream) {
    const int count = rows * width, threads = 256;
    scaleAndAdd<<<(count + threads - 1) / threads, threads, 0, stream>>>(x, y, out, count, factor);
}
