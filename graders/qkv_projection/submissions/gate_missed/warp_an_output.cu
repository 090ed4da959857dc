// A warp a result, with a shuffle sum: right, and it reads x again for every row of the slab.
#include <cuda_runtime.h>

__global__ void dot(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ qkv, int width, int slab) {
    const int output = blockIdx.x * 4 + threadIdx.y;
    if (output >= slab) return;
    const float* left = x + (size_t)blockIdx.y * width;
    const float* right = w + (size_t)output * width;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < width; i += 32) sum += left[i] * right[i];
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) qkv[(size_t)blockIdx.y * slab + output] = sum;
}

extern "C" void projectQkv(const float* x, const float* w, float* qkv, int tokens, int width, int slab, cudaStream_t stream) {
    dot<<<dim3((slab + 3) / 4, tokens), dim3(32, 4), 0, stream>>>(x, w, qkv, width, slab);
}
