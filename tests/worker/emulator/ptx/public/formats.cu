// Narrow formats by CUDA's own headers: fp8, half, bfloat16, with their intrinsics.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void eights(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __nv_fp8_e4m3 a(in[i]);
  const __nv_fp8_e5m2 b(in[i]);
  out[i] = float(a);
  out[n + i] = float(b);
  if (i % 4 == 0 && i + 3 < n) {
    const __nv_fp8x4_e4m3 four(make_float4(in[i], in[i + 1], in[i + 2], in[i + 3]));
    const float4 back = float4(four);
    out[2 * n + i] = back.x; out[2 * n + i + 1] = back.y; out[2 * n + i + 2] = back.z; out[2 * n + i + 3] = back.w;
  }
}
__global__ void halves(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half a = __float2half_rn(in[i]), b = __float2half_rn(in[(i + 1) % n]);
  const __half2 p = __halves2half2(a, b), q = __half2half2(__float2half(0.5f));
  out[i] = __half2float(__hfma(a, b, __hmul(a, __float2half(2.0f))));
  out[n + i] = __low2float(__hfma2(p, q, p));
  out[2 * n + i] = __half2float(__hmax(a, b)) + (__hgt(a, b) ? 100.0f : 0.0f) + (__hbeq2(p, p) ? 1000.0f : 0.0f);
  out[3 * n + i] = __half2float(hexp(__hdiv(a, __float2half(64.0f))));
  out[4 * n + i] = (float)__half2int_rn(a) + (float)__half2ushort_rz(__habs(b)) + __high2float(__hgt2(p, q));
  out[5 * n + i] = __half2float(hsqrt(__habs(a))) + __half2float(hrint(b)) + __half2float(__hmin2(p, q).x);
}
__global__ void brains(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __nv_bfloat16 a = __float2bfloat16(in[i]), b = __float2bfloat16_rz(in[(i + 1) % n]);
  const __nv_bfloat162 p(a, b);
  out[i] = __bfloat162float(__hadd(a, b));
  out[n + i] = __bfloat162float(__hfma(a, b, a));
  out[2 * n + i] = __bfloat162float(__hmax(p.x, p.y)) + (__hlt(a, b) ? 512.0f : 0.0f);
  const float2 f = __bfloat1622float2(__hmul2(p, p));
  out[3 * n + i] = f.x + f.y;
}
extern "C" void formats(const float* x, float* y, int n, cudaStream_t stream) {
  eights<<<(n + 63) / 64, 64, 0, stream>>>(x, y, n);
  halves<<<(n + 63) / 64, 64, 0, stream>>>(x, y + 3 * n, n);
  brains<<<(n + 63) / 64, 64, 0, stream>>>(x, y + 9 * n, n);
}
