// What a translated module says of itself: its kernels and its variables by their names in PTX.
#pragma once
#include "warp.h"

namespace ptx {

struct Kernel {
  const char *name, *shown;
  void (*run)(void* arguments);
  Kernel* next;
  Kernel(const char* name, const char* shown, void (*run)(void*));
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
uint64_t grid_workspace();
void print(const char* format, const void* arguments);
[[noreturn]] void assertion_failed(const char* expression, uint32_t line);

PTX_INLINE uint32_t warp_number() { return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) / 32; }

}  // namespace ptx
