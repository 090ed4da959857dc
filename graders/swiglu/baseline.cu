// One kernel an operator, as a framework runs it: y holds silu(gate) between the two. Right, with five crossings of memory for three.
#include <cuda_runtime.h>

__global__ void gate(const float* __restrict__ packed, float* __restrict__ y, int width) {
    const int column = blockIdx.x * 128 + threadIdx.x;
    if (column >= width) return;
    const float x = packed[(size_t)blockIdx.y * 2 * width + column];
    y[(size_t)blockIdx.y * width + column] = x / (1.0f + expf(-x));
}

__global__ void multiply(const float* __restrict__ packed, float* y, int width) {
    const int column = blockIdx.x * 128 + threadIdx.x;
    if (column >= width) return;
    y[(size_t)blockIdx.y * width + column] *= packed[((size_t)blockIdx.y * 2 + 1) * width + column];
}

extern "C" void swiGlu(const float* packed, float* y, int tokens, int width, cudaStream_t stream) {
    const dim3 grid((width + 127) / 128, tokens);
    gate<<<grid, 128, 0, stream>>>(packed, y, width);
    multiply<<<grid, 128, 0, stream>>>(packed, y, width);
}
