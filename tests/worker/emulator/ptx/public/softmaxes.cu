// Softmax over rows: three passes, in shared memory declared the other way round, online, and a warp a row with float4.
#include <cfloat>
#include <cuda_runtime.h>
#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))
#define LAUNCH(kernel, grid, block, bytes, ...) kernel<<<(grid), (block), (bytes), stream>>>(__VA_ARGS__)

__global__ void three_passes(float* out, const float* inp, int N, int C) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    const float* row = inp + i * C;
    float maxval = -INFINITY;
    for (int j = 0; j < C; j++) if (row[j] > maxval) maxval = row[j];
    double sum = 0.0;
    for (int j = 0; j < C; j++) { out[i * C + j] = expf(row[j] - maxval); sum += out[i * C + j]; }
    for (int j = 0; j < C; j++) out[i * C + j] /= (float)sum;
  }
}
__global__ void in_shared(float* out, const float* inp, int C) {
  extern float __shared__ x[];
  const float* row = inp + blockIdx.x * C;
  float most = -FLT_MAX;
  for (int j = threadIdx.x; j < C; j += blockDim.x) most = fmaxf(most, row[j]);
  x[threadIdx.x] = most;
  for (int stride = blockDim.x / 2; stride >= 1; stride /= 2) {
    __syncthreads();
    if (threadIdx.x < stride) x[threadIdx.x] = fmaxf(x[threadIdx.x], x[threadIdx.x + stride]);
  }
  __syncthreads();
  const float offset = x[0];
  __syncthreads();
  float sum = 0.0f;
  for (int j = threadIdx.x; j < C; j += blockDim.x) sum += __expf(row[j] - offset);
  x[threadIdx.x] = sum;
  for (int stride = blockDim.x / 2; stride >= 1; stride /= 2) {
    __syncthreads();
    if (threadIdx.x < stride) x[threadIdx.x] += x[threadIdx.x + stride];
  }
  __syncthreads();
  sum = x[0];
  for (int j = threadIdx.x; j < C; j += blockDim.x) out[blockIdx.x * C + j] = __expf(row[j] - offset) / sum;
}
struct __align__(8) SumMax { float maxval, sum; };
__device__ __forceinline__ SumMax both(SumMax a, SumMax b) {
  const bool bigger = a.maxval > b.maxval;
  SumMax big = bigger ? a : b, small = bigger ? b : a, res;
  res.maxval = big.maxval;
  res.sum = big.sum + small.sum * expf(small.maxval - big.maxval);
  return res;
}
__global__ void online(float* __restrict__ out, const float* __restrict__ inp, int N, int C) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= N) return;
  SumMax mine = {-INFINITY, 0.0f};
  for (int i = lane; i < C; i += 32) mine = both(mine, {inp[row * C + i], 1.0f});
  for (int offset = 16; offset > 0; offset /= 2) {
    SumMax other = {__shfl_xor_sync(0xffffffff, mine.maxval, offset), __shfl_xor_sync(0xffffffff, mine.sum, offset)};
    mine = both(mine, other);
  }
  for (int i = lane; i < C; i += 32) __stcs(out + row * C + i, expf(__ldcs(inp + row * C + i) - mine.maxval) / mine.sum);
}
template <int C> __global__ void by_four(float* out, const float* inp) {
  const int lane = threadIdx.x, row = blockIdx.x;
  float4 v = reinterpret_cast<const float4*>(inp + row * C)[lane];
  float most = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
#pragma unroll
  for (int step = 16; step; step >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
  v = make_float4(__expf(v.x - most), __expf(v.y - most), __expf(v.z - most), __expf(v.w - most));
  float sum = v.x + v.y + v.z + v.w;
#pragma unroll
  for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
  const float inv = __fdividef(1.0f, sum);
  reinterpret_cast<float4*>(out + row * C)[lane] = make_float4(v.x * inv, v.y * inv, v.z * inv, v.w * inv);
}
extern "C" void softmaxes(const float* x, float* y, int n, cudaStream_t stream) {
  const int C = 128, N = n / C;
  LAUNCH(three_passes, CEIL_DIV(N, 32), 32, 0, y, x, N, C);
  LAUNCH(in_shared, N, 64, 64 * sizeof(float), y + n, x, C);
  LAUNCH(online, CEIL_DIV(N, 4), 128, 0, y + 2 * n, x, N, C);
  LAUNCH(by_four<128>, N, 32, 0, y + 3 * n, x);
}
