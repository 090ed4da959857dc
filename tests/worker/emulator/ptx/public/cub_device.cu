// CUB's and Thrust's calls for the whole device, from host code.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/transform.h>

struct Twice { __host__ __device__ float operator()(float v) const { return 2.0f * v; } };

extern "C" void cub_device(const float* x, float* y, int n, cudaStream_t stream) {
  void* temp = nullptr;
  size_t bytes = 0, most = 0;
  cub::DeviceScan::InclusiveSum(nullptr, bytes, x, y, n, stream); most = bytes;
  cub::DeviceRadixSort::SortKeys(nullptr, bytes, x, y, n, 0, 32, stream); most = bytes > most ? bytes : most;
  cudaMalloc(&temp, most);
  bytes = most;
  cub::DeviceScan::InclusiveSum(temp, bytes, x, y, n, stream);
  cub::DeviceRadixSort::SortKeys(temp, bytes, x, y + n, n, 0, 32, stream);
  thrust::transform(thrust::cuda::par_nosync.on(stream), thrust::device_pointer_cast(x), thrust::device_pointer_cast(x) + n,
                    thrust::device_pointer_cast(y + 2 * n), Twice());
}
