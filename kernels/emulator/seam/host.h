// What a generated caller sees: the arguments of one case by name.
#pragma once
#include <map>
#include <string>

#include "cuda_runtime.h"

namespace emulator {

struct Array;
struct Arguments {
  std::map<std::string, Array*> arrays;
  std::map<std::string, double> values;
  void* array(const char* name) const;
  double number(const char* name) const;
  cudaStream_t stream() const;
};

}  // namespace emulator

void emulator_call_seam(const emulator::Arguments& arguments);
