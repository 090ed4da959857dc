// CUB inside a kernel: loads, scans, reductions, radix sort, run-length and warp primitives.
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/functional>
#include <cuda_runtime.h>
constexpr int THREADS = 64, ITEMS = 4;

__global__ void block_all(const float* in, float* out, int n) {
  using Load = cub::BlockLoad<float, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
  using Store = cub::BlockStore<float, THREADS, ITEMS, cub::BLOCK_STORE_TRANSPOSE>;
  using Reduce = cub::BlockReduce<float, THREADS>;
  using Scan = cub::BlockScan<int, THREADS, cub::BLOCK_SCAN_WARP_SCANS>;
  using Sort = cub::BlockRadixSort<float, THREADS, ITEMS>;
  __shared__ union { Load::TempStorage load; Store::TempStorage store; Reduce::TempStorage reduce; Scan::TempStorage scan; Sort::TempStorage sort; } temp;
  float items[ITEMS];
  int whole[ITEMS], running[ITEMS];
  Load(temp.load).Load(in, items, n, 0.0f);
  __syncthreads();
  const float largest = Reduce(temp.reduce).Reduce(items, cuda::maximum<>{});
  if (threadIdx.x == 0) out[2 * THREADS * ITEMS] = largest;
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i) whole[i] = (int)items[i];
  Scan(temp.scan).InclusiveSum(whole, running);
  __syncthreads();
  float shown[ITEMS];
  for (int i = 0; i < ITEMS; ++i) shown[i] = (float)running[i];
  Store(temp.store).Store(out, shown);
  __syncthreads();
  Sort(temp.sort).Sort(items);
  __syncthreads();
  Store(temp.store).Store(out + THREADS * ITEMS, items);
}
__global__ void warp_all(const float* in, float* out) {
  using Reduce = cub::WarpReduce<float>;
  using Scan = cub::WarpScan<float>;
  __shared__ Reduce::TempStorage reduce[2];
  __shared__ Scan::TempStorage scan[2];
  const int warp = threadIdx.x / 32;
  const float v = in[threadIdx.x];
  const float sum = Reduce(reduce[warp]).Sum(v);
  float before;
  Scan(scan[warp]).ExclusiveSum(v, before);
  if (threadIdx.x % 32 == 0) out[warp] = sum;
  out[2 + threadIdx.x] = before;
}
extern "C" void cub_blocks(const float* x, float* y, int n, cudaStream_t stream) {
  block_all<<<1, THREADS, 0, stream>>>(x, y, n);
  warp_all<<<1, 64, 0, stream>>>(x, y + 2 * THREADS * ITEMS + 1);
}
