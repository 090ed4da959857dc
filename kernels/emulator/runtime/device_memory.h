// Device memory: every array has its own pages, ends where a page ends, and is followed and preceded by pages that no
// access may touch.
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
  void* shadow;  // the check build's cells, made at the first access
  bool result;   // looked at when the tape has been played
};

Array* new_array(size_t size, const std::string& name, uintptr_t wanted = 0);  // wanted: its address; 0 for anywhere
Array* array_at(const void* address);                            // the array whose bytes or surroundings hold the address
const Variable* variable_at(const void* address);                // likewise among `__device__` and `__constant__` variables
bool device_range(const void* address, size_t size);             // wholly inside one live array or variable
void verify_margins();                                           // after a launch: the bytes around every array are untouched

}  // namespace emulator
