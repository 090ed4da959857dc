// What the measuring process runs around a timed call, so that the host's clock bounds it.
//
//   released  holds the stream until the host lets it go: the whole bracket is queued behind it, so that no launch is timed. The
//             keys are in the host's memory by then and not before, and it brings them.
//   unmask    gives an input back its bytes. It was uploaded under a keystream, and the key arrives with the start: before that,
//             nothing on the device can compute with it.
//   leaves,   a hash tree over an output. Its root is on the host when the clock stops; an output that is written later has
//   root      another one.
//   differs   counts the bytes of a stretch of memory that are not what they were filled with.
//
// The keystream is Philox4x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) with the counter starting
// at 1, which is what numpy's Philox draws. Built by nvcc for the card's architecture; worker/gpu/masking.py is the host's side.

#include <cstdint>

namespace {

constexpr int THREADS = 256, PER_THREAD = 8, LEAVES = THREADS * PER_THREAD;

__device__ void philox(uint64_t block, uint64_t k0, uint64_t k1, uint64_t out[4]) {
    uint64_t c0 = block + 1, c1 = 0, c2 = 0, c3 = 0;
    for (int round = 0; round < 10; ++round) {
        const uint64_t high0 = __umul64hi(0xD2E7470EE14C6C93ull, c0), low0 = 0xD2E7470EE14C6C93ull * c0;
        const uint64_t high1 = __umul64hi(0xCA5A826395121157ull, c2), low1 = 0xCA5A826395121157ull * c2;
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B97F4A7C15ull;
        k1 += 0xBB67AE8584CAA73Bull;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

__device__ uint64_t mixed(uint64_t x) {
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    return x ^ x >> 32;
}

__device__ uint64_t joined(uint64_t left, uint64_t right) { return mixed(left ^ mixed(right + 0x9E3779B97F4A7C15ull)); }

// The leaf of 32-bit word `at` of `bytes` bytes; words past the end are zeros.
__device__ uint64_t leaf(const uint8_t* data, uint64_t bytes, uint64_t at) {
    uint64_t word = 0;
    for (int i = 0; i < 4; ++i)
        if (4 * at + i < bytes) word |= uint64_t(data[4 * at + i]) << 8 * i;
    return mixed(word << 32 ^ at ^ at >> 32 << 1);
}

}  // namespace

// Launched with one block of 256 threads. `turn` and `keys` lie in the host's memory, which writes the keys first.
extern "C" __global__ void released(const volatile uint64_t* turn, uint64_t awaited, const volatile uint64_t* keys, uint64_t words,
                                    uint64_t* held) {
    if (!threadIdx.x) {
        while (*turn != awaited) {
        }
        __threadfence_system();
    }
    __syncthreads();
    for (uint64_t i = threadIdx.x; i < words; i += THREADS) held[i] = keys[i];
}

// Launched with one thread for each 32 bytes of the input.
extern "C" __global__ void unmask(uint8_t* data, uint64_t bytes, uint64_t first_block, const uint64_t* under) {
    const uint64_t block = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, from = 32 * block;
    if (from >= bytes) return;
    uint64_t key[4];
    philox(first_block + block, under[0], under[1], key);
    const uint8_t* pad = reinterpret_cast<const uint8_t*>(key);
    if (from + 32 <= bytes && reinterpret_cast<uint64_t>(data) % 4 == 0) {
        uint32_t* words = reinterpret_cast<uint32_t*>(data + from);
        for (int i = 0; i < 8; ++i) words[i] ^= uint32_t(key[i / 2] >> 32 * (i % 2));
    } else {
        for (int i = 0; i < 32 && from + i < bytes; ++i) data[from + i] ^= pad[i];
    }
}

// Launched with blocks of 256 threads, a power of two of them; each leaves the node over 2048 words in nodes[block].
extern "C" __global__ void leaves(const uint8_t* data, uint64_t bytes, uint64_t* nodes) {
    __shared__ uint64_t held[THREADS];
    const uint64_t first = uint64_t(blockIdx.x) * LEAVES + threadIdx.x * PER_THREAD;
    const bool whole = 4 * (first + PER_THREAD) <= bytes && reinterpret_cast<uint64_t>(data) % 4 == 0;
    uint64_t own[PER_THREAD];
    for (int i = 0; i < PER_THREAD; ++i) {
        const uint64_t at = first + i;
        own[i] = whole ? mixed(uint64_t(reinterpret_cast<const uint32_t*>(data)[at]) << 32 ^ at ^ at >> 32 << 1) : leaf(data, bytes, at);
    }
    for (int width = PER_THREAD; width > 1; width /= 2)
        for (int i = 0; i < width / 2; ++i) own[i] = joined(own[2 * i], own[2 * i + 1]);
    held[threadIdx.x] = own[0];
    for (int width = THREADS / 2; width; width /= 2) {
        __syncthreads();
        const uint64_t node = int(threadIdx.x) < width ? joined(held[2 * threadIdx.x], held[2 * threadIdx.x + 1]) : 0;
        __syncthreads();
        if (int(threadIdx.x) < width) held[threadIdx.x] = node;
    }
    if (!threadIdx.x) nodes[blockIdx.x] = held[0];
}

// Launched with one block of 256 threads over a power of two of nodes; the root comes to stand in nodes[0] and in *result.
extern "C" __global__ void root(uint64_t* nodes, uint64_t count, uint64_t* result) {
    for (uint64_t width = count / 2; width; width /= 2) {
        for (uint64_t base = 0; base < width; base += THREADS) {
            const uint64_t at = base + threadIdx.x;
            const uint64_t node = at < width ? joined(nodes[2 * at], nodes[2 * at + 1]) : 0;
            __syncthreads();
            if (at < width) nodes[at] = node;
            __syncthreads();
        }
    }
    if (!threadIdx.x) *result = nodes[0];
}

extern "C" __global__ void differs(const uint8_t* data, uint64_t bytes, uint32_t value, uint32_t* count) {
    uint32_t own = 0;
    for (uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < bytes; at += uint64_t(gridDim.x) * blockDim.x)
        own += data[at] != value;
    if (own) atomicAdd(count, own);
}
