// What a running thread may ask of the runtime: who it is, to wait for others, and to look over its warp.
#pragma once

// Plain __thread data, not thread_local: the latter is read through a wrapper call in every expression.
extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;

namespace emulator {

enum class Barrier : unsigned char { Plain, Count, And, Or };
// site: which barrier of the program it is, where that is known (from 1): a warp has to meet one as a whole.
int barrier(int line, Barrier kind, int predicate, unsigned site = 0);

// A warp operation ends when every lane of `mask` has arrived; the last one computes for all.
enum class WarpKind : unsigned char { Sync, Shuffle, Vote, Matrix, Butterfly };
enum class Source : unsigned char { Index, Up, Down, Xor };
enum class Vote : unsigned char { Ballot, Any, All, MatchAny, MatchAll, Add, Min, Max, MinSigned, MaxSigned, And, Or, Xor };
using Complete = void (*)(void** deposits, unsigned mask);
void warp_operation(unsigned mask, WarpKind kind, void* deposit, Complete complete, int line);
unsigned long long shuffle_word(unsigned mask, unsigned long long value, Source how, int operand, int width, int line);
// The result; for MatchAll, bit 32 says whether all are equal.
unsigned long long vote(unsigned mask, Vote kind, unsigned long long value, int line);

// All that is left of a chain `value = both(value, shuffle(value, lane ^ step))`, done for 32 lanes at once. Where not all of them
// stand in the same chain, it is a shuffle by the first step alone, and false.
using Butterfly = void (*)(unsigned long long* words, void* both);
bool butterfly(unsigned long long& word, Butterfly chain, void* both, unsigned first_step, int line);

unsigned lane();
unsigned active_mask(int line);
void spin(int line);          // this thread waits for memory to change: let others run
void yield_after_atomic();    // a thread that only does atomics may be waiting for a lock
void fence();                 // __threadfence and its narrower kin
void grid_barrier(int line);
bool grid_is_resident();
[[noreturn]] void leave();    // the thread ends, wherever it is
[[noreturn]] void device_trap(const char* what, int line);
long long ticks();            // a clock that counts scheduler steps: the same in every run

inline void loop() {
  static __thread unsigned rounds;
  if (__builtin_expect((++rounds & 1023u) == 0, 0)) spin(0);
}

}  // namespace emulator
