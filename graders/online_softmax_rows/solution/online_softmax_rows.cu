// Softmax-weighted mean of rows in one pass, a warp a row: each lane streams its columns, then the lanes' states are merged.
#include <cuda_runtime.h>

#include <math.h>

namespace {

constexpr int WARPS = 4;  // rows a block

// What is known after some columns: the largest x, the sum of e^(x - m), and the sum of e^(x - m) v. Nothing seen: -inf, 0, 0.
struct State {
    float m, l, a;
};

// e^(m - larger), and 1 where both are -inf: a lane that has seen nothing has nothing to rescale.
__device__ float rescale(float m, float larger) { return m == larger ? 1.0f : expf(m - larger); }

__device__ State merge(State one, State other) {
    const float m = fmaxf(one.m, other.m);
    const float alpha = rescale(one.m, m), beta = rescale(other.m, m);
    return {m, alpha * one.l + beta * other.l, alpha * one.a + beta * other.a};
}

__global__ void onlineRow(const float* __restrict__ x, const float* __restrict__ v, float* __restrict__ m, float* __restrict__ l,
                          float* __restrict__ out, int rows, int width) {
    const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    State state = {-INFINITY, 0.0f, 0.0f};
    for (int column = lane; column < width; column += 32) {
        const float score = x[(size_t)row * width + column];
        const float larger = fmaxf(state.m, score);
        const float alpha = rescale(state.m, larger), p = expf(score - larger);
        state = {larger, alpha * state.l + p, alpha * state.a + p * v[column]};
    }
    for (int step = 16; step; step >>= 1) {
        const State other = {__shfl_xor_sync(0xffffffffu, state.m, step), __shfl_xor_sync(0xffffffffu, state.l, step),
                             __shfl_xor_sync(0xffffffffu, state.a, step)};
        state = merge(state, other);
    }
    if (lane == 0) {
        m[row] = state.m;
        l[row] = state.l;
        out[row] = state.a / state.l;
    }
}

}  // namespace

extern "C" void onlineSoftmaxRows(const float* x, const float* v, float* m, float* l, float* out, int rows, int width,
                                  cudaStream_t stream) {
    onlineRow<<<(rows + WARPS - 1) / WARPS, WARPS * 32, 0, stream>>>(x, v, m, l, out, rows, width);
}
