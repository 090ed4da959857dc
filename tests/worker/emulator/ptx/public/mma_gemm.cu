// C = A × B with mma.sync, ldmatrix and cp.async by hand, two stages ahead, the tiles swizzled against bank conflicts.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>
constexpr int BM = 32, BN = 32, BK = 32, STAGES = 2;

__device__ __forceinline__ uint32_t smem(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
#define CP_ASYNC(dst, src) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(dst), "l"(src), "n"(16))
#define CP_COMMIT() asm volatile("cp.async.commit_group;\n" ::)
#define CP_WAIT(N) asm volatile("cp.async.wait_group %0;\n" ::"n"(N))
#define LDMATRIX_X4(r, addr) asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr))
#define LDMATRIX_X2T(r, addr) asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n" : "=r"(r[0]), "=r"(r[1]) : "r"(addr))
#define MMA(c, a, b) \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n" \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

__device__ __forceinline__ int swizzled(int row, int chunk) { return row * BK + ((chunk ^ (row >> 1 & 3)) << 3); }

__global__ void gemm(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
  extern __shared__ __align__(128) half tiles[];
  half *As = tiles, *Bs = tiles + STAGES * BM * BK;
  const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
  const auto fetch = [&](int stage, int k0) {
    const int row = tid / 4, chunk = tid % 4;
    CP_ASYNC(smem(&As[stage * BM * BK + swizzled(row, chunk)]), &A[(blockIdx.y * BM + row) * K + k0 + chunk * 8]);
    CP_ASYNC(smem(&Bs[stage * BK * BN + swizzled(row, chunk)]), &B[(k0 + row) * N + blockIdx.x * BN + chunk * 8]);
    CP_COMMIT();
  };
  float acc[2][4] = {};
  const int wm = warp / 2 * 16, wn = warp % 2 * 16;
  fetch(0, 0);
  for (int k0 = 0, stage = 0; k0 < K; k0 += BK, stage ^= 1) {
    if (k0 + BK < K) { fetch(stage ^ 1, k0 + BK); CP_WAIT(1); } else CP_WAIT(0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      uint32_t a[4], b[2];
      LDMATRIX_X4(a, smem(&As[stage * BM * BK + swizzled(wm + lane % 16, (k + lane / 16 * 8) / 8)]));
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        LDMATRIX_X2T(b, smem(&Bs[stage * BK * BN + swizzled(k + lane % 16, (wn + j * 8) / 8)]));
        MMA(acc[j], a, b);
      }
    }
    __syncthreads();
  }
  for (int j = 0; j < 2; ++j) {
    const int row = blockIdx.y * BM + wm + lane / 4, column = blockIdx.x * BN + wn + j * 8 + lane % 4 * 2;
    *reinterpret_cast<float2*>(&C[row * N + column]) = make_float2(acc[j][0], acc[j][1]);
    *reinterpret_cast<float2*>(&C[(row + 8) * N + column]) = make_float2(acc[j][2], acc[j][3]);
  }
}
__global__ void to_half(const float* in, half* out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = __float2half(in[i]); }

extern "C" void mma_gemm(const float* x, float* y, int n, cudaStream_t stream) {
  const int size = 64;
  half* halves;
  cudaMalloc(&halves, n * sizeof(half));
  to_half<<<(n + 255) / 256, 256, 0, stream>>>(x, halves, n);
  const int bytes = STAGES * (BM * BK + BK * BN) * sizeof(half);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  gemm<<<dim3(size / BN, size / BM), 128, bytes, stream>>>(halves, halves + size * size, y, size, size, size);
}
