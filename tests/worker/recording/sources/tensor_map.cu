// Copies the first 64 columns of V into the first 64 of the output through a TMA descriptor that the host code had encoded.
#include <cuda.h>

#include "attention.h"

constexpr int ROWS = 8, COLUMNS = 64, FIRST = 640;

__global__ void copyValues(const __grid_constant__ CUtensorMap map, float* out, int tokens) {
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(128) float tile[ROWS][COLUMNS];
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned at = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(tile);
    const int row = blockIdx.x * ROWS;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(unsigned(sizeof tile)) : "memory");
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
            "l"(&map), "r"(FIRST), "r"(row), "r"(at)
            : "memory");
    }
    __syncthreads();
    for (unsigned done = 0; !done;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(at)
                     : "memory");
    for (int r = 0; r < ROWS && row + r < tokens; ++r) out[(row + r) * OUT_WIDTH + threadIdx.x] = tile[r][threadIdx.x];
#endif
}

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
    const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
    const cuuint64_t sizes[] = {QKV_WIDTH, cuuint64_t(tokens)}, strides[] = {QKV_WIDTH * sizeof(float)};
    const cuuint32_t box[] = {COLUMNS, ROWS}, steps[] = {1, 1};
    CUtensorMap map;
    const CUresult failed =
        encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(qkv), sizes, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (failed || status != cudaDriverEntryPointSuccess) return;
    copyValues<<<(tokens + ROWS - 1) / ROWS, COLUMNS, 0, stream>>>(map, out, tokens);
}
