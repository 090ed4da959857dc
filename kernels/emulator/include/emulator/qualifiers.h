// Words of CUDA C++ that mean nothing on a CPU, and the two that a compiler attribute expresses.
// __shared__ and __noinline__ are replaced in the source: as macros they would reach into libstdc++'s headers.
#pragma once
#define __CUDACC__ 1
#define __NVCC__ 1
#define __KERNELGATE_EMULATOR__ 1

#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __inline_hint__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_assume(x) ((void)0)
#define __builtin_align__(n) __attribute__((aligned(n)))

// Functions that work on other lanes' memory, or whose accesses the check build judges by rules of their own.
#define EMULATOR_UNCHECKED __attribute__((noinline, no_sanitize("thread")))
