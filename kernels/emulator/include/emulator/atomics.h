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

// always_inline, so that the caller noted above is the submission's own line.
#define EMULATOR_ATOMIC(name, type, expression)                                                                \
  inline __attribute__((always_inline)) type name(type* address, type v) {                                    \
    return ::emulator::atomic_update(address, [v](type old) { (void)old; return (type)(expression); });       \
  }                                                                                                            \
  inline __attribute__((always_inline)) type name##_block(type* address, type v) { return name(address, v); } \
  inline __attribute__((always_inline)) type name##_system(type* address, type v) { return name(address, v); }
#define EMULATOR_ATOMICS(type)                       \
  EMULATOR_ATOMIC(atomicAdd, type, old + v)          \
  EMULATOR_ATOMIC(atomicSub, type, old - v)          \
  EMULATOR_ATOMIC(atomicExch, type, v)               \
  EMULATOR_ATOMIC(atomicMin, type, (v < old ? v : old)) \
  EMULATOR_ATOMIC(atomicMax, type, (v > old ? v : old))
#define EMULATOR_INTEGER_ATOMICS(type)        \
  EMULATOR_ATOMICS(type)                      \
  EMULATOR_ATOMIC(atomicAnd, type, old & v)   \
  EMULATOR_ATOMIC(atomicOr, type, old | v)    \
  EMULATOR_ATOMIC(atomicXor, type, old ^ v)   \
  inline __attribute__((always_inline)) type atomicCAS(type* address, type compare, type v) {               \
    return ::emulator::atomic_update(address, [compare, v](type old) { return old == compare ? v : old; }); \
  }
EMULATOR_INTEGER_ATOMICS(int)
EMULATOR_INTEGER_ATOMICS(unsigned)
EMULATOR_INTEGER_ATOMICS(long long)
EMULATOR_INTEGER_ATOMICS(unsigned long long)
EMULATOR_ATOMICS(float)
EMULATOR_ATOMICS(double)
EMULATOR_ATOMIC(atomicInc, unsigned, (old >= v ? 0u : old + 1))
EMULATOR_ATOMIC(atomicDec, unsigned, (old == 0 || old > v ? v : old - 1))
inline __attribute__((always_inline)) unsigned short atomicCAS(unsigned short* address, unsigned short compare, unsigned short v) {
  return ::emulator::atomic_update(address, [compare, v](unsigned short old) { return old == compare ? v : old; });
}
#undef EMULATOR_INTEGER_ATOMICS
#undef EMULATOR_ATOMICS
