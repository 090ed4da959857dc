// Bit tricks and integer intrinsics, mixed into one hash a value.
#include <cuda_runtime.h>

__global__ void mix(const unsigned* x, unsigned* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned v = x[i];
    unsigned h = __brev(v) ^ __byte_perm(v, ~v, 0x3715);
    h += __popc(v) * 131u + __clz((int)v) * 17u + (unsigned)__ffs((int)v);
    h ^= __funnelshift_l(v, h, 13) + __umulhi(v, 2654435761u);
    h += (unsigned)__mul24((int)v, 77) + (unsigned)__dp4a((int)v, 0x01020304, 5);
    h ^= (unsigned)__float2int_rn(__int2float_rn((int)(v >> 8)) * 0.37f) + __float_as_uint(__uint_as_float(v & 0x7fffff));
    out[i] = h + min(v, 12345u) - max((int)v, -7);
}

extern "C" void integer_functions(const unsigned* x, unsigned* out, int n, cudaStream_t stream) {
    mix<<<(n + 95) / 96, 96, 0, stream>>>(x, out, n);
}
