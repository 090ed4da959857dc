// The mark to beat: 64 resident rows, 8 x 4 micro-tiles, K/V tiles copied asynchronously one tile ahead.
//
// Three things beyond the plain solution. Micro-tiles of eight rows use each float4 of a key or value eight times. The next
// K/V tile is under way (cp.async) while this one is computed on. And query tiles are dealt to blocks like cards laid there
// and back again, so that a multiprocessor that got a long tile gets a short one next.
#include "attention.h"

#include <cuda_pipeline.h>
#include <math.h>

namespace {

constexpr int ROWS = 64;
constexpr int KEYS = 64;
constexpr int THREADS = 128;
constexpr int MY_ROWS = 8;
constexpr int MY_KEYS = 4;
constexpr int PITCH = HEAD_DIM + 4;

struct Stage {
    float key[KEYS][PITCH];
    float value[KEYS][PITCH];
};

struct Shared {
    float query[ROWS][PITCH];
    float weight[ROWS][PITCH];
    Stage stage[2];
};

__device__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

__device__ void copyAhead(float (*tile)[PITCH], const float* from, int first, int tokens) {
#pragma unroll
    for (int i = threadIdx.x; i < KEYS * (HEAD_DIM / 4); i += THREADS) {
        const int row = i / (HEAD_DIM / 4), column = i % (HEAD_DIM / 4) * 4;
        const int token = min(first + row, tokens - 1);
        __pipeline_memcpy_async(&tile[row][column], from + (size_t)token * QKV_WIDTH + column, 16);
    }
}

__device__ int queryTile(int rank, int tiles) {
    const int half = tiles / 2, round = rank / (half > 0 ? half : 1);
    return round == 0 ? tiles - 1 - rank : rank - half;
}

__global__ void __launch_bounds__(THREADS, 2)
    registerTiles(const float* __restrict__ qkv, float* __restrict__ out, int tokens) {
    extern __shared__ float4 raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int tiles = gridDim.y;
    const int first = queryTile(blockIdx.y, tiles) * ROWS;
    const int head = blockIdx.x, kv = head / HEADS_PER_KV;
    const int lane = threadIdx.x % 16, row = threadIdx.x / 16 * MY_ROWS;
    const float* keys = qkv + KEY_OFFSET + kv * HEAD_DIM;
    const float* values = qkv + VALUE_OFFSET + kv * HEAD_DIM;

    copyAhead(s.query, qkv + head * HEAD_DIM, first, tokens);
    copyAhead(s.stage[0].key, keys, 0, tokens);
    copyAhead(s.stage[0].value, values, 0, tokens);
    __pipeline_commit();

    float m[MY_ROWS], l[MY_ROWS];
    float4 acc[MY_ROWS];
#pragma unroll
    for (int i = 0; i < MY_ROWS; ++i) {
        m[i] = -INFINITY;
        l[i] = 0.0f;
        acc[i] = float4{};
    }
    const int steps = (min(first + ROWS, tokens) + KEYS - 1) / KEYS;
    for (int step = 0; step < steps; ++step) {
        const Stage& now = s.stage[step & 1];
        __pipeline_wait_prior(0);
        __syncthreads();
        if (step + 1 < steps) {
            copyAhead(s.stage[(step + 1) & 1].key, keys, (step + 1) * KEYS, tokens);
            copyAhead(s.stage[(step + 1) & 1].value, values, (step + 1) * KEYS, tokens);
            __pipeline_commit();
        }
        float score[MY_ROWS][MY_KEYS] = {};
#pragma unroll 4
        for (int d = 0; d < HEAD_DIM; d += 4) {
            float4 k[MY_KEYS];
#pragma unroll
            for (int j = 0; j < MY_KEYS; ++j) k[j] = load4(&now.key[lane + 16 * j][d]);
#pragma unroll
            for (int i = 0; i < MY_ROWS; ++i) {
                const float4 q = load4(&s.query[row + i][d]);
#pragma unroll
                for (int j = 0; j < MY_KEYS; ++j)
                    score[i][j] = fmaf(q.x, k[j].x, fmaf(q.y, k[j].y, fmaf(q.z, k[j].z, fmaf(q.w, k[j].w, score[i][j]))));
            }
        }
        const bool diagonal = step + 1 == steps;  // only the last tile reaches past a row's own key
#pragma unroll
        for (int i = 0; i < MY_ROWS; ++i) {
            float tile_max = -INFINITY;
#pragma unroll
            for (int j = 0; j < MY_KEYS; ++j) {
                const bool hidden = diagonal && step * KEYS + lane + 16 * j > first + row + i;
                score[i][j] = hidden ? -INFINITY : score[i][j] * SCORE_SCALE;
                tile_max = fmaxf(tile_max, score[i][j]);
            }
#pragma unroll
            for (int far = 8; far; far >>= 1) tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffffu, tile_max, far));
            const float m_new = fmaxf(m[i], tile_max);
            const float alpha = __expf(m[i] - m_new);
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < MY_KEYS; ++j) {
                const float p = __expf(score[i][j] - m_new);
                s.weight[row + i][lane + 16 * j] = p;
                sum += p;
            }
            m[i] = m_new;
            l[i] = fmaf(alpha, l[i], sum);  // this lane's keys only; the lanes' sums meet at the end
            acc[i].x *= alpha;
            acc[i].y *= alpha;
            acc[i].z *= alpha;
            acc[i].w *= alpha;
        }
        __syncwarp();
#pragma unroll 4
        for (int k = 0; k < KEYS; k += 4) {
            float4 v[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) v[j] = load4(&now.value[k + j][lane * 4]);
#pragma unroll
            for (int i = 0; i < MY_ROWS; ++i) {
                const float4 p = load4(&s.weight[row + i][k]);
                acc[i].x = fmaf(p.x, v[0].x, fmaf(p.y, v[1].x, fmaf(p.z, v[2].x, fmaf(p.w, v[3].x, acc[i].x))));
                acc[i].y = fmaf(p.x, v[0].y, fmaf(p.y, v[1].y, fmaf(p.z, v[2].y, fmaf(p.w, v[3].y, acc[i].y))));
                acc[i].z = fmaf(p.x, v[0].z, fmaf(p.y, v[1].z, fmaf(p.z, v[2].z, fmaf(p.w, v[3].z, acc[i].z))));
                acc[i].w = fmaf(p.x, v[0].w, fmaf(p.y, v[1].w, fmaf(p.z, v[2].w, fmaf(p.w, v[3].w, acc[i].w))));
            }
        }
    }
#pragma unroll
    for (int i = 0; i < MY_ROWS; ++i) {
        float sum = l[i];
#pragma unroll
        for (int far = 8; far; far >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, far);
        const int token = first + row + i;
        if (token >= tokens) continue;
        const float scale = 1.0f / sum;
        const float4 result = {acc[i].x * scale, acc[i].y * scale, acc[i].z * scale, acc[i].w * scale};
        *reinterpret_cast<float4*>(out + (size_t)token * OUT_WIDTH + head * HEAD_DIM + lane * 4) = result;
    }
}

}  // namespace

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    cudaFuncSetAttribute(registerTiles, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
    const dim3 grid(HEADS, (tokens + ROWS - 1) / ROWS);
    registerTiles<<<grid, THREADS, sizeof(Shared), stream>>>(qkv, out, tokens);
}
