// Memory: generic addresses are the host's own; an address in shared memory is an offset in the block's arena.
#pragma once
#include "../emulator/synchronisation.h"
#include "floats.h"

namespace ptx {

template <class T, int Count> struct Several;
template <class T> struct Several<T, 2> { typedef T type __attribute__((vector_size(2 * sizeof(T)))); };
template <class T> struct Several<T, 4> { typedef T type __attribute__((vector_size(4 * sizeof(T)))); };

// As -fsanitize=alignment looks at a pointer that is read through.
template <class T> PTX_INLINE const char* aligned(const char* at) {
#ifdef EMULATOR_CHECK
  if ((uintptr_t)at % sizeof(T)) ::emulator::misaligned(at, sizeof(T));
#endif
  return at;
}
template <class T> PTX_INLINE T load(const void* from) { return *static_cast<const T*>(from); }
template <class T> PTX_INLINE void store(void* to, T value) { *static_cast<T*>(to) = value; }
template <class T> PTX_INLINE T load_shared_state(const void* from) { return *static_cast<const volatile T*>(from); }
template <class T> PTX_INLINE void store_shared_state(void* to, T value) { *static_cast<volatile T*>(to) = value; }
// A value that is read ahead of a choice: `unwritten` says from where, if nothing had written there.
template <class T>
PTX_INLINE T load_spare(const void* from, const char*& unwritten) {
#ifdef EMULATOR_CHECK
  ::emulator::begin_spare_read();
  const T value = load<T>(from);
  unwritten = ::emulator::end_spare_read() ? static_cast<const char*>(from) : nullptr;
  return value;
#else
  unwritten = nullptr;
  return load<T>(from);
#endif
}
PTX_INLINE void spare_chosen(const char* unwritten) {
#ifdef EMULATOR_CHECK
  if (unwritten) ::emulator::note_unwritten(unwritten);
#else
  (void)unwritten;
#endif
}
// What follows undefined registers stands in the check build alone.
#ifdef EMULATOR_CHECK
#define PTX_TRACKED(...) __VA_ARGS__
#else
#define PTX_TRACKED(...)
#endif
PTX_INLINE void defined_choice(bool undefined, int line) {
  if (undefined) ::emulator::undefined_used("a branch depends on a variable that was never set", line);
}
PTX_INLINE void defined_address(bool undefined, int line) {
  if (undefined) ::emulator::undefined_used("an address is made of a variable that was never set", line);
}
PTX_INLINE void stored_undefined(const char* at, unsigned size, bool undefined) {
  if (undefined) ::emulator::mark_undefined(at, size);
}
PTX_INLINE bool holds_undefined(const char* at, unsigned size) { return ::emulator::marked_undefined(at, size); }

template <class T>
PTX_INLINE T load_acquire(const void* from) {
  const T value = load_shared_state<T>(from);
  ::emulator::note_acquire(from);
  return value;
}
template <class T>
PTX_INLINE void store_release(void* to, T value) {
  ::emulator::fence();
  store_shared_state<T>(to, value);
}

struct Add { template <class T> T operator()(T old, T v) const { return (T)(old + v); } };
struct Exchange { template <class T> T operator()(T, T v) const { return v; } };
struct Smaller { template <class T> T operator()(T old, T v) const { return smaller(old, v); } };
struct Larger { template <class T> T operator()(T old, T v) const { return larger(old, v); } };
struct And { template <class T> T operator()(T old, T v) const { return (T)(old & v); } };
struct Or { template <class T> T operator()(T old, T v) const { return (T)(old | v); } };
struct Xor { template <class T> T operator()(T old, T v) const { return (T)(old ^ v); } };
struct Increment { template <class T> T operator()(T old, T v) const { return old >= v ? (T)0 : (T)(old + 1); } };
struct Decrement { template <class T> T operator()(T old, T v) const { return old == 0 || old > v ? v : (T)(old - 1); } };

template <class Operation, class T>
PTX_INLINE T atomic(void* address, T value) {
  typedef typename Word<sizeof(T)>::type Bits;
  const Bits old = ::emulator::atomic_update(static_cast<Bits*>(address), [value](Bits held) { return as<Bits>(Operation()(as<T>(held), value)); });
  return as<T>(old);
}
template <class T>
PTX_INLINE Two<T> atomic_pair(void* address, Two<T> value) {  // each half is atomic by itself
  const T x = atomic<Add>(address, value.x);
  return {x, atomic<Add>(static_cast<char*>(address) + 2, value.y)};
}
template <class T>
PTX_INLINE T atomic_swap(void* address, T expected, T value) {
  return ::emulator::atomic_update(static_cast<T*>(address), [expected, value](T old) { return old == expected ? value : old; });
}

PTX_INLINE char* address(uint64_t at) { return reinterpret_cast<char*>(at); }

}  // namespace ptx
