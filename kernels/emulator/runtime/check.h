// The check build: every access of a kernel is looked up in shadow memory. In the plain build these do nothing.
//
// Each 4-byte word of device memory has a cell with the last write and the last read: launch, block, barrier phase of the
// block, thread, warp phase (counted by __syncwarp), and the thread's own time. An access conflicts with an earlier one
// by another thread unless something orders them: a later barrier phase, a later warp phase of the same warp, or a
// fence and an atomic (or volatile) flag between them. Two writes of the same value are no conflict.
#pragma once
#include "scheduler.h"

namespace emulator {

enum class Access : uint8_t { Read, Write, Atomic, Load };  // Load: an atomic or volatile read

#ifdef EMULATOR_CHECK
void check_access(const void* address, unsigned size, Access access, const void* pc);
void check_volatile(const void* address, unsigned size, bool write, const void* pc);
void check_launch();
void check_block(Block& block);
void check_shared(Block& block, const void* address, size_t size);
void check_nothing(Block& block, const void* address, size_t size);  // what lies there is not looked at
void check_phase(Block& block);  // a barrier opens, or the block ends
void check_cluster(Cluster& cluster);  // its barrier opens
void check_fence();
void check_release(const void* object);
void check_acquire(const void* object);
void mark_written(const void* address, size_t size, bool written);
void settle_pending();
void check_results();  // after a launch: no result holds a value that was never set
#else
inline void check_access(const void*, unsigned, Access, const void*) {}
inline void check_launch() {}
inline void check_block(Block&) {}
inline void check_shared(Block&, const void*, size_t) {}
inline void check_nothing(Block&, const void*, size_t) {}
inline void check_phase(Block&) {}
inline void check_cluster(Cluster&) {}
inline void check_fence() {}
inline void check_release(const void*) {}
inline void check_acquire(const void*) {}
inline void mark_written(const void*, size_t, bool) {}
inline void settle_pending() {}
inline void check_results() {}
#endif

}  // namespace emulator
