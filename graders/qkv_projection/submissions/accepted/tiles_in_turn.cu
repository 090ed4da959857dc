// 64 tokens x 64 slab rows a block, 8 x 4 results a thread. While one pair of tiles is multiplied, the next is on its way through
// registers into a second pair, so that nobody waits for memory and a turn needs one barrier.
#include <cuda_runtime.h>

namespace {

constexpr int TILE = 64, DEPTH = 16, EACH_X = 8, EACH_W = 4;
constexpr int THREADS = TILE / EACH_X * (TILE / EACH_W);
constexpr int LOADS = TILE * DEPTH / THREADS;  // of each tile, by each thread
constexpr int PITCH = TILE + 4;                // keeps float4 alignment and spreads the stores over the banks

struct Load {
    float held[LOADS];

    __device__ void load(const float* from, int first_row, int rows, int first, int width) {
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const int at = threadIdx.x + i * THREADS, row = first_row + at / DEPTH, depth = first + at % DEPTH;
            held[i] = row < rows && depth < width ? from[(size_t)row * width + depth] : 0.0f;
        }
    }

    __device__ void store(float (*tile)[PITCH]) const {
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const int at = threadIdx.x + i * THREADS;
            tile[at % DEPTH][at / DEPTH] = held[i];
        }
    }
};

template <int EACH>
__device__ void read(float* values, const float* from) {
#pragma unroll
    for (int i = 0; i < EACH; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(from + i);
        values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
    }
}

__global__ void __launch_bounds__(THREADS) projectTile(const float* __restrict__ x, const float* __restrict__ w,
                                                       float* __restrict__ qkv, int tokens, int width, int slab) {
    __shared__ __align__(16) float xs[2][DEPTH][PITCH], ws[2][DEPTH][PITCH];
    const int token = threadIdx.x / (TILE / EACH_W) * EACH_X, output = threadIdx.x % (TILE / EACH_W) * EACH_W;
    const int first_token = blockIdx.y * TILE, first_output = blockIdx.x * TILE;
    Load from_x, from_w;
    from_x.load(x, first_token, tokens, 0, width);
    from_w.load(w, first_output, slab, 0, width);
    from_x.store(xs[0]);
    from_w.store(ws[0]);
    __syncthreads();
    float sum[EACH_X][EACH_W] = {};
    for (int first = 0, turn = 0; first < width; first += DEPTH, turn ^= 1) {
        const bool more = first + DEPTH < width;
        if (more) {
            from_x.load(x, first_token, tokens, first + DEPTH, width);
            from_w.load(w, first_output, slab, first + DEPTH, width);
        }
#pragma unroll
        for (int depth = 0; depth < DEPTH; ++depth) {
            float left[EACH_X], right[EACH_W];
            read<EACH_X>(left, &xs[turn][depth][token]);
            read<EACH_W>(right, &ws[turn][depth][output]);
#pragma unroll
            for (int i = 0; i < EACH_X; ++i)
#pragma unroll
                for (int j = 0; j < EACH_W; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
        }
        if (more) {
            from_x.store(xs[turn ^ 1]);
            from_w.store(ws[turn ^ 1]);
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH_X; ++i)
        for (int j = 0; j < EACH_W; ++j)
            if (first_token + token + i < tokens && first_output + output + j < slab)
                qkv[(size_t)(first_token + token + i) * slab + first_output + output + j] = sum[i][j];
}

}  // namespace

extern "C" void projectQkv(const float* x, const float* w, float* qkv, int tokens, int width, int slab, cudaStream_t stream) {
    const dim3 grid((slab + TILE - 1) / TILE, (tokens + TILE - 1) / TILE);
    projectTile<<<grid, THREADS, 0, stream>>>(x, w, qkv, tokens, width, slab);
}
