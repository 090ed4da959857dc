// Cooperative groups: tiles larger than a warp, coalesced threads, labeled and binary partitions, scans, copies, the grid.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

__global__ void large_tiles(const float* in, float* out) {
  __shared__ cg::block_tile_memory<256> memory;
  auto block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<128>(block);
  const int sum = cg::reduce(tile, (int)in[block.thread_rank()], cg::plus<int>());
  const int most = cg::reduce(tile, (int)in[block.thread_rank()], cg::greater<int>());
  if (tile.thread_rank() == 0) { out[2 * tile.meta_group_rank()] = sum; out[2 * tile.meta_group_rank() + 1] = most; }
}
__device__ int add_aggregated(int* counter) {
  auto g = cg::coalesced_threads();
  int first = 0;
  if (g.thread_rank() == 0) first = atomicAdd(counter, (int)g.size());
  return g.shfl(first, 0) + (int)g.thread_rank();
}
__global__ void filtered(const float* in, float* out, int* counter, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0) out[add_aggregated(counter)] = 1.0f;
}
__global__ void partitions(const float* in, float* out) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  const int v = (int)in[block.thread_rank()], label = v & 3;
  auto same = cg::labeled_partition(warp, label);
  const int among = cg::reduce(same, v, cg::plus<int>());
  auto odd = cg::binary_partition(warp, (v & 1) != 0);
  const int beside = (int)odd.size() * 1000 + (int)odd.thread_rank();
  const int before = cg::exclusive_scan(warp, v, cg::plus<int>()), upto = cg::inclusive_scan(warp, v);
  out[4 * block.thread_rank()] = among;
  out[4 * block.thread_rank() + 1] = beside;
  out[4 * block.thread_rank() + 2] = before;
  out[4 * block.thread_rank() + 3] = upto + warp.any(v > 90) + 10 * __popc(warp.ballot(v > 50));
}
__global__ void fetched(const float* in, float* out) {
  __shared__ float tile[128];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in, sizeof tile);
  cg::wait(block);
  out[block.thread_rank()] = tile[127 - block.thread_rank()];
}
__global__ void over_the_grid(const float* in, float* out, float* between, int n) {
  auto grid = cg::this_grid();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) between[i] = in[i] + 1;
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) out[i] = between[n - 1 - i];
  cg::sync(grid);
  if (grid.thread_rank() == 0) out[0] = -1;
}
extern "C" void groups(const float* x, float* y, int n, cudaStream_t stream) {
  int* counter;
  float* between;
  cudaMalloc(&counter, sizeof(int));
  cudaMalloc(&between, n * sizeof(float));
  cudaMemsetAsync(counter, 0, sizeof(int), stream);
  cudaMemsetAsync(y + 4, 0, n * sizeof(float), stream);
  large_tiles<<<1, 256, 0, stream>>>(x, y);
  filtered<<<(n + 127) / 128, 128, 0, stream>>>(x, y + 4, counter, n);
  partitions<<<1, 64, 0, stream>>>(x, y + 4 + n);
  fetched<<<1, 128, 0, stream>>>(x, y + 4 + n + 256);
  float* out = y + 4 + n + 256 + 128;
  void* arguments[] = {(void*)&x, (void*)&out, (void*)&between, (void*)&n};
  cudaLaunchCooperativeKernel((void*)over_the_grid, dim3(4), dim3(64), arguments, 0, stream);
}
