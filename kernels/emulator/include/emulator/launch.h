// Kernel launches.
#pragma once

namespace emulator {

// Of a launch that is too long for the check build: how many of its blocks it watches, drawn by the seed; 0 for all.
struct Slice {
  size_t blocks = 0;
  uint64_t seed = 0;
};

struct LaunchRequest {
  const char* name;
  dim3 grid, block;
  size_t shared;
  bool cooperative;
  void (*body)(void*);
  void* context;
  dim3 cluster = dim3(1, 1, 1);
  Slice slice;
  bool last = false;  // nothing of the tape needs what its other blocks would write
};
const char* run(const LaunchRequest& request);  // the CUDA error's name where a GPU would refuse the launch, else null

}  // namespace emulator
