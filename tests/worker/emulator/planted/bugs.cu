// Planted bugs, one kernel each, chosen by `bug`. x and y have 64 floats; blocks have 64 threads. Values mean nothing.
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <cuda/barrier>
#include <assert.h>
#include <stdlib.h>

__constant__ float fixed[4] = {1, 2, 3, 4};
__device__ int counter;
__device__ volatile int flag;
__device__ float message[32];

#define KERNEL(name) __global__ void name(const float* x, float* y, int zero)
#define T threadIdx.x

KERNEL(shared_overrun) { __shared__ float a[64]; a[T + 1 - zero] = x[T]; __syncthreads(); y[T] = a[T + 1]; }
KERNEL(dynamic_overrun) { extern __shared__ float d[]; d[T] = x[T]; __syncthreads(); y[T] = d[T + 1 - zero]; }
KERNEL(read_past_end) { y[T] = x[T + 1 - zero]; }
KERNEL(read_before_start) { y[T] = x[(int)T - 1 + zero]; }
KERNEL(write_past_end) { y[T + 1 - zero] = x[T]; }
KERNEL(uninitialised_shared) { __shared__ float a[64]; if (T < 63) a[T] = x[T]; __syncthreads(); y[T] = a[63 - T]; }
KERNEL(uninitialised_global) { y[T] += x[T]; }
KERNEL(missing_barrier) { __shared__ float a[64]; a[T] = x[T]; y[T] = a[63 - T]; }
KERNEL(missing_second_barrier) {
    __shared__ float a[64];
    float sum = 0;
    for (int i = 0; i < 4; ++i) {
        a[T] = x[T] * i;
        __syncthreads();
        sum += a[63 - T];
    }
    y[T] = sum;
}
KERNEL(missing_syncwarp) { __shared__ float a[64]; a[T] = x[T]; y[T] = a[T ^ 1]; }
KERNEL(shuffle_is_no_barrier) {
    __shared__ float a[64];
    a[T] = __shfl_xor_sync(0xffffffffu, x[T], 1);
    y[T] = __shfl_xor_sync(0xffffffffu, a[T ^ 2], 1);
}
KERNEL(blocks_race) { y[T] = x[T] + blockIdx.x; }
KERNEL(blocks_race_on_variable) { if (T == 0) counter = counter + 1; y[T] = 0; }
KERNEL(counter_without_atomic) { __shared__ int hits; if (T == 0) hits = 0; __syncthreads(); hits += (int)T; __syncthreads(); y[T] = hits; }
KERNEL(flag_without_fence) {
    if (blockIdx.x == 0) {
        if (T < 32) message[T] = x[T];
        __syncthreads();
        if (T == 0) flag = 1;
    } else {
        if (T == 0)
            while (flag == 0) {
            }
        __syncthreads();
        if (T < 32) y[T] = message[T];
    }
}
KERNEL(atomic_and_plain) { if (T < 32) atomicAdd(&counter, 1); else y[T] = (float)counter; }
KERNEL(copy_without_wait) { __shared__ float a[64]; __pipeline_memcpy_async(&a[T], &x[T], 4); __pipeline_commit(); __syncthreads(); y[T] = a[T]; __pipeline_wait_prior(0); }
KERNEL(misaligned_vector) { const float4 v = *reinterpret_cast<const float4*>(x + 1 - zero); y[T] = v.x * v.y + v.z * v.w; }
KERNEL(barrier_in_branch) { if (T % 32 < 16) __syncthreads(); else __syncwarp(); y[T] = x[T]; }
KERNEL(barrier_object_waits) {
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    if (T == 0) init(&b, 65);
    __syncthreads();
    b.arrive_and_wait();
    y[T] = x[T];
}
KERNEL(shuffle_in_branch) { float v = x[T]; if (T & 1) v += __shfl_xor_sync(0xffffffffu, v, 2); y[T] = v; }
KERNEL(lane_outside_its_mask) { y[T] = __shfl_sync(0x0000ffffu, x[T], 0); }
KERNEL(warp_operations_differ) { float v = x[T]; if (T & 1) v = __shfl_xor_sync(0xffffffffu, v, 1); else v += (float)__ballot_sync(0xffffffffu, v > 0); y[T] = v; }
KERNEL(local_array_overrun) {
    float local[8];
    for (int i = 0; i <= 8 - zero; ++i) local[i] = x[i];
    float sum = 0;
    for (int i = 0; i < 8; ++i) sum += local[(i * 3 + (int)T) & 7];
    y[T] = sum;
}
KERNEL(host_pointer) { y[T] = x[T]; }
KERNEL(null_pointer) { y[T] = x[T]; }
KERNEL(constant_write) { const_cast<float*>(fixed)[T & 3] = x[T]; y[T] = fixed[T & 3]; }
__device__ __noinline__ float deeper(const float* x, int n) { volatile float pad[64]; pad[n & 63] = x[n & 63]; return n < 0 ? 0 : pad[n & 63] + deeper(x, n + 1); }
KERNEL(endless_recursion) { y[T] = deeper(x, zero); }
KERNEL(division_by_zero) { y[T] = (float)((int)T / zero); }
KERNEL(failed_assertion) { assert(x[T] != x[T] + zero); y[T] = 0; }
KERNEL(trapped) { if (T == 33) __trap(); y[T] = 0; }
KERNEL(endless_loop) { while (((volatile const float*)x)[0] != 12345.0f) { } y[T] = 0; }
KERNEL(one_waits) {
    if (T == 0) while (((volatile const float*)x)[0] != 12345.0f) { }
    __syncthreads();
    y[T] = x[T];
}
KERNEL(unset_sum) { float sum; for (int i = (int)T; i < 64 - zero; i += 32) sum += x[i]; y[T] = sum; }
KERNEL(unset_index) { int at; for (int i = zero; i < 4; ++i) at += x[i] > 1.5f; y[T] = x[at & 31]; }
KERNEL(unset_choice) { int hits; for (int i = zero; i < 4; ++i) hits += x[i] > 1.0f; if (hits > 2) atomicAdd(&counter, 1); y[T] = 0; }
KERNEL(unset_in_some_threads) { __shared__ float a[64]; float v; if (T < 63 - zero) v = x[T]; a[T] = v; __syncthreads(); y[T] = a[63 - T] * 2; }
KERNEL(unset_in_one_lane) { float v; if (T % 32 < 31 - zero) v = x[T]; for (int step = 16; step; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step); y[T] = v; }

