// What host code asks of a device before it launches, and a kernel that is given the answers, with a line printed.
#include <cuda_runtime.h>
#include <stdio.h>

template <class F>
__global__ void each(int* out, int n, F f) {
    const int i = threadIdx.x;
    if (i < n) out[i] = f(i);
    if (i == 3) printf("thread %d of %d says %.2f\n", i, n, i * 0.5);
}

struct Told {
    int values[8];
    __device__ int operator()(int i) const { return values[i]; }
};

__global__ void wide(float* x) {
    extern __shared__ float buffer[];
    x[threadIdx.x] = buffer[threadIdx.x];
}

extern "C" void questions(int* out, int n, cudaStream_t stream) {
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    int shared = 0, blocks = 0, grid = 0, threads = 0;
    cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, wide, 256, shared / 2 - 1024);
    cudaOccupancyMaxPotentialBlockSize(&grid, &threads, wide, 0, 0);
    const Told told = {{properties.major, properties.warpSize, properties.multiProcessorCount, shared, blocks, threads > 0, grid > 0, properties.maxThreadsPerBlock}};
    each<<<1, 32, 0, stream>>>(out, n, told);
}
