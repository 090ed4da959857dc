// Prefix sums: Hillis and Steele, Blelloch, by shuffles, over many blocks, and with a decoupled look-back.
#include <cuda_runtime.h>
#define CONFLICT_FREE_OFFSET(i) ((i) >> 5)

__global__ void hillis_steele(const float* in, float* out, int n) {
  extern __shared__ float temp[];
  int tid = threadIdx.x, pout = 0, pin = 1;
  temp[tid] = tid > 0 ? in[tid - 1] : 0;
  __syncthreads();
  for (int offset = 1; offset < n; offset *= 2) {
    pout = 1 - pout; pin = 1 - pout;
    temp[pout * n + tid] = tid >= offset ? temp[pin * n + tid] + temp[pin * n + tid - offset] : temp[pin * n + tid];
    __syncthreads();
  }
  out[tid] = temp[pout * n + tid];
}
__global__ void blelloch(const float* in, float* out, int n) {
  extern __shared__ float temp[];
  int tid = threadIdx.x, offset = 1, ai = tid, bi = tid + n / 2;
  int bankA = CONFLICT_FREE_OFFSET(ai), bankB = CONFLICT_FREE_OFFSET(bi);
  temp[ai + bankA] = in[ai];
  temp[bi + bankB] = in[bi];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (tid < d) {
      int a = offset * (2 * tid + 1) - 1, b = offset * (2 * tid + 2) - 1;
      a += CONFLICT_FREE_OFFSET(a); b += CONFLICT_FREE_OFFSET(b);
      temp[b] += temp[a];
    }
    offset *= 2;
  }
  if (tid == 0) temp[n - 1 + CONFLICT_FREE_OFFSET(n - 1)] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (tid < d) {
      int a = offset * (2 * tid + 1) - 1, b = offset * (2 * tid + 2) - 1;
      a += CONFLICT_FREE_OFFSET(a); b += CONFLICT_FREE_OFFSET(b);
      float t = temp[a]; temp[a] = temp[b]; temp[b] += t;
    }
  }
  __syncthreads();
  out[ai] = temp[ai + bankA];
  out[bi] = temp[bi + bankB];
}
__device__ float warp_inclusive(float v, int lane) {
#pragma unroll
  for (int i = 1; i <= 16; i *= 2) { float below = __shfl_up_sync(0xffffffffu, v, i, 32); if (lane >= i) v += below; }
  return v;
}
__global__ void by_shuffles(const float* in, float* out, float* sums) {
  __shared__ float warps[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = warp_inclusive(in[i], lane);
  if (lane == 31) warps[warp] = v;
  __syncthreads();
  if (warp == 0 && lane < blockDim.x / 32) {
    float w = warps[lane];
    const unsigned mask = (1u << (blockDim.x / 32)) - 1;
    for (int s = 1; s < blockDim.x / 32; s *= 2) { float below = __shfl_up_sync(mask, w, s, 32); if (lane >= s) w += below; }
    warps[lane] = w;
  }
  __syncthreads();
  if (warp > 0) v += warps[warp - 1];
  out[i] = v;
  if (sums && threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = v;
}
__global__ void add_before(float* out, const float* sums) {
  __shared__ float before;
  if (threadIdx.x == 0) before = blockIdx.x ? sums[blockIdx.x - 1] : 0;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] += before;
}
// Flags: 0 nothing, 1 this block's sum, 2 the sum of all up to it; value and flag in one word, as the papers have it.
__device__ unsigned taken;
__global__ void look_back(const float* in, float* out, unsigned long long* state) {
  __shared__ unsigned part;
  __shared__ float before, warps[4];
  if (threadIdx.x == 0) part = atomicAdd(&taken, 1);
  __syncthreads();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = part * blockDim.x + threadIdx.x;
  float v = warp_inclusive(in[i], lane);
  if (lane == 31) warps[warp] = v;
  __syncthreads();
  for (int w = 0; w < warp; ++w) v += warps[w];
  if (threadIdx.x == blockDim.x - 1) {
    atomicExch(&state[part], (unsigned long long)__float_as_uint(v) << 32 | (part ? 1u : 2u));
    float sum = 0;
    for (int at = (int)part - 1; at >= 0;) {
      const unsigned long long word = *(volatile unsigned long long*)&state[at];
      if (!(unsigned)word) continue;
      sum += __uint_as_float((unsigned)(word >> 32));
      if ((unsigned)word == 2) break;
      --at;
    }
    before = sum;
    if (part) atomicExch(&state[part], (unsigned long long)__float_as_uint(sum + v) << 32 | 2u);
  }
  __syncthreads();
  out[i] = v + before;
  if (threadIdx.x == 0 && part == gridDim.x - 1) taken = 0;
}
extern "C" void scans(const float* x, float* y, int n, cudaStream_t stream) {
  float* sums;
  unsigned long long* state;
  cudaMalloc(&sums, 64 * sizeof(float));
  cudaMalloc(&state, 64 * sizeof(*state));
  cudaMemsetAsync(sums, 0, 64 * sizeof(float), stream);
  hillis_steele<<<1, 128, 2 * 128 * sizeof(float), stream>>>(x, y, 128);
  blelloch<<<1, 64, (128 + 8) * sizeof(float), stream>>>(x, y + 128, 128);
  float* out = y + 256;
  by_shuffles<<<n / 128, 128, 0, stream>>>(x, out, sums);
  by_shuffles<<<1, 32, 0, stream>>>(sums, sums + 32, nullptr);
  add_before<<<n / 128, 128, 0, stream>>>(out, sums + 32);
  cudaMemsetAsync(state, 0, 64 * sizeof(*state), stream);
  look_back<<<n / 128, 128, 0, stream>>>(x, out + n, state);
}
