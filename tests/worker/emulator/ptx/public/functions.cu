// Calls that cannot be inlined: through tables of functions, virtual ones, recursion; templates and lambdas as kernels.
#include <cuda_runtime.h>

typedef float (*Op)(float, float);
__device__ __noinline__ float plus(float a, float b) { return a + b; }
__device__ __noinline__ float minus(float a, float b) { return a - b; }
__device__ __noinline__ float times(float a, float b) { return a * b; }
__device__ Op table[3] = {plus, minus, times};
__constant__ float factors[4];
struct Shape { __device__ virtual float area() const = 0; };
struct Square : Shape { float a; __device__ Square(float v) : a(v) {} __device__ float area() const override { return a * a; } };
struct Oblong : Shape { float a, b; __device__ Oblong(float v, float w) : a(v), b(w) {} __device__ float area() const override { return a * b; } };
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void called(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = table[i % 3](in[i], factors[i % 4]);
  Square s(in[i]);
  Oblong o(in[i], 3.0f);
  const Shape* shape = i % 2 ? static_cast<const Shape*>(&s) : &o;
  out[n + i] = shape->area();
  out[2 * n + i] = fibonacci(i % 10);
}
struct Squared { int added; __device__ float operator()(int i) const { return (float)(i * i + added); } };
struct Pair { int start; float by; double unused; };
template <class F> __global__ void each(float* out, Pair pair, int n, F f) { const int i = threadIdx.x; if (i < n) out[i] = f(i + pair.start) * pair.by; }
extern "C" void functions(const float* x, float* y, int n, cudaStream_t stream) {
  const float host[4] = {1.0f, 2.0f, -3.0f, 4.0f};
  cudaMemcpyToSymbolAsync(factors, host, sizeof host, 0, cudaMemcpyHostToDevice, stream);
  called<<<(n + 63) / 64, 64, 0, stream>>>(x, y, n);
  const int added = 5;
  each<<<1, 64, 0, stream>>>(y + 3 * n, Pair{7, 0.5f, 0}, 64, Squared{added});
}
