// What a translated kernel and the runtime both know.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

// Functions that work on other lanes' memory, or whose accesses the check build judges by rules of their own.
#define EMULATOR_UNCHECKED __attribute__((noinline, no_sanitize("thread")))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

#include "execution.h"
#include "shared_memory.h"
#include "launch.h"
#include "atomics.h"
#include "memory_access.h"
