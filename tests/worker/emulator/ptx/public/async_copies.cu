// Copies that run beside: a pipeline of the block, a barrier object with its bytes, bulk copies both ways, producers and consumers.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;
using barrier_t = cuda::barrier<cuda::thread_scope_block>;

__global__ void piped(const float* in, float* out, int batches) {
  __shared__ float tiles[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  float sum = 0;
  for (int fetched = 0, batch = 0; batch < batches; ++batch) {
    for (; fetched < batches && fetched < batch + 2; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tiles[fetched % 2], in + fetched * 64, sizeof(float) * 64, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += tiles[batch % 2][63 - threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
__global__ void bulk(const float* in, float* out) {
  __shared__ alignas(128) float tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier_t bar;
  if (threadIdx.x == 0) { init(&bar, blockDim.x); cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); }
  __syncthreads();
  barrier_t::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::memcpy_async(tile, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(tile)), bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, 0);
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] += 1;
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out + blockIdx.x * 256, tile, sizeof(tile));
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
  }
}
// One warp fetches by hand-written PTX, the others add; two buffers, a full and an empty object for each.
__device__ __forceinline__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void await(unsigned long long* gate, unsigned phase) {
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared.b64 P1, [%0], %1;\n@P1 bra.uni DONE;\nbra.uni LAB_WAIT;\nDONE:\n}" ::"r"(smem(gate)), "r"(phase));
}
__global__ void specialised(const float* in, float* out, int batches) {
  __shared__ alignas(16) float tiles[2][128];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem(&full[i])));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(smem(&empty[i])));
    }
  asm volatile("fence.mbarrier_init.release.cluster;");
  __syncthreads();
  if (warp == 2) {
    if (threadIdx.x == 64)
      for (int batch = 0; batch < batches; ++batch) {
        const int at = batch % 2;
        if (batch >= 2) await(&empty[at], (batch / 2 + 1) % 2);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(&full[at])), "r"(512));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(smem(tiles[at])), "l"(in + batch * 128), "r"(512), "r"(smem(&full[at])) : "memory");
      }
    return;
  }
  float sum = 0;
  for (int batch = 0; batch < batches; ++batch) {
    const int at = batch % 2;
    await(&full[at], batch / 2 % 2);
    sum += tiles[at][threadIdx.x] + tiles[at][64 + threadIdx.x];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem(&empty[at])) : "memory");
  }
  out[threadIdx.x] = sum;
}
extern "C" void async_copies(const float* x, float* y, int n, cudaStream_t stream) {
  piped<<<1, 64, 0, stream>>>(x, y, n / 64);
  bulk<<<n / 256, 64, 0, stream>>>(x, y + 64);
  specialised<<<1, 96, 0, stream>>>(x, y + 64 + n, n / 128);
}
