// Larger public samples in small: n-body, Black and Scholes, a radix-2 FFT, a separable convolution, sparse rows, bitonic sort.
#include <cuda_runtime.h>

__global__ void nbody(const float4* bodies, float* out, int n) {
  extern __shared__ float4 tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 me = bodies[i];
  float3 acc = {0, 0, 0};
  for (int first = 0; first < n; first += blockDim.x) {
    tile[threadIdx.x] = bodies[first + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < blockDim.x; ++j) {
      const float3 r = {tile[j].x - me.x, tile[j].y - me.y, tile[j].z - me.z};
      const float d2 = r.x * r.x + r.y * r.y + r.z * r.z + 0.1f, inv = rsqrtf(d2), s = tile[j].w * inv * inv * inv;
      acc.x += r.x * s; acc.y += r.y * s; acc.z += r.z * s;
    }
    __syncthreads();
  }
  out[3 * i] = acc.x; out[3 * i + 1] = acc.y; out[3 * i + 2] = acc.z;
}
__device__ inline float cnd(float d) {
  const float K = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
  float v = 0.39894228040143267793994605993438f * __expf(-0.5f * d * d) * (K * (0.31938153f + K * (-0.356563782f + K * (1.781477937f + K * (-1.821255978f + K * 1.330274429f)))));
  return d > 0 ? 1.0f - v : v;
}
__launch_bounds__(128) __global__ void black_scholes(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float S = 20.0f + fabsf(in[i]), X = 25.0f, T = 1.5f, R = 0.02f, V = 0.3f, root = sqrtf(T);
  const float d1 = (__logf(S / X) + (R + 0.5f * V * V) * T) / (V * root), d2 = d1 - V * root, e = __expf(-R * T);
  out[i] = S * cnd(d1) - X * e * cnd(d2);
}
__global__ void fft(const float* in, float* out) {
  __shared__ float2 s[64];
  const int t = threadIdx.x;
  s[t] = make_float2(in[__brev(t) >> 26], 0.0f);
  for (int half = 1; half < 64; half *= 2) {
    __syncthreads();
    if (t < 32) {
      const int k = t % half, at = t / half * 2 * half + k;
      float sn, cs;
      sincospif(-(float)k / half, &sn, &cs);
      const float2 a = s[at], b = s[at + half], w = make_float2(b.x * cs - b.y * sn, b.x * sn + b.y * cs);
      s[at] = make_float2(a.x + w.x, a.y + w.y);
      s[at + half] = make_float2(a.x - w.x, a.y - w.y);
    }
  }
  __syncthreads();
  out[2 * t] = s[t].x; out[2 * t + 1] = s[t].y;
}
#define RADIUS 3
__constant__ float weights[2 * RADIUS + 1] = {1, 2, 3, 4, 3, 2, 1};
__global__ void rows(const float* in, float* out, int width) {
  __shared__ float tile[64 + 2 * RADIUS];
  const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y;
  tile[threadIdx.x + RADIUS] = x < width ? in[y * width + x] : 0;
  if (threadIdx.x < RADIUS) {
    tile[threadIdx.x] = x >= RADIUS ? in[y * width + x - RADIUS] : 0;
    tile[threadIdx.x + 64 + RADIUS] = x + 64 < width ? in[y * width + x + 64] : 0;
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int j = -RADIUS; j <= RADIUS; ++j) sum += weights[RADIUS - j] * tile[threadIdx.x + RADIUS + j];
  if (x < width) out[y * width + x] = sum;
}
__global__ void bitonic(const float* in, float* out) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = in[t]; s[t + 128] = in[t + 128];
  for (int size = 2; size <= 256; size <<= 1)
    for (int stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      const int at = 2 * t - (t & (stride - 1));
      const bool up = (at & size) == 0;
      const float a = s[at], b = s[at + stride];
      if ((a > b) == up) { s[at] = b; s[at + stride] = a; }
    }
  __syncthreads();
  out[t] = s[t]; out[t + 128] = s[t + 128];
}
__global__ void mandelbrot(float* out, int width) {
  const double cx = -2.0 + 3.0 * threadIdx.x / width, cy = -1.0 + 2.0 * blockIdx.x / width;
  double x = 0, y = 0;
  int k = 0;
  for (; k < 50 && x * x + y * y < 4.0; ++k) { const double t = x * x - y * y + cx; y = 2.0 * x * y + cy; x = t; }
  out[blockIdx.x * width + threadIdx.x] = k;
}
extern "C" void numerics(const float* x, float* y, int n, cudaStream_t stream) {
  nbody<<<2, 32, 32 * sizeof(float4), stream>>>((const float4*)x, y, 64);
  black_scholes<<<2, 128, 0, stream>>>(x, y + 192, 256);
  fft<<<1, 64, 0, stream>>>(x, y + 192 + 256);
  rows<<<dim3(2, 2), 64, 0, stream>>>(x, y + 192 + 256 + 128, 100);
  bitonic<<<1, 128, 0, stream>>>(x, y + 192 + 256 + 128 + 200);
  mandelbrot<<<32, 32, 0, stream>>>(y + 192 + 256 + 128 + 200 + 256, 32);
}
