// RoPE in place: a thread owns one pair, reads both of its values, and only then writes either.
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;

// rotated: heads of a token that turn, those of Q and K. all: with those of V, which stay.
__global__ void turnPairs(float* qkv, int tokens, int rotated, int all, int dim, float base) {
    const int half = dim / 2;
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= (size_t)tokens * rotated * half) return;
    const int pair = i % half, head = i / half % rotated, token = i / half / rotated;
    float* low = qkv + ((size_t)token * all + head) * dim + pair;
    float* high = low + half;
    float sine, cosine;
    sincosf(token * powf(base, -2.0f * pair / dim), &sine, &cosine);
    const float x = *low, y = *high;
    *low = x * cosine - y * sine;
    *high = y * cosine + x * sine;
}

}  // namespace

extern "C" void ropeInPlace(float* qkv, int tokens, int heads, int kv_heads, int dim, float base, cudaStream_t stream) {
    const int rotated = heads + kv_heads;
    const size_t pairs = (size_t)tokens * rotated * (dim / 2);
    turnPairs<<<(unsigned)((pairs + THREADS - 1) / THREADS), THREADS, 0, stream>>>(qkv, tokens, rotated, rotated + kv_heads, dim, base);
}
