// What a translated module says of itself: its kernels and its variables by their names in PTX.
#pragma once
#include "barrier.h"
#include "matrix.h"
#include "warp.h"

namespace ptx {

struct Kernel {
  const char *name, *shown;
  void (*run)(void* arguments);
  dim3 cluster;  // as the kernel itself states it; 0 where it does not
  Kernel* next;
  Kernel(const char* name, const char* shown, void (*run)(void*), dim3 cluster = dim3(0, 0, 0));
};
struct Global {
  const char* name;
  void* address;
  size_t size;
  ::emulator::Variable announced;
  Global* next;
  Global(const char* name, void* address, size_t size, bool constant);
};
const Kernel* kernel(const char* name);
const Global* global(const char* name);

char* arena();  // of the block that runs
uint32_t shared_offset(::emulator::SharedVariable& variable);
uint32_t dynamic_offset();
uint32_t dynamic_size();
uint32_t shared_size();      // of the block, dynamic and static
uint32_t reserved_offset();  // 1024 bytes that belong to the system
uint64_t grid_workspace();
void print(const char* format, const void* arguments);
[[noreturn]] void assertion_failed(const char* expression, uint32_t line);

// What a pointer to a function points to: a call through anything else ends the run.
struct Callable {
  void (*code)();
  int results, parameters;
};
void (*callable(uint64_t at, int results, int parameters, int line))();
struct Callables {
  const Callable* first;
  size_t count;
  Callables* next;
  Callables(const Callable* first, size_t count);
};

// Clusters: where the block is in its own, and addresses in the others' shared memory. An address with bits above the lowest 24
// names the block of rank (address >> 24) - 1; one without is the block's own.
struct ClusterPart {
  dim3 index, size, number, grid;
  uint32_t rank, blocks, stated;
};
ClusterPart cluster_part();
char* cluster_place(uint32_t address);
uint64_t cluster_offset(uint64_t address);
uint32_t mapped_offset(uint32_t address, uint32_t rank, int line);
uint64_t mapped_address(uint64_t address, uint32_t rank, int line);
uint32_t rank_of(const void* address);
bool in_cluster(const void* address);
void cluster_arrive(bool publishes, int line);
void cluster_wait(int line);

PTX_INLINE uint32_t warp_number() { return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) / 32; }

}  // namespace ptx
