// SwiGLU in one pass: each gate and each up value is read once, each product written once, 16 bytes a thread where rows allow it.
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;

// exp(-x) overflows to infinity where x is far below zero, and x / infinity is the 0 that is wanted.
__device__ float silu(float x) { return x / (1.0f + expf(-x)); }

__global__ void swiGluFour(const float4* __restrict__ packed, float4* __restrict__ y, size_t count, int width) {
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const size_t token = i / width;
    const float4 gate = packed[i + token * width], up = packed[i + token * width + width];
    y[i] = {silu(gate.x) * up.x, silu(gate.y) * up.y, silu(gate.z) * up.z, silu(gate.w) * up.w};
}

__global__ void swiGluOne(const float* __restrict__ packed, float* __restrict__ y, size_t count, int width) {
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const size_t token = i / width;
    y[i] = silu(packed[i + token * width]) * packed[i + token * width + width];
}

unsigned blocks(size_t count) { return (unsigned)((count + THREADS - 1) / THREADS); }

}  // namespace

extern "C" void swiGlu(const float* packed, float* y, int tokens, int width, cudaStream_t stream) {
    const size_t count = (size_t)tokens * width;
    if (width % 4 == 0) {
        const auto from = reinterpret_cast<const float4*>(packed);
        swiGluFour<<<blocks(count / 4), THREADS, 0, stream>>>(from, reinterpret_cast<float4*>(y), count / 4, width / 4);
    } else {
        swiGluOne<<<blocks(count), THREADS, 0, stream>>>(packed, y, count, width);
    }
}
