// Maximum and sum in one block reduction of cub.
#include "attention.h"

#include <cub/cub.cuh>
#include <math.h>

// Two values travel through one reduction: a running maximum and the sum that belongs to it.
struct State {
    float m, l;
};

struct Merge {
    __device__ State operator()(const State& a, const State& b) const {
        const float m = fmaxf(a.m, b.m);
        if (m == -INFINITY) return {m, 0.0f};
        return {m, a.l * expf(a.m - m) + b.l * expf(b.m - m)};
    }
};

constexpr int THREADS = 128;

__global__ void cubRow(const float* __restrict__ qkv, float* __restrict__ out) {
    using Reduce = cub::BlockReduce<State, THREADS>;
    __shared__ typename Reduce::TempStorage scratch;
    __shared__ State whole;
    __shared__ float partial[2][HEAD_DIM];
    extern __shared__ float score[];
    const int token = blockIdx.x, head = blockIdx.y, kv = head / HEADS_PER_KV;
    const float* q = qkv + (size_t)token * QKV_WIDTH + head * HEAD_DIM;
    State mine = {-INFINITY, 0.0f};
    for (int j = threadIdx.x; j <= token; j += THREADS) {
        const float4* k = reinterpret_cast<const float4*>(qkv + (size_t)j * QKV_WIDTH + KEY_OFFSET + kv * HEAD_DIM);
        float sum = 0.0f;
        for (int d = 0; d < HEAD_DIM / 4; ++d) {
            const float4 a = reinterpret_cast<const float4*>(q)[d], b = k[d];
            sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
        }
        score[j] = sum * SCORE_SCALE;
        mine = Merge()(mine, State{score[j], 1.0f});
    }
    const State reduced = Reduce(scratch).Reduce(mine, Merge());
    if (threadIdx.x == 0) whole = reduced;
    __syncthreads();
    const int dim = threadIdx.x % HEAD_DIM, group = threadIdx.x / HEAD_DIM;
    float sum = 0.0f;
    for (int j = group; j <= token; j += 2)
        sum += expf(score[j] - whole.m) * qkv[(size_t)j * QKV_WIDTH + VALUE_OFFSET + kv * HEAD_DIM + dim];
    partial[group][dim] = sum;
    __syncthreads();
    if (group == 0)
        out[(size_t)token * OUT_WIDTH + head * HEAD_DIM + dim] = (partial[0][dim] + partial[1][dim]) / whole.l;
}

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    cubRow<<<dim3(tokens, HEADS), THREADS, tokens * sizeof(float), stream>>>(qkv, out);
}
