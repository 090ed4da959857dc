// Votes, matches and shuffles, by intrinsics and in the spellings that inline assembly uses; compaction by ballots.
#include <cuda_runtime.h>

__global__ void compacted(const float* in, float* out, int* count, int n) {
  __shared__ int warps[8], base;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int first = 0; first < n; first += blockDim.x) {
    const int i = first + threadIdx.x;
    const bool keep = i < n && in[i] > 0;
    const unsigned ballot = __ballot_sync(0xffffffffu, keep);
    if (lane == 0) warps[warp] = __popc(ballot);
    __syncthreads();
    if (threadIdx.x == 0) { int sum = first ? base : 0; for (int w = 0; w < blockDim.x / 32; ++w) { const int c = warps[w]; warps[w] = sum; sum += c; } base = sum; }
    __syncthreads();
    unsigned below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    if (keep) out[warps[warp] + __popc(ballot & below)] = in[i];
    __syncthreads();
  }
  if (threadIdx.x == 0) *count = base;
}
__global__ void spelled(const float* in, float* out) {
  const int lane = threadIdx.x, inside = in[lane] > 0;
  unsigned a, b, c, d, e, f;
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.ballot.sync.b32 %0, p, 0xffffffff; }" : "=r"(a) : "r"(inside));
  asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; vote.sync.any.pred q, p, -1; selp.u32 %0, 1, 0, q; }" : "=r"(b) : "r"(inside));
  asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; vote.all.sync.pred q, !p, -1; selp.u32 %0, 1, 0, q; }" : "=r"(c) : "r"(inside));
  asm volatile("match.sync.any.b32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(lane / 5));
  asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %0, 7, 9, p; }" : "=r"(e));
  asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(f) : "r"((int)in[lane]));
  out[lane] = __popc(a) + 100 * b + 1000 * c;
  out[32 + lane] = d;
  out[64 + lane] = e;
  out[96 + lane] = (int)f;
  int equal;
  __match_all_sync(0xffffffffu, inside, &equal);
  out[128 + lane] = equal + 2 * __all_sync(~0u, lane < 32) + 4 * (__any_sync(~0u, lane == 31) != 0) + 8 * __syncthreads_count(lane < 7);
  out[160 + lane] = __shfl_sync(~0u, (double)in[lane] * 0.5, lane ^ 1) + __shfl_up_sync(~0u, lane, 3, 8) + __shfl_down_sync(~0u, (long long)lane << 33, 2) * 0x1p-33;
}
__global__ void told(const int* count, float* out) { *out = *count; }
extern "C" void votes(const float* x, float* y, int n, cudaStream_t stream) {
  int* count;
  cudaMalloc(&count, sizeof(int));
  cudaMemsetAsync(y, 0, n * sizeof(float), stream);
  compacted<<<1, 128, 0, stream>>>(x, y, count, n);
  told<<<1, 1, 0, stream>>>(count, y + n);
  spelled<<<1, 32, 0, stream>>>(x, y + n + 1);
}
