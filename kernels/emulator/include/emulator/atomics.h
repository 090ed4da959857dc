// Atomic functions. A compare-and-swap loop each, outside the check build's instrumentation: it is told of them instead.
#pragma once

namespace emulator {
void note_atomic(const void* address, unsigned size, const void* pc);

template <class T, class Update>
EMULATOR_UNCHECKED T atomic_update(T* address, Update update) {
  note_atomic(address, sizeof(T), __builtin_return_address(0));
  T old, desired;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  do {
    desired = update(old);
  } while (!__atomic_compare_exchange(address, &old, &desired, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  yield_after_atomic();
  return old;
}
}  // namespace emulator
