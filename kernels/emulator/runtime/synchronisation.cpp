// Asynchronous copies and barrier objects.
//
// cp.async: each thread's copies are done when it waits for their batch, so that a result used too early is the old one.
#include "check.h"
#include "emulator/synchronisation.h"
#include "findings.h"

namespace emulator {

void copy_later(void* to, const void* from, size_t size, size_t zeros, const void*) {
  Fibre* me = current_fibre();
  if (!me) found("host_code", Site(), "an asynchronous copy was asked for by host code");
  const void* pc = __builtin_return_address(0);
  if (zeros > size) zeros = size;
  check_access(from, (unsigned)(size - zeros), Access::Read, pc);
  me->copies.push_back({to, from, size, zeros, me->batch, pc});
}

void close_copy_batch() {
  if (Fibre* me = current_fibre()) ++me->batch;
}

void finish_copies(size_t batches_left) {
  Fibre* me = current_fibre();
  if (!me) return;
  size_t kept = 0;
  for (const PendingCopy& copy : me->copies) {
    if (copy.batch + batches_left >= me->batch) {
      me->copies[kept++] = copy;
      continue;
    }
    check_access(copy.to, (unsigned)copy.size, Access::Write, copy.pc);
    memcpy(copy.to, copy.from, copy.size - copy.zeros);
    memset((char*)copy.to + copy.size - copy.zeros, 0, copy.zeros);
  }
  me->copies.resize(kept);
}

#ifndef EMULATOR_CHECK
void fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void note_atomic(const void*, unsigned, const void*) {}
#else
void fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  check_fence();
}
void note_atomic(const void* address, unsigned size, const void* pc) {
  check_access(address, size, Access::Atomic, pc);
  check_acquire(address);
  check_release(address);
}
#endif

// ------------------------------------------------------------------------------------------------- barrier objects

void note_release(const void* object) {
  check_fence();
  check_release(object);
}
void note_acquire(const void* object) { check_acquire(object); }

void barrier_init(BarrierState* state, unsigned expected) {
  *state = BarrierState{expected, 0, 0, 0};
  mark_written(state, sizeof *state, true);
}

static void complete_phase(BarrierState* state) {
  state->expected -= state->dropped;
  state->arrived = state->dropped = 0;
  ++state->phase;
}

unsigned barrier_arrive(BarrierState* state, unsigned count, bool drop) {
  note_release(state);
  const unsigned phase = state->phase;
  state->arrived += count;
  state->dropped += drop;
  if (state->arrived > state->expected)
    found("barrier_object", here(__builtin_return_address(0), 0), format("%u arrivals in one phase of a barrier that expects %u", state->arrived, state->expected));
  if (state->arrived == state->expected) complete_phase(state);
  return phase;
}
bool barrier_passed(BarrierState* state, unsigned phase) {
  if (state->phase == phase) return false;
  note_acquire(state);
  return true;
}
void barrier_wait(BarrierState* state, unsigned phase, int line) {
  while (!barrier_passed(state, phase)) spin(line);
}

}  // namespace emulator
