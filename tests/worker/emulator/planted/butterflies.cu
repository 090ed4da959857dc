// Reductions over a warp, each written as a loop and step by step: `differ` counts the lanes in which they are not the same bits.
__device__ void compare(float loop, float steps, int* differ) {
    if (__float_as_uint(loop) != __float_as_uint(steps)) atomicAdd(differ, 1);
}
__device__ float xorStep(unsigned mask, float v, int step, int width) { return __shfl_xor_sync(mask, v, step, width); }

__global__ void whole(const float* x, float* y, int* differ, int* ticks) {
    const float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    const long long start = clock64();
    float sum = v;
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    const long long middle = clock64();
    float by_steps = v;
    by_steps += xorStep(~0u, by_steps, 16, 32);
    by_steps += xorStep(~0u, by_steps, 8, 32);
    by_steps += xorStep(~0u, by_steps, 4, 32);
    by_steps += xorStep(~0u, by_steps, 2, 32);
    by_steps += xorStep(~0u, by_steps, 1, 32);
    const long long end = clock64();
    compare(sum, by_steps, differ);
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    if (threadIdx.x % 32 == 31) ticks[0] = (int)(middle - start), ticks[1] = (int)(end - middle);
}

__global__ void others(const float* x, int* differ) {
    const float v = x[threadIdx.x];
    const unsigned half = threadIdx.x & 16 ? 0xffff0000u : 0x0000ffffu;
    float largest[2] = {v, -v};
#pragma unroll
    for (unsigned o = 1; o < 32; o *= 2) {
        largest[1] = fmaxf(__shfl_xor_sync(~0u, largest[1], o), largest[1]);
    }
    float steps = -v;
    for (int o : {1, 2, 4, 8, 16}) steps = fmaxf(xorStep(~0u, steps, o, 32), steps);
    compare(largest[1], steps, differ);

    float down = v;
    for (int o = 16; o; o /= 2) down = down + __shfl_down_sync(0xffffffff, down, o);
    steps = v;
    for (int o : {16, 8, 4, 2, 1}) { const float other = __shfl_down_sync(~0u, steps, o); steps = steps + other; }
    compare(down, steps, differ);

    float mine = v;  // half a warp for itself; the halves are at different loops
    if (half == 0xffffu)
        for (int o = 8; o > 0; o >>= 1) mine *= __shfl_xor_sync(half, mine, o, 16);
    else
        for (int o = 4; o > 0; o >>= 1) mine = min(mine, __shfl_xor_sync(half, mine, o));
    steps = v;
    if (half == 0xffffu) for (int o : {8, 4, 2, 1}) steps *= xorStep(half, steps, o, 16);
    else for (int o : {4, 2, 1}) steps = min(steps, xorStep(half, steps, o, 32));
    compare(mine, steps, differ);

    float mixed = v;  // some lanes stand in the loop, the others take the same steps one by one
    if (threadIdx.x & 1) {
        for (int o = 16; o > 0; o >>= 1) mixed += __shfl_xor_sync(~0u, mixed, o);
    } else {
        for (int o : {16, 8, 4, 2, 1}) mixed += xorStep(~0u, mixed, o, 32);
    }
    steps = v;
    for (int o : {16, 8, 4, 2, 1}) steps += xorStep(~0u, steps, o, 32);
    compare(mixed, steps, differ);
}

__global__ void types(const float* x, int* differ) {
    const int lane = threadIdx.x % 32;
    int whole = (int)(x[threadIdx.x] * 1000);
    int expected = 0;
    for (int other = 0; other < 32; ++other) expected ^= __shfl_sync(~0u, whole, other);
    for (int o = 16; o >= 1; o >>= 1) whole ^= __shfl_xor_sync(~0u, whole, o);
    if (whole != expected) atomicAdd(differ, 1);
    double wide = lane + 0.5;
    for (int o = 16; o != 0; o >>= 1) wide += __shfl_xor_sync(~0u, wide, o);
    if (wide != 512.0) atomicAdd(differ, 1);
    unsigned short small = (unsigned short)(1u << lane % 16);
    for (int o = 16; o; o >>= 1) small |= __shfl_xor_sync(~0u, small, o);
    if (small != 0xffff) atomicAdd(differ, 1);
}

__global__ void partial(const float* x, float* y) {  // 48 threads: the second warp has 16
    float sum = x[threadIdx.x];
    for (int o = 8; o; o >>= 1) sum += __shfl_xor_sync(threadIdx.x < 32 ? ~0u : 0xffffu, sum, o);
    y[threadIdx.x] = sum;
}

extern "C" void butterflies(const float* x, float* y, float* z, int* differ, int* ticks, cudaStream_t stream) {
    cudaMemsetAsync(differ, 0, sizeof(int), stream);
    whole<<<2, 64, 0, stream>>>(x, y, differ, ticks);
    others<<<1, 64, 0, stream>>>(x, differ);
    types<<<1, 32, 0, stream>>>(x, differ);
    partial<<<1, 48, 0, stream>>>(x, z);
}
