// What a running thread may ask of the runtime: who it is, to wait for others, and to look over its warp.
#pragma once

// Plain __thread data, not thread_local: the latter is read through a wrapper call in every expression.
extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

namespace emulator {

enum class Barrier { Plain, Count, And, Or };
int barrier(int line, Barrier kind, int predicate);

// A warp operation: every lane of `mask` deposits a pointer, the last to arrive runs `complete` over all deposits.
enum class WarpKind { Sync, Shuffle, Vote, Matrix };
using Complete = void (*)(void** deposits, unsigned mask);
void warp_operation(unsigned mask, WarpKind kind, void* deposit, Complete complete, int line);

unsigned lane();
unsigned active_mask(int line);
void spin(int line);          // this thread waits for memory to change: let others run
void yield_after_atomic();    // a thread that only does atomics may be waiting for a lock
void fence();                 // __threadfence and its narrower kin
void grid_barrier(int line);
bool grid_is_resident();
[[noreturn]] void device_trap(const char* what, int line);
long long ticks();            // a clock that counts scheduler steps: the same in every run
void shuffle_outside_mask(unsigned lane, unsigned source, unsigned mask, int line);

inline void loop() {
  static __thread unsigned rounds;
  if (__builtin_expect((++rounds & 1023u) == 0, 0)) spin(0);
}

}  // namespace emulator

#define __syncthreads() ((void)::emulator::barrier(__LINE__, ::emulator::Barrier::Plain, 0))
#define __syncthreads_count(p) ::emulator::barrier(__LINE__, ::emulator::Barrier::Count, !!(p))
#define __syncthreads_and(p) ::emulator::barrier(__LINE__, ::emulator::Barrier::And, !!(p))
#define __syncthreads_or(p) ::emulator::barrier(__LINE__, ::emulator::Barrier::Or, !!(p))
#define __trap() ::emulator::device_trap("__trap()", __LINE__)
#define __brkpt() ((void)0)

inline void __threadfence() { ::emulator::fence(); }
inline void __threadfence_block() { ::emulator::fence(); }
inline void __threadfence_system() { ::emulator::fence(); }
inline void __nanosleep(unsigned, int line = __builtin_LINE()) { ::emulator::spin(line); }
inline long long clock64() { return ::emulator::ticks(); }
