// One cooperative launch: blocks take rows in turn and wait for the whole grid after every head; cub reduces and scans.
#include "attention.h"

#include <cooperative_groups.h>
#include <cub/cub.cuh>
#include <math.h>

namespace {

constexpr int THREADS = 128;
constexpr int LONGEST = 8192;

using Maximum = cub::BlockReduce<float, THREADS>;
using Scan = cub::BlockScan<float, THREADS>;

struct Larger {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

__global__ void __launch_bounds__(THREADS) waitingRows(const float* __restrict__ qkv, float* __restrict__ out, int tokens) {
    extern __shared__ float score[];
    __shared__ union {
        typename Maximum::TempStorage maximum;
        typename Scan::TempStorage scan;
    } scratch;
    __shared__ float whole[2];
    __shared__ float half[HEAD_DIM];
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();

    for (int head = 0; head < HEADS; ++head) {
        const int kv = head / HEADS_PER_KV;
        for (int row = blockIdx.x; row < tokens; row += gridDim.x) {
            const float* query = qkv + (size_t)row * QKV_WIDTH + head * HEAD_DIM;
            float highest = -INFINITY;
            for (int key = threadIdx.x; key <= row; key += THREADS) {
                const float* k = qkv + (size_t)key * QKV_WIDTH + KEY_OFFSET + kv * HEAD_DIM;
                float sum = 0.0f;
                for (int d = 0; d < HEAD_DIM; ++d) sum = fmaf(query[d], k[d], sum);
                score[key] = sum * SCORE_SCALE;
                highest = fmaxf(highest, score[key]);
            }
            highest = Maximum(scratch.maximum).Reduce(highest, Larger());
            if (threadIdx.x == 0) whole[0] = highest;
            __syncthreads();
            float mine = 0.0f, upTo;
            for (int key = threadIdx.x; key <= row; key += THREADS) {
                score[key] = expf(score[key] - whole[0]);
                mine += score[key];
            }
            Scan(scratch.scan).InclusiveSum(mine, upTo);
            if (threadIdx.x == THREADS - 1) whole[1] = upTo;
            __syncthreads();
            const int dim = threadIdx.x % HEAD_DIM, part = threadIdx.x / HEAD_DIM;
            float sum = 0.0f;
            for (int key = part; key <= row; key += THREADS / HEAD_DIM)
                sum = fmaf(score[key], qkv[(size_t)key * QKV_WIDTH + VALUE_OFFSET + kv * HEAD_DIM + dim], sum);
            if (part == 1) half[dim] = sum;
            __syncthreads();
            if (part == 0) out[(size_t)row * OUT_WIDTH + head * HEAD_DIM + dim] = (sum + half[dim]) / whole[1];
            __syncthreads();
        }
        grid.sync();
    }
}

}  // namespace

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    if (tokens > LONGEST) return;
    int device = 0, processors = 0, each = 0;
    const size_t shared = tokens * sizeof(float);
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, waitingRows, THREADS, shared);
    const int blocks = tokens < processors * each ? tokens : processors * each;
    void* arguments[] = {&qkv, &out, &tokens};
    cudaLaunchCooperativeKernel((const void*)waitingRows, dim3(blocks), dim3(THREADS), arguments, shared, stream);
}
