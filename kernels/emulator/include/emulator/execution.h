// What a running thread may ask of the runtime: who it is, to wait for others, and to look over its warp.
#pragma once

// Plain __thread data, not thread_local: the latter is read through a wrapper call in every expression.
extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

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

// The rest of a loop `for (step = first; …) value = operation(value, shuffle(value, step))`: steps are halved down to 1 or,
// with `up_to`, doubled while below it.
struct ButterflyLoop {
  Source how;
  int first, up_to, width;
  bool operator==(const ButterflyLoop& o) const { return how == o.how && first == o.first && up_to == o.up_to && width == o.width; }
};
using ButterflySteps = void (*)(unsigned long long* words, const ButterflyLoop& loop, void* operation);
bool butterfly_words(unsigned mask, unsigned long long& word, const ButterflyLoop& loop, ButterflySteps steps, void* operation, int line);

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
