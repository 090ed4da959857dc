// Releases, acquires, and barriers that are objects in memory.
#pragma once
#include "kernel.h"

namespace emulator {
// Tell the check build that what this thread did before a release is seen by whoever acquires the object afterwards.
void note_release(const void* object);
void note_acquire(const void* object);

// A barrier object: `expected` arrivals complete a phase.
struct BarrierState {
  unsigned expected, arrived, phase, dropped;
};
EMULATOR_UNCHECKED void barrier_init(BarrierState* state, unsigned expected);
EMULATOR_UNCHECKED unsigned barrier_arrive(BarrierState* state, unsigned count, bool drop);  // the phase arrived in
EMULATOR_UNCHECKED void barrier_wait(BarrierState* state, unsigned phase, int line);
EMULATOR_UNCHECKED bool barrier_passed(BarrierState* state, unsigned phase);
}  // namespace emulator
