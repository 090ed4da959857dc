// A block walks over the pairs of its token and leaves them as they are. What is missing is the turn.
#include <cuda_runtime.h>

namespace {

__global__ void eachPair(float* qkv, int heads, int kv_heads, int dim, float base) {
    float* row = qkv + (size_t)blockIdx.x * (heads + 2 * kv_heads) * dim;
    for (int head = 0; head < heads + kv_heads; ++head)
        for (int i = threadIdx.x; i < dim / 2; i += blockDim.x) {
            const float a = row[head * dim + i], b = row[head * dim + i + dim / 2];
            row[head * dim + i] = a;
            row[head * dim + i + dim / 2] = b;
        }
}

}  // namespace

extern "C" void ropeInPlace(float* qkv, int tokens, int heads, int kv_heads, int dim, float base, cudaStream_t stream) {
    eachPair<<<tokens, 32, 0, stream>>>(qkv, heads, kv_heads, dim, base);
}
