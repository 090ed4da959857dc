// x times the slab's transpose in one launch: 64 tokens x 64 slab rows a block, 4 x 4 results a thread.
//
// Eight values that a thread reads from shared memory feed sixteen multiply-adds. Both tiles lie there depth first, so that the
// four values a thread needs next lie side by side, as one float4.
#include <cuda_runtime.h>

namespace {

constexpr int TILE = 64, DEPTH = 16, EACH = 4;
constexpr int THREADS = TILE / EACH * (TILE / EACH);
constexpr int PITCH = TILE + 4;  // keeps float4 alignment and spreads the stores over the banks

__device__ void stage(float (*tile)[PITCH], const float* from, int first_row, int rows, int first, int width) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
        const int row = i / DEPTH, depth = i % DEPTH;
        const bool inside = first_row + row < rows && first + depth < width;
        tile[depth][row] = inside ? from[(size_t)(first_row + row) * width + first + depth] : 0.0f;
    }
}

__global__ void __launch_bounds__(THREADS) projectTile(const float* __restrict__ x, const float* __restrict__ w,
                                                       float* __restrict__ qkv, int tokens, int width, int slab) {
    __shared__ __align__(16) float xs[DEPTH][PITCH], ws[DEPTH][PITCH];
    const int token = threadIdx.x / (TILE / EACH) * EACH, output = threadIdx.x % (TILE / EACH) * EACH;
    const int first_token = blockIdx.y * TILE, first_output = blockIdx.x * TILE;
    float sum[EACH][EACH] = {};
    for (int first = 0; first < width; first += DEPTH) {
        stage(xs, x, first_token, tokens, first, width);
        stage(ws, w, first_output, slab, first, width);
        __syncthreads();
#pragma unroll
        for (int depth = 0; depth < DEPTH; ++depth) {
            const float4 a = *reinterpret_cast<const float4*>(&xs[depth][token]);
            const float4 b = *reinterpret_cast<const float4*>(&ws[depth][output]);
            const float left[EACH] = {a.x, a.y, a.z, a.w}, right[EACH] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (int i = 0; i < EACH; ++i)
#pragma unroll
                for (int j = 0; j < EACH; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j)
            if (first_token + token + i < tokens && first_output + output + j < slab)
                qkv[(size_t)(first_token + token + i) * slab + first_output + output + j] = sum[i][j];
}

}  // namespace

extern "C" void projectQkv(const float* x, const float* w, float* qkv, int tokens, int width, int slab, cudaStream_t stream) {
    const dim3 grid((slab + TILE - 1) / TILE, (tokens + TILE - 1) / TILE);
    projectTile<<<grid, THREADS, 0, stream>>>(x, w, qkv, tokens, width, slab);
}
