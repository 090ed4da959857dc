// Ways of going through a matrix of 64 × 64 floats, each a kernel of 4 blocks of 256 threads; told by a number which to launch.
#include <cuda_runtime.h>

#define KERNEL(name) __global__ void name(const float* __restrict__ x, float* __restrict__ y)
static const int kSide = 64;

KERNEL(in_order) {
    for (int at = blockIdx.x * 1024 + threadIdx.x; at < (blockIdx.x + 1) * 1024; at += 256)
        y[at] = x[at];  // 4 sectors
}
KERNEL(by_columns) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (warp >= 2) return;
    for (int column = blockIdx.x * 16; column < (blockIdx.x + 1) * 16; ++column)
        y[(warp * 32 + lane) * kSide + column] = x[(warp * 32 + lane) * kSide + column];  // 32 sectors
}
KERNEL(by_fours) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    ((float4*)y)[at] = ((const float4*)x)[at];  // 16 sectors
}
KERNEL(one_for_all) {
    for (int at = blockIdx.x * 1024 + threadIdx.x; at < (blockIdx.x + 1) * 1024; at += 256)
        y[at] = x[at / 256];  // 1 sector
}
KERNEL(some_lanes) {
    if (threadIdx.x % 32 < 8) y[blockIdx.x * 256 + threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];  // 1 sector
}
template <int pitch>
__device__ void turned(const float* x, float* y) {
    __shared__ float tile[32 * 33];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int row = warp; row < 32; row += 8)
        tile[row * pitch + lane] = x[row * kSide + lane];
    __syncthreads();
    for (int row = warp; row < 32; row += 8)
        y[row * kSide + lane] = tile[lane * pitch + row];
}
KERNEL(turned_at_32) {
    if (blockIdx.x == 0) turned<32>(x, y);
}
KERNEL(turned_at_33) {
    if (blockIdx.x == 0) turned<33>(x, y);
}
KERNEL(pairs_in_shared) {
    __shared__ float2 pairs[256];
    pairs[threadIdx.x] = ((const float2*)x)[threadIdx.x];
    __syncthreads();
    ((float2*)y)[blockIdx.x * 256 + threadIdx.x] = pairs[threadIdx.x ^ 1];  // a pass each half warp
}
KERNEL(three_times) {
    __shared__ float sum;
    for (int turn = 0; turn < 3; ++turn) {
        const float value = ((volatile const float*)x)[blockIdx.x * 256 + threadIdx.x];
        if (threadIdx.x == turn) sum = value;
        __syncthreads();
    }
    y[blockIdx.x * 256 + threadIdx.x] = sum;
}

extern "C" void memory(const float* x, float* y, int which, cudaStream_t stream) {
    void (*kernels[])(const float*, float*) = {
        KERNELS
    };
    kernels[which]<<<4, 256, 0, stream>>>(x, y);
}
