// Asynchronous copies to shared memory by primitives (CUDA C++ Programming Guide, "Pipeline Primitives Interface").
#pragma once
#include "cuda_runtime.h"
inline __attribute__((always_inline)) void __pipeline_memcpy_async(void* to, const void* from, size_t size, size_t zeros = 0) {
  ::emulator::copy_later(to, from, size, zeros, nullptr);
}
inline void __pipeline_commit() { ::emulator::close_copy_batch(); }
inline void __pipeline_wait_prior(size_t batches) { ::emulator::finish_copies(batches); }
