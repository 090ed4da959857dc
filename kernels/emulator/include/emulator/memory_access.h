// Loads and stores with cache hints are plain ones; address-space conversions keep the address.
#pragma once

#define EMULATOR_LOAD(name) template <class T> inline __attribute__((always_inline)) T name(const T* address) { return *address; }
#define EMULATOR_STORE(name) template <class T> inline __attribute__((always_inline)) void name(T* address, T value) { *address = value; }
EMULATOR_LOAD(__ldg)
EMULATOR_LOAD(__ldca)
EMULATOR_LOAD(__ldcg)
EMULATOR_LOAD(__ldcs)
EMULATOR_LOAD(__ldcv)
EMULATOR_LOAD(__ldlu)
EMULATOR_STORE(__stcg)
EMULATOR_STORE(__stcs)
EMULATOR_STORE(__stwb)
EMULATOR_STORE(__stwt)
#undef EMULATOR_LOAD
#undef EMULATOR_STORE
inline void __prefetch_global_l1(const void*) {}
inline void __prefetch_global_l2(const void*) {}
template <class T> inline size_t __cvta_generic_to_shared(T* address) { return (size_t)address; }
template <class T> inline size_t __cvta_generic_to_global(T* address) { return (size_t)address; }

namespace emulator {
bool in_shared(const void* address);
bool in_global(const void* address);

// Asynchronous copies (cp.async): done as late as the program allows, so that a missing wait shows.
void copy_later(void* to, const void* from, size_t size, size_t zeros, const void* pc);
void close_copy_batch();
void finish_copies(size_t batches_left);
}  // namespace emulator
inline bool __isShared(const void* address) { return ::emulator::in_shared(address); }
inline bool __isGlobal(const void* address) { return ::emulator::in_global(address); }
