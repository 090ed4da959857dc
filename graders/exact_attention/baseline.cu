// Exact causal attention, a thread a key: each thread makes whole scores by itself. Right, and slow: the 32 threads of a warp read 32
// keys that lie 3 KiB apart, so every load touches 32 sectors of memory.
#include "attention.h"

#include <math.h>

namespace {

constexpr int THREADS = 128;
constexpr int WARPS = THREADS / 32;

__device__ float blockMaximum(float value, float* scratch) {
    for (int step = 16; step; step >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    return fmaxf(fmaxf(scratch[0], scratch[1]), fmaxf(scratch[2], scratch[3]));
}

__device__ float blockSum(float value, float* scratch) {
    for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    return scratch[0] + scratch[1] + scratch[2] + scratch[3];
}

__global__ void exactRow(const float* __restrict__ qkv, float* __restrict__ out) {
    extern __shared__ float score[];  // [token + 1]
    __shared__ float query[HEAD_DIM], scratch[WARPS], partial[THREADS];
    const int token = blockIdx.x, head = blockIdx.y, kv = head / HEADS_PER_KV;
    const float* key = qkv + KEY_OFFSET + kv * HEAD_DIM;
    const float* value = qkv + VALUE_OFFSET + kv * HEAD_DIM;
    if (threadIdx.x < HEAD_DIM) query[threadIdx.x] = qkv[(size_t)token * QKV_WIDTH + head * HEAD_DIM + threadIdx.x] * SCORE_SCALE;
    __syncthreads();

    float largest = -INFINITY;
    for (int j = threadIdx.x; j <= token; j += THREADS) {
        float dot = 0.0f;
        for (int d = 0; d < HEAD_DIM; ++d) dot += query[d] * key[(size_t)j * QKV_WIDTH + d];
        score[j] = dot;
        largest = fmaxf(largest, dot);
    }
    largest = blockMaximum(largest, scratch);

    float sum = 0.0f;
    for (int j = threadIdx.x; j <= token; j += THREADS) {
        const float weight = expf(score[j] - largest);
        score[j] = weight;
        sum += weight;
    }
    sum = blockSum(sum, scratch);

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
