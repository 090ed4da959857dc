// The steps of the well-known lesson on reductions: from interleaved addressing to shuffles and cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

template <class T> struct SharedMemory {
  __device__ inline operator T*() { extern __shared__ int __smem[]; return (T*)__smem; }
};

template <class T> __global__ void interleaved(T* in, T* out, unsigned n) {
  T* s = SharedMemory<T>();
  unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
  s[tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    if (tid % (2 * step) == 0) s[tid] += s[tid + step];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = s[0];
}
template <class T> __global__ void strided(T* in, T* out, unsigned n) {
  T* s = SharedMemory<T>();
  unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
  s[tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    unsigned index = 2 * step * tid;
    if (index < blockDim.x) s[index] += s[index + step];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = s[0];
}
template <class T> __global__ void sequential(T* in, T* out, unsigned n) {
  T* s = SharedMemory<T>();
  unsigned tid = threadIdx.x, i = blockIdx.x * (blockDim.x * 2) + tid;
  T mine = i < n ? in[i] : 0;
  if (i + blockDim.x < n) mine += in[i + blockDim.x];
  s[tid] = mine;
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step >>= 1) {
    if (tid < step) s[tid] = mine = mine + s[tid + step];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = mine;
}
template <class T, unsigned blockSize> __global__ void unrolled(T* in, T* out, unsigned n) {
  cg::thread_block block = cg::this_thread_block();
  T* s = SharedMemory<T>();
  unsigned tid = threadIdx.x, i = blockIdx.x * blockSize * 2 + tid, stride = blockSize * 2 * gridDim.x;
  T mine = 0;
  for (; i < n; i += stride) { mine += in[i]; if (i + blockSize < n) mine += in[i + blockSize]; }
  s[tid] = mine;
  cg::sync(block);
  if (blockSize >= 512 && tid < 256) s[tid] = mine = mine + s[tid + 256];
  cg::sync(block);
  if (blockSize >= 256 && tid < 128) s[tid] = mine = mine + s[tid + 128];
  cg::sync(block);
  if (blockSize >= 128 && tid < 64) s[tid] = mine = mine + s[tid + 64];
  cg::sync(block);
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
  if (block.thread_rank() < 32) {
    if (blockSize >= 64) mine += s[tid + 32];
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) mine += tile.shfl_down(mine, offset);
  }
  if (block.thread_rank() == 0) out[blockIdx.x] = mine;
}
__device__ __forceinline__ int warp_sum(unsigned mask, int v) { return __reduce_add_sync(mask, v); }
template <class T> __device__ __forceinline__ T warp_sum(unsigned mask, T v) {
  const int lanes = __popc(mask);
  for (int offset = lanes / 2; offset > 0; offset /= 2) v += __shfl_down_sync(mask, v, offset, lanes);
  return v;
}
template <class T> __global__ void by_warps(const T* __restrict__ in, T* __restrict__ out, unsigned n) {
  __shared__ T partial[32];
  T mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += in[i];
  mine = warp_sum(0xffffffffu, mine);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
  __syncthreads();
  const unsigned warps = blockDim.x / 32, ballot = __ballot_sync(0xffffffffu, threadIdx.x < warps);
  if (threadIdx.x < warps) {
    mine = partial[threadIdx.x];
    mine = warp_sum(ballot, mine);
    if (threadIdx.x == 0) out[blockIdx.x] = mine;
  }
}
template <class T, class Group> __device__ T reduce_block(T* v, const Group& tile) { return cg::reduce(tile, *v, cg::plus<T>()); }
__global__ void by_groups(float* in, float* out, unsigned n) {
  cg::thread_block block = cg::this_thread_block();
  __shared__ double total;
  float mine = 0;
  for (unsigned i = block.group_index().x * block.size() + block.thread_rank(); i < n; i += gridDim.x * block.size()) mine += in[i];
  if (block.thread_rank() == 0) total = 0;
  block.sync();
  auto tile = cg::tiled_partition<32>(block);
  const float sum = reduce_block(&mine, tile);
  if (tile.thread_rank() == 0) atomicAdd(&total, (double)sum);
  block.sync();
  if (block.thread_rank() == 0) out[blockIdx.x] = (float)total;
}
__global__ void to_ints(const float* in, int* out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = (int)in[i]; }
__global__ void to_floats(const int* in, float* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = (float)in[threadIdx.x]; }
// The last block to finish adds up what the others left.
__device__ unsigned finished = 0;
__global__ void single_pass(const float* in, volatile float* out, float* result, unsigned n) {
  __shared__ float s[128];
  __shared__ bool last;
  float mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += in[i];
  s[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned step = 64; step > 0; step >>= 1) { if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step]; __syncthreads(); }
  if (threadIdx.x == 0) {
    out[blockIdx.x] = s[0];
    __threadfence();
    last = atomicInc(&finished, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    float sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += out[i];
    s[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned step = 64; step > 0; step >>= 1) { if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step]; __syncthreads(); }
    if (threadIdx.x == 0) { *result = s[0]; finished = 0; }
  }
}

extern "C" void reductions(const float* x, float* y, int n, cudaStream_t stream) {
  float* in = const_cast<float*>(x);
  const int threads = 128, blocks = 8;
  int *ints, *sums;
  cudaMalloc(&ints, n * sizeof(int));
  cudaMalloc(&sums, blocks * sizeof(int));
  interleaved<float><<<blocks, threads, threads * 4, stream>>>(in, y, n);
  strided<float><<<blocks, threads, threads * 4, stream>>>(in, y + 8, n);
  sequential<float><<<blocks / 2, threads, threads * 4, stream>>>(in, y + 16, n);
  unrolled<float, 128><<<4, 128, threads * 4, stream>>>(in, y + 20, n);
  by_warps<float><<<4, threads, 0, stream>>>(in, y + 24, n);
  by_groups<<<4, threads, 0, stream>>>(in, y + 28, n);
  to_ints<<<(n + 255) / 256, 256, 0, stream>>>(x, ints, n);
  by_warps<int><<<4, threads, 0, stream>>>(ints, sums, n);
  to_floats<<<1, 32, 0, stream>>>(sums, y + 32, 4);
  single_pass<<<4, 128, 0, stream>>>(x, y + 36, y + 40, n);
}
