// Tensor cores: fp16 A (row major) times fp16 B (column major) into float, one warp for each 16 × 16 tile of C.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

__global__ void multiply(const __half* a, const __half* b, float* c, int m, int n, int k) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, tiles = n / 16;
    const int row = warp / tiles * 16, column = warp % tiles * 16;
    if (row >= m) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int d = 0; d < k; d += 16) {
        wmma::load_matrix_sync(fa, a + row * k + d, k);
        wmma::load_matrix_sync(fb, b + column * k + d, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 0.5f;
    wmma::store_matrix_sync(c + row * n + column, fc, n, wmma::mem_row_major);
}

extern "C" void wmma_matmul(const __half* a, const __half* b, float* c, int m, int n, int k, cudaStream_t stream) {
    multiply<<<(m / 16 * (n / 16) * 32 + 127) / 128, 128, 0, stream>>>(a, b, c, m, n, k);
}
