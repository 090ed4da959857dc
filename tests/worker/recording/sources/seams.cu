// One library, many seams: `tokens` chooses what the host code does, so that one compilation serves many tests.
#include "attention.h"

#include <stdexcept>
#include <stdlib.h>
#include <unistd.h>

struct Pair {
    const float* first;
    float* second;
    short third;
};

__constant__ float table[16];
__device__ int counter;

__global__ void plain(const float* qkv, float* out, int tokens) { out[threadIdx.x] = qkv[threadIdx.x] + table[tokens & 15]; }

template <typename T>
__global__ void packed(Pair pair, T value, char letter) {
    pair.second[letter] = pair.first[0] + float(value) + counter;
}

__global__ void __launch_bounds__(64) shared(float* out) {
    extern __shared__ float scratch[];
    scratch[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = scratch[63 - threadIdx.x];
}

static void features(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    const float values[2] = {1.0f, 2.0f};
    int* address = nullptr;
    cudaMemcpyToSymbolAsync(table, values, sizeof values, 4, cudaMemcpyHostToDevice, stream);
    cudaGetSymbolAddress(reinterpret_cast<void**>(&address), counter);
    cudaMemsetAsync(address, 0, sizeof *address, stream);
    packed<<<dim3(2, 3, 4), dim3(8, 2, 1), 0, stream>>>(Pair{qkv + 7, out + 3, -2}, 2.5, 'A');
    cudaFuncSetAttribute(shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
    shared<<<1, 64, 100000, stream>>>(out);
    cudaMemcpyAsync(out, qkv, 64, cudaMemcpyDeviceToDevice, stream);
    plain<<<1, 32>>>(qkv, out, tokens);
}

static void asks(const float* qkv, float* out, cudaStream_t stream) {
    int blocks = 0, sms = 0;
    cudaDeviceProp properties;
    cudaFuncAttributes attributes;
    cudaGetDeviceProperties(&properties, 0);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    cudaFuncGetAttributes(&attributes, shared);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, shared, 64, 40000);
    const bool probe = cudaFuncSetAttribute(shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) == cudaErrorInvalidValue;
    const bool cleared = cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess;
    const bool known = sms == 132 && properties.major == 9 && attributes.maxThreadsPerBlock == 64;
    plain<<<blocks, probe && cleared && known ? 32 : 64, 0, stream>>>(qkv, out, sms);
}

static void forbidden(const float* qkv, float* out, int which, cudaStream_t stream) {
    void* memory = nullptr;
    float host = 0.0f;
    cudaStream_t side = nullptr;
    switch (which) {
        case 10: cudaMalloc(&memory, 16777216); break;
        case 11: cudaMallocManaged(&memory, 4096); break;
        case 12: cudaMemcpyAsync(&host, qkv, 4, cudaMemcpyDeviceToHost, stream); break;
        case 13: cudaMemcpyFromSymbol(&host, table, 4); break;
        case 14: cudaLaunchHostFunc(stream, [](void*) {}, nullptr); break;
        case 15: cudaHostAlloc(&memory, 64, 0); break;
        case 16: cudaDeviceReset(); break;
        case 17: plain<<<1, 32, 0, reinterpret_cast<cudaStream_t>(0x1234)>>>(qkv, out, 1); break;
        case 18:
            cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
            plain<<<1, 32, 0, side>>>(qkv, out, 1);
            break;
        case 19: cudaMemcpyAsync(out, calloc(1, 4 << 20), 4 << 20, cudaMemcpyHostToDevice, stream); break;
        case 20: throw std::runtime_error("not today");
        case 21: throw 7;
        case 22: exit(0);
        case 23: abort();
        case 24: host = qkv[0]; plain<<<1, int(host), 0, stream>>>(qkv, out, 1); break;
        case 25: plain<<<1, 4096, 0, stream>>>(qkv, out, 1); break;
        case 26: shared<<<1, 128, 0, stream>>>(out); break;
        case 27: shared<<<1, 64, 60000, stream>>>(out); break;
        case 28: for (volatile bool on = true; on;) {} break;
        case 29: cudaMemsetAsync(out, 0, size_t(1) << 30, stream); break;
        case 30: for (int i = 0; i < 100000; ++i) plain<<<1, 32, 0, stream>>>(qkv, out, i); break;
        case 31: fork(); plain<<<1, 32, 0, stream>>>(qkv, out, 1); break;
    }
}

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    if (tokens == 1) features(qkv, out, tokens, stream);
    else if (tokens == 2) asks(qkv, out, stream);
    else forbidden(qkv, out, tokens, stream);
}
