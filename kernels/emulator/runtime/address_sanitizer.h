// AddressSanitizer has to be told of fibres (it keeps the bounds of the current stack) and of fences between our arrays.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(EMULATOR_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
namespace emulator {
inline void poison(const void* p, size_t n) { __asan_poison_memory_region(p, n); }
inline void unpoison(const void* p, size_t n) { __asan_unpoison_memory_region(p, n); }
inline void leaving(void** fake, const void* bottom, size_t size) { __sanitizer_start_switch_fiber(fake, bottom, size); }
inline void arrived(void* fake, const void** bottom = nullptr, size_t* size = nullptr) { __sanitizer_finish_switch_fiber(fake, bottom, size); }
}  // namespace emulator
#else
namespace emulator {
inline void poison(const void*, size_t) {}
inline void unpoison(const void*, size_t) {}
inline void leaving(void**, const void*, size_t) {}
inline void arrived(void*, const void** = nullptr, size_t* = nullptr) {}
}  // namespace emulator
#endif