// Right kernels that a careless check would report.
KERNEL(right_same_value) { __shared__ int any; if (T == 0) any = 0; __syncthreads(); if (x[T] == x[T]) any = 1; __syncthreads(); y[T] = any; }
KERNEL(right_neighbouring_halves) {
    __shared__ __nv_bfloat16 h[64];
    h[T] = __float2bfloat16(x[T]);
    __syncthreads();
    y[T] = __bfloat162float(h[63 - T]);
}
KERNEL(right_warp_exchange) { __shared__ float a[64]; a[T] = x[T]; __syncwarp(); y[T] = a[T ^ 1]; }
KERNEL(right_early_exit) { __shared__ float a[64]; if (T >= 48) return; a[T] = x[T]; __syncthreads(); y[T] = a[47 - T]; }
KERNEL(right_flag_with_fence) {
    if (blockIdx.x == 0) {
        if (T < 32) message[T] = x[T];
        __syncthreads();
        if (T == 0) { __threadfence(); flag = 1; }
    } else {
        if (T == 0) {
            while (flag == 0) { }
            __threadfence();
        }
        __syncthreads();
        if (T < 32) y[T] = message[T];
    }
}
KERNEL(right_last_block) {
    __shared__ bool last;
    if (T < 16) message[blockIdx.x * 16 + T] = x[T];
    __threadfence();
    __syncthreads();
    if (T == 0) last = atomicAdd(&counter, 1) == (int)gridDim.x - 1;
    __syncthreads();
    if (last && T < 32) y[T] = message[T];
}
KERNEL(right_lock) {
    __shared__ int lock;
    __shared__ float total;
    if (T == 0) lock = 0, total = 0;
    __syncthreads();
    while (atomicCAS(&lock, 0, 1) != 0) { }
    __threadfence_block();
    total += x[T];
    __threadfence_block();
    atomicExch(&lock, 0);
    __syncthreads();
    y[T] = total;
}
KERNEL(right_unset_until_found) {
    float best;
    bool any = false;
    for (int i = zero; i < 32; ++i)
        if (!any || x[i] > best) best = x[i], any = true;
    y[T] = any ? best : 0;
}
KERNEL(right_unset_but_broadcast) { float v; if (T % 32 == 0) v = x[T]; y[T] = __shfl_sync(0xffffffffu, v, 0); }
KERNEL(right_unset_in_threads_without_work) {
    __shared__ float a[64];
    float v;
    if (T < 40 - zero) v = x[T];
    a[T] = v;
    __syncthreads();
    const float both = a[T] * a[T] + __shfl_down_sync(0xffffffffu, v, 1);
    if (T < 39 && T != 31) y[T] = both;
}
KERNEL(right_unset_part_of_a_struct) {
    __shared__ float4 a[64];
    float4 v;
    v.x = x[T], v.y = x[T ^ 1], v.z = 1;
    a[T] = v;
    __syncthreads();
    const float4 other = a[63 - T];
    y[T] = other.x + other.y + other.z;
}

extern "C" void bugs(const float* x, float* y, int bug, cudaStream_t stream) {
    static void (*const kernels[])(const float*, float*, int) = {
        BUGS
    };
    float* other = nullptr;
    const int zero = 0;
    switch (bug) {
        case HOST: other = (float*)calloc(64, 4); break;
        case NULL_POINTER: break;
        default: other = const_cast<float*>(x);
    }
    auto kernel = kernels[bug];
    cudaMemsetAsync(nullptr, 0, 0, stream);
    kernel<<<TWO_BLOCKS(bug) ? 2 : 1, 64, 256, stream>>>(other, y, zero);
}
