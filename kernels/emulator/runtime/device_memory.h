// Device memory: every array has its own pages, ends where a page ends, and is followed and preceded by pages that no
// access may touch. Freed arrays keep their addresses, untouchable, so that a late use is seen.
#pragma once
#include <string>

#include "scheduler.h"

namespace emulator {

struct Array {
  char* data;
  size_t size;
  char* mapping;
  size_t mapping_size;
  std::string name;
  bool live;
  bool host;     // pinned host memory
  void* shadow;  // the check build's cells, made at the first access
};

Array* new_array(size_t size, const std::string& name, bool host, uintptr_t wanted = 0);  // wanted: its address; 0 for anywhere
void free_array(Array& array);
Array* array_at(const void* address);                            // the array whose bytes or surroundings hold the address
const Variable* variable_at(const void* address);                // likewise among `__device__` and `__constant__` variables
bool device_range(const void* address, size_t size);             // wholly inside one live array or variable
void verify_margins();                                           // after a launch: the bytes around every array are untouched
const Variable* first_variable();

// While a seam's host code runs, device arrays cannot be touched: on a GPU's host they would be no addresses at all.
void guard_arrays(bool guarded);
struct DeviceAccess {  // opens them for a launch or a copy
  DeviceAccess();
  ~DeviceAccess();
};

}  // namespace emulator
