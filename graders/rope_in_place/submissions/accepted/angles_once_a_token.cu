// A block a token: the sines and cosines of its angles are made once, in shared memory, and used by all heads.
#include <cuda_runtime.h>

__global__ void turnToken(float* qkv, int rotated, int all, int dim, float base) {
    extern __shared__ float angle[];  // cosines, then sines
    const int half = dim / 2;
    for (int pair = threadIdx.x; pair < half; pair += blockDim.x) {
        const float turn = blockIdx.x * exp2f(-2.0f * pair / dim * log2f(base));
        angle[pair] = cosf(turn);
        angle[half + pair] = sinf(turn);
    }
    __syncthreads();
    float* row = qkv + (size_t)blockIdx.x * all * dim;
    for (int i = threadIdx.x; i < rotated * half; i += blockDim.x) {
        const int pair = i % half;
        float* low = row + i / half * dim + pair;
        const float x = low[0], y = low[half];
        low[0] = x * angle[pair] - y * angle[half + pair];
        low[half] = y * angle[pair] + x * angle[half + pair];
    }
}

extern "C" void ropeInPlace(float* qkv, int tokens, int heads, int kv_heads, int dim, float base, cudaStream_t stream) {
    turnToken<<<tokens, 128, dim * sizeof(float), stream>>>(qkv, heads + kv_heads, heads + 2 * kv_heads, dim, base);
}
