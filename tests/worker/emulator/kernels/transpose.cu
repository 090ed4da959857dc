// Tiles of 32 × 32 in shared memory with a padded column, 32 × 8 threads.
#include <cuda_runtime.h>

__global__ void transpose_tiles(const float* in, float* out, int rows, int columns) {
    __shared__ float tile[32][32 + 1];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" void transpose(const float* in, float* out, int rows, int columns, cudaStream_t stream) {
    transpose_tiles<<<dim3((columns + 31) / 32, (rows + 31) / 32), dim3(32, 8), 0, stream>>>(in, out, rows, columns);
}
