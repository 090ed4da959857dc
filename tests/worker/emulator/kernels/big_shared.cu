// 64 KB of dynamic shared memory, carved by hand into two arrays of different types.
#include <cuda_runtime.h>

template <typename T>
__global__ void reverse(const T* in, T* out, int n) {
    extern __shared__ __align__(16) unsigned char raw[];
    T* values = reinterpret_cast<T*>(raw);
    int* places = reinterpret_cast<int*>(raw + n * sizeof(T));
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        values[i] = in[i];
        places[i] = n - 1 - i;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[places[i]] = values[i];
}

extern "C" void big_shared(const float* in, float* out, int n, cudaStream_t stream) {
    const size_t bytes = n * (sizeof(float) + sizeof(int));
    if (cudaFuncSetAttribute(reverse<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes) != cudaSuccess) return;
    reverse<float><<<1, 256, bytes, stream>>>(in, out, n);
}
