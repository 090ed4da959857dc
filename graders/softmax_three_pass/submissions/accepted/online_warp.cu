// A warp a row, maximum and sum in one pass, merged over the lanes: two reads of the row in place of three.
#include <cuda_runtime.h>

#include <math.h>

__global__ void softmaxRow(const float* __restrict__ x, float* __restrict__ y, int width) {
    const float* from = x + (size_t)blockIdx.x * width;
    float m = -INFINITY, l = 0.0f;
    for (int column = threadIdx.x; column < width; column += 32) {
        const float larger = fmaxf(m, from[column]);
        l = l * expf(m - larger) + expf(from[column] - larger);
        m = larger;
    }
    float largest = m;
    for (int step = 16; step; step >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    l *= expf(m - largest);
    for (int step = 16; step; step >>= 1) l += __shfl_xor_sync(0xffffffffu, l, step);
    for (int column = threadIdx.x; column < width; column += 32) y[(size_t)blockIdx.x * width + column] = expf(from[column] - largest) / l;
}

extern "C" void softmaxRows(const float* x, float* y, int rows, int width, cudaStream_t stream) {
    softmaxRow<<<rows, 32, 0, stream>>>(x, y, width);
}
