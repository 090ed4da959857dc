// Exact causal attention with a materialised score row: one block computes one query row of one head, a warp makes one score.
//
// The block keeps its whole score line, token + 1 floats, in shared memory: scores, then weights, then the weighted sum of values.
// A warp reads the 64 floats of a key side by side and adds its products with shuffles, so every read of K and V is coalesced. What
// costs is the shape: each row reads all of its keys and values again.
#include "attention.h"

#include <math.h>

namespace {

constexpr int THREADS = 128;
constexpr int WARPS = THREADS / 32;

__device__ float warpSum(float value) {
    for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__global__ void exactRow(const float* __restrict__ qkv, float* __restrict__ out) {
    extern __shared__ float score[];  // [token + 1]
    __shared__ float partial[THREADS], scratch[WARPS];
    const int token = blockIdx.x, head = blockIdx.y, kv = head / HEADS_PER_KV;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* query = qkv + (size_t)token * QKV_WIDTH + head * HEAD_DIM;
    const float* key = qkv + KEY_OFFSET + kv * HEAD_DIM;
    const float* value = qkv + VALUE_OFFSET + kv * HEAD_DIM;

    const float q0 = query[lane] * SCORE_SCALE, q1 = query[lane + 32] * SCORE_SCALE;
    float largest = -INFINITY;
    for (int j = warp; j <= token; j += WARPS) {
        const float* k = key + (size_t)j * QKV_WIDTH;
        const float dot = warpSum(q0 * k[lane] + q1 * k[lane + 32]);
        if (lane == 0) score[j] = dot;
        largest = fmaxf(largest, dot);
    }
    if (lane == 0) scratch[warp] = largest;
    __syncthreads();
    largest = fmaxf(fmaxf(scratch[0], scratch[1]), fmaxf(scratch[2], scratch[3]));

    float sum = 0.0f;
    for (int j = threadIdx.x; j <= token; j += THREADS) {
        const float weight = expf(score[j] - largest);
        score[j] = weight;
        sum += weight;
    }
    sum = warpSum(sum);
    __syncthreads();  // everyone has read the maxima
    if (lane == 0) scratch[warp] = sum;
    __syncthreads();
    sum = scratch[0] + scratch[1] + scratch[2] + scratch[3];

    const int dim = threadIdx.x % HEAD_DIM, group = threadIdx.x / HEAD_DIM;
    float weighted = 0.0f;
    for (int j = group; j <= token; j += THREADS / HEAD_DIM) weighted += score[j] * value[(size_t)j * QKV_WIDTH + dim];
    partial[threadIdx.x] = weighted;
    __syncthreads();
    if (group == 0) out[(size_t)token * OUT_WIDTH + head * HEAD_DIM + dim] = (partial[dim] + partial[dim + HEAD_DIM]) / sum;
}

}  // namespace

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    exactRow<<<dim3(tokens, HEADS), THREADS, tokens * sizeof(float), stream>>>(qkv, out);
}
