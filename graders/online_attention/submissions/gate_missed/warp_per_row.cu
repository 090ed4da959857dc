// A warp for each row, one key at a time, no shared memory.
#include "attention.h"

#include <math.h>

constexpr int WARPS = 8;

__global__ void warpPerRow(const float* __restrict__ qkv, float* __restrict__ out, int tokens) {
    const int token = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int head = blockIdx.y, kv = head / HEADS_PER_KV;
    if (token >= tokens) return;
    const float2 q = reinterpret_cast<const float2*>(qkv + (size_t)token * QKV_WIDTH + head * HEAD_DIM)[lane];
    float m = -INFINITY, l = 0.0f;
    float2 acc = {0.0f, 0.0f};
    for (int j = 0; j <= token; ++j) {
        const float* row = qkv + (size_t)j * QKV_WIDTH + kv * HEAD_DIM;
        const float2 k = reinterpret_cast<const float2*>(row + KEY_OFFSET)[lane];
        const float2 v = reinterpret_cast<const float2*>(row + VALUE_OFFSET)[lane];
        float score = q.x * k.x + q.y * k.y;
        for (int step = 16; step; step >>= 1) score += __shfl_xor_sync(0xffffffffu, score, step);
        score *= SCORE_SCALE;
        const float m_new = fmaxf(m, score), alpha = expf(m - m_new), p = expf(score - m_new);
        l = alpha * l + p;
        acc.x = alpha * acc.x + p * v.x;
        acc.y = alpha * acc.y + p * v.y;
        m = m_new;
    }
    const float2 result = {acc.x / l, acc.y / l};
    reinterpret_cast<float2*>(out + (size_t)token * OUT_WIDTH + head * HEAD_DIM)[lane] = result;
}

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    warpPerRow<<<dim3((tokens + WARPS - 1) / WARPS, HEADS), WARPS * 32, 0, stream>>>(qkv, out, tokens);
}
