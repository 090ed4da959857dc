// The row kernel, tuned: half a warp a key, 16 bytes a thread, 256 threads. Faster than the baseline, and of the same shape: each row still reads
// all of its keys and values again.
#include "attention.h"

#include <math.h>

namespace {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int KEYS_AT_ONCE = THREADS / 16;         // half a warp per key
constexpr int VALUES_AT_ONCE = THREADS / HEAD_DIM;  // one thread per dim

__device__ float blockMaximum(float value, float* scratch) {
    for (int step = 16; step; step >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = scratch[0];
    for (int warp = 1; warp < WARPS; ++warp) value = fmaxf(value, scratch[warp]);
    __syncthreads();
    return value;
}

__device__ float blockSum(float value, float* scratch) {
    for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) value += scratch[warp];
    __syncthreads();
    return value;
}

__global__ void exactRow(const float* __restrict__ qkv, float* __restrict__ out) {
    extern __shared__ float score[];  // [token + 1]
    __shared__ float scratch[WARPS];
    __shared__ float partial[THREADS];
    const int token = blockIdx.x, head = blockIdx.y, keys = token + 1;
    const float* key = qkv + KEY_OFFSET + head / HEADS_PER_KV * HEAD_DIM;
    const float* value = qkv + VALUE_OFFSET + head / HEADS_PER_KV * HEAD_DIM;

    const int lane = threadIdx.x % 16, half = threadIdx.x / 16;
    const float4 q = reinterpret_cast<const float4*>(qkv + (size_t)token * QKV_WIDTH + head * HEAD_DIM)[lane];
    float largest = -INFINITY;
    for (int first = 0; first < keys; first += KEYS_AT_ONCE) {
        const int j = first + half;
        float dot = 0.0f;
        if (j < keys) {
            const float4 k = reinterpret_cast<const float4*>(key + (size_t)j * QKV_WIDTH)[lane];
            dot = q.x * k.x + q.y * k.y + q.z * k.z + q.w * k.w;
        }
        for (int step = 8; step; step >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, step);
        if (j < keys) {
            dot *= SCORE_SCALE;
            if (lane == 0) score[j] = dot;
            largest = fmaxf(largest, dot);
        }
    }
    largest = blockMaximum(largest, scratch);

    float sum = 0.0f;
    for (int j = threadIdx.x; j < keys; j += THREADS) {
        const float weight = expf(score[j] - largest);
        score[j] = weight;
        sum += weight;
    }
    sum = blockSum(sum, scratch);

    const int dim = threadIdx.x % HEAD_DIM, group = threadIdx.x / HEAD_DIM;
    float weighted = 0.0f;
    for (int j = group; j < keys; j += VALUES_AT_ONCE) weighted += score[j] * value[(size_t)j * QKV_WIDTH + dim];
    partial[threadIdx.x] = weighted;
    __syncthreads();
    if (group == 0) {
        for (int other = 1; other < VALUES_AT_ONCE; ++other) weighted += partial[other * HEAD_DIM + dim];
        out[(size_t)token * OUT_WIDTH + head * HEAD_DIM + dim] = weighted / sum;
    }
}

}  // namespace

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    exactRow<<<dim3(tokens, HEADS), THREADS, tokens * sizeof(float), stream>>>(qkv, out);
}
