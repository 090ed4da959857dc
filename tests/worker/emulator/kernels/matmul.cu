// C = A B by 64 × 64 tiles, each thread a 4 × 4 part in registers; edges are masked.
#include <cuda_runtime.h>

template <int Tile, int K, int Part>
__global__ void __launch_bounds__((Tile / Part) * (Tile / Part))
matmul_tiles(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ float as[K][Tile], bs[K][Tile];
    constexpr int threads = (Tile / Part) * (Tile / Part);
    const int column = threadIdx.x % (Tile / Part) * Part, row = threadIdx.x / (Tile / Part) * Part;
    float sum[Part][Part] = {};
    for (int first = 0; first < k; first += K) {
        for (int i = threadIdx.x; i < Tile * K; i += threads) {
            const int y = blockIdx.y * Tile + i / K, x = first + i % K;
            as[i % K][i / K] = y < m && x < k ? a[y * k + x] : 0.0f;
            const int by = first + i / Tile, bx = blockIdx.x * Tile + i % Tile;
            bs[i / Tile][i % Tile] = by < k && bx < n ? b[by * n + bx] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < K; ++d)
            for (int i = 0; i < Part; ++i)
                for (int j = 0; j < Part; ++j) sum[i][j] = fmaf(as[d][row + i], bs[d][column + j], sum[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < Part; ++i)
        for (int j = 0; j < Part; ++j) {
            const int y = blockIdx.y * Tile + row + i, x = blockIdx.x * Tile + column + j;
            if (y < m && x < n) c[y * n + x] = sum[i][j];
        }
}

extern "C" void matmul(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    const dim3 grid((n + 63) / 64, (m + 63) / 64);
    matmul_tiles<64, 8, 4><<<grid, 256, 0, stream>>>(a, b, c, m, n, k);
}
