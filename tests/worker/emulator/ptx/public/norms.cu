// Layer norm and RMS norm: a thread a row, a block a row, Welford's way, and vectors with cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

__global__ void thread_a_row(float* out, const float* inp, int N, int C) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  const float eps = 1e-5f;
  if (idx < N) {
    const float* x = inp + idx * C;
    float m = 0.0f, v = 0.0f;
    for (int i = 0; i < C; i++) m += x[i];
    m /= C;
    for (int i = 0; i < C; i++) { float d = x[i] - m; v += d * d; }
    const float s = 1.0f / sqrtf(v / C + eps);
    for (int i = 0; i < C; i++) out[idx * C + i] = s * (x[i] - m);
  }
}
__global__ void group_a_row(float* __restrict__ out, const float* __restrict__ inp, int N, int C) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N) return;
  const float* x = inp + idx * C;
  float sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) sum += x[i];
  const float m = cg::reduce(warp, sum, cg::plus<float>{}) / C;
  sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) { float diff = x[i] - m; sum += diff * diff; }
  const float s = rsqrtf(cg::reduce(warp, sum, cg::plus<float>{}) / C + 1e-5f);
  for (int c = warp.thread_rank(); c < C; c += warp.size()) __stcs(out + idx * C + c, s * (__ldcs(x + c) - m));
}
__global__ void welford(float* out, const float* inp, int C) {
  __shared__ float means[4], m2s[4], counts[4];
  const float* x = inp + blockIdx.x * C;
  float mean = 0, m2 = 0, count = 0;
  for (int i = threadIdx.x; i < C; i += blockDim.x) { count += 1; const float d = x[i] - mean; mean += d / count; m2 += d * (x[i] - mean); }
  const auto join = [&](float om, float o2, float oc) {
    const float all = count + oc;
    if (all == 0) return;
    const float d = om - mean;
    mean += d * oc / all; m2 += o2 + d * d * count * oc / all; count = all;
  };
  for (int s = 16; s; s >>= 1) join(__shfl_down_sync(~0u, mean, s), __shfl_down_sync(~0u, m2, s), __shfl_down_sync(~0u, count, s));
  if (threadIdx.x % 32 == 0) { means[threadIdx.x / 32] = mean; m2s[threadIdx.x / 32] = m2; counts[threadIdx.x / 32] = count; }
  __syncthreads();
  mean = means[0]; m2 = m2s[0]; count = counts[0];
  for (int w = 1; w < blockDim.x / 32; ++w) join(means[w], m2s[w], counts[w]);
  const float s = rsqrtf(m2 / C + 1e-5f);
  for (int i = threadIdx.x; i < C; i += blockDim.x) out[blockIdx.x * C + i] = (x[i] - mean) * s;
}
__global__ void rms(float4* out, const float4* inp, int C4, float scale) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < C4; i += blockDim.x) { const float4 v = inp[blockIdx.x * C4 + i]; sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
  for (int s = 16; s; s >>= 1) sum += __shfl_xor_sync(~0u, sum, s);
  if ((threadIdx.x & 31) == 0) atomicAdd(&total, sum);
  __syncthreads();
  const float r = rsqrtf(total * scale + 1e-5f);
  for (int i = threadIdx.x; i < C4; i += blockDim.x) { float4 v = inp[blockIdx.x * C4 + i]; v.x *= r; v.y *= r; v.z *= r; v.w *= r; out[blockIdx.x * C4 + i] = v; }
}
extern "C" void norms(const float* x, float* y, int n, cudaStream_t stream) {
  const int C = 192, N = n / C;
  thread_a_row<<<1, 32, 0, stream>>>(y, x, N, C);
  group_a_row<<<(N + 1) / 2, 64, 0, stream>>>(y + n, x, N, C);
  welford<<<N, 64, 0, stream>>>(y + 2 * n, x, C);
  rms<<<N, 32, 0, stream>>>((float4*)(y + 3 * n), (const float4*)x, C / 4, 1.0f / C);
}
