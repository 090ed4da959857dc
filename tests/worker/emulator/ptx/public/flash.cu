// Attention of one head with an online softmax, both products on tensor cores by mma.sync; 16 query rows a warp.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>
constexpr int D = 64, KEYS = 32;

__device__ __forceinline__ uint32_t pack(float a, float b) { const half2 h = __floats2half2_rn(a, b); return *reinterpret_cast<const uint32_t*>(&h); }
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__global__ void __launch_bounds__(64) forward(const half* Q, const half* K, const half* V, float* O, int tokens, float scale) {
  __shared__ __align__(16) half Ks[KEYS][D + 8], Vs[KEYS][D + 8];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
  const int row = blockIdx.x * 32 + warp * 16;
  uint32_t q[D / 16][4];
  for (int k = 0; k < D / 16; ++k)
    for (int i = 0; i < 4; ++i) q[k][i] = *reinterpret_cast<const uint32_t*>(&Q[(row + group + (i & 1) * 8) * D + k * 16 + pair + (i >> 1) * 8]);
  float acc[D / 8][4] = {}, most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  for (int first = 0; first < tokens; first += KEYS) {
    for (int i = threadIdx.x; i < KEYS * D / 8; i += blockDim.x) {
      *reinterpret_cast<uint4*>(&Ks[i / (D / 8)][i % (D / 8) * 8]) = *reinterpret_cast<const uint4*>(&K[(first + i / (D / 8)) * D + i % (D / 8) * 8]);
      *reinterpret_cast<uint4*>(&Vs[i / (D / 8)][i % (D / 8) * 8]) = *reinterpret_cast<const uint4*>(&V[(first + i / (D / 8)) * D + i % (D / 8) * 8]);
    }
    __syncthreads();
    float s[KEYS / 8][4] = {};
    for (int j = 0; j < KEYS / 8; ++j)
      for (int k = 0; k < D / 16; ++k) {
        const half* at = &Ks[j * 8 + group][k * 16 + pair];
        mma(s[j], q[k], *reinterpret_cast<const uint32_t*>(at), *reinterpret_cast<const uint32_t*>(at + 8));
      }
    for (int half_ = 0; half_ < 2; ++half_) {
      float m = most[half_];
      for (int j = 0; j < KEYS / 8; ++j)
        for (int e = 0; e < 2; ++e) {
          float& v = s[j][half_ * 2 + e];
          v = first + j * 8 + pair + e <= row + group + half_ * 8 ? v * scale : -INFINITY;
          m = fmaxf(m, v);
        }
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
      const float shift = m == -INFINITY ? 0 : m, alpha = exp2f((most[half_] - shift) * 1.4426950408889634f);
      float part = 0;
      for (int j = 0; j < KEYS / 8; ++j)
        for (int e = 0; e < 2; ++e) { float& v = s[j][half_ * 2 + e]; v = exp2f((v - shift) * 1.4426950408889634f); part += v; }
      part += __shfl_xor_sync(~0u, part, 1);
      part += __shfl_xor_sync(~0u, part, 2);
      sum[half_] = sum[half_] * alpha + part;
      most[half_] = m;
      for (int d = 0; d < D / 8; ++d) { acc[d][half_ * 2] *= alpha; acc[d][half_ * 2 + 1] *= alpha; }
    }
    for (int k = 0; k < KEYS / 16; ++k) {
      const uint32_t p[4] = {pack(s[2 * k][0], s[2 * k][1]), pack(s[2 * k][2], s[2 * k][3]), pack(s[2 * k + 1][0], s[2 * k + 1][1]), pack(s[2 * k + 1][2], s[2 * k + 1][3])};
      for (int d = 0; d < D / 8; d += 2) {
        uint32_t v[4];
        const uint32_t address = (uint32_t)__cvta_generic_to_shared(&Vs[k * 16 + lane % 16][d * 8 + lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(address));
        mma(acc[d], p, v[0], v[1]);
        mma(acc[d + 1], p, v[2], v[3]);
      }
    }
    __syncthreads();
  }
  for (int d = 0; d < D / 8; ++d)
    for (int i = 0; i < 4; ++i) O[(row + group + (i >> 1) * 8) * D + d * 8 + pair + (i & 1)] = acc[d][i] / sum[i >> 1];
}
__global__ void to_half(const float* in, half* out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = __float2half_rn(in[i]); }
extern "C" void flash(const float* x, float* y, int n, cudaStream_t stream) {
  const int all = n / 3, tokens = all / D;
  half* h;
  cudaMalloc(&h, n * sizeof(half));
  to_half<<<(n + 255) / 256, 256, 0, stream>>>(x, h, n);
  forward<<<tokens / 32, 64, 0, stream>>>(h, h + all, h + 2 * all, y, tokens, 0.125f);
}
