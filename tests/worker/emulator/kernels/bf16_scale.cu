// bf16 in, bf16 out: a product and a sum, each rounded.
#include <cuda_bf16.h>

__global__ void scale(const __nv_bfloat16* x, __nv_bfloat16* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const __nv_bfloat16 product = __hmul_rn(x[i], __float2bfloat16(0.3f));
        y[i] = __hadd_rn(product, __float2bfloat16(1.0f));
    }
}

extern "C" void bf16_scale(const __nv_bfloat16* x, __nv_bfloat16* y, int n, cudaStream_t stream) {
    scale<<<1, 64, 0, stream>>>(x, y, n);
}
