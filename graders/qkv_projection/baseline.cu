// x times the slab's transpose, a tile of 16 x 16 results a block and one result a thread. Right and coalesced; every multiply-add
// reads two values from shared memory, and those reads set the pace.
#include <cuda_runtime.h>

namespace {

constexpr int TILE = 16;

__global__ void projectTile(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ qkv, int tokens, int width,
                            int slab) {
    __shared__ float xs[TILE][TILE], ws[TILE][TILE + 1];
    const int token = blockIdx.y * TILE + threadIdx.y, output = blockIdx.x * TILE + threadIdx.x;
    const int slab_row = blockIdx.x * TILE + threadIdx.y;  // the row of w that this thread loads
    float sum = 0.0f;
    for (int first = 0; first < width; first += TILE) {
        const int at = first + threadIdx.x;
        xs[threadIdx.y][threadIdx.x] = token < tokens && at < width ? x[(size_t)token * width + at] : 0.0f;
        ws[threadIdx.y][threadIdx.x] = slab_row < slab && at < width ? w[(size_t)slab_row * width + at] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += xs[threadIdx.y][i] * ws[threadIdx.x][i];
        __syncthreads();
    }
    if (token < tokens && output < slab) qkv[(size_t)token * slab + output] = sum;
}

}  // namespace

extern "C" void projectQkv(const float* x, const float* w, float* qkv, int tokens, int width, int slab, cudaStream_t stream) {
    const dim3 grid((slab + TILE - 1) / TILE, (tokens + TILE - 1) / TILE);
    projectTile<<<grid, dim3(TILE, TILE), 0, stream>>>(x, w, qkv, tokens, width, slab);
}
