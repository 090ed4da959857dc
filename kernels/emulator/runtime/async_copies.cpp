// cp.async: each thread's copies are done when it waits for their batch, so that a result used too early is the old one.
#include "check.h"
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

}  // namespace emulator
