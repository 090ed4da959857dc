// What -fsanitize=thread,alignment makes the compiler call in translated kernels; libtsan is not linked. A module that was
// compiled once is linked with the hooks that look everything up, and with these that do nothing: a fifth to a third slower than
// code without any.
#include "check.h"
#include "findings.h"

#ifdef EMULATOR_CHECK
using emulator::Access;
using emulator::check_access;
#define PC ((const char*)__builtin_return_address(0) - 1)
#define HOOKS(n)                                                                                                        \
  void __tsan_read##n(void* a) { check_access(a, n, Access::Read, PC); }                                                \
  void __tsan_write##n(void* a) { check_access(a, n, Access::Write, PC); }                                              \
  void __tsan_unaligned_read##n(void* a) { check_access(a, n, Access::Read, PC); }                                      \
  void __tsan_unaligned_write##n(void* a) { check_access(a, n, Access::Write, PC); }                                    \
  void __tsan_volatile_read##n(void* a) { emulator::check_volatile(a, n, false, PC); }                                  \
  void __tsan_volatile_write##n(void* a) { emulator::check_volatile(a, n, true, PC); }                                  \
  void __tsan_unaligned_volatile_read##n(void* a) { emulator::check_volatile(a, n, false, PC); }                        \
  void __tsan_unaligned_volatile_write##n(void* a) { emulator::check_volatile(a, n, true, PC); }                        \
  void __tsan_read_write##n(void* a) { check_access(a, n, Access::Read, PC); check_access(a, n, Access::Write, PC); }   \
  void __tsan_unaligned_read_write##n(void* a) { check_access(a, n, Access::Read, PC); check_access(a, n, Access::Write, PC); }
extern "C" {
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
void __tsan_read_range(void* a, unsigned long n) { check_access(a, (unsigned)n, Access::Read, PC); }
void __tsan_write_range(void* a, unsigned long n) { check_access(a, (unsigned)n, Access::Write, PC); }
void* __tsan_memcpy(void* to, const void* from, size_t n) {
  check_access(from, (unsigned)n, Access::Read, PC);
  check_access(to, (unsigned)n, Access::Write, PC);
  return memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, size_t n) {
  check_access(from, (unsigned)n, Access::Read, PC);
  check_access(to, (unsigned)n, Access::Write, PC);
  return memmove(to, from, n);
}
void* __tsan_memset(void* to, int v, size_t n) {
  check_access(to, (unsigned)n, Access::Write, PC);
  return memset(to, v, n);
}
}
#else
#define HOOKS(n)                                                                                          \
  void __tsan_read##n(void*) {}                                                                           \
  void __tsan_write##n(void*) {}                                                                          \
  void __tsan_unaligned_read##n(void*) {}                                                                 \
  void __tsan_unaligned_write##n(void*) {}                                                                \
  void __tsan_volatile_read##n(void*) {}                                                                  \
  void __tsan_volatile_write##n(void*) {}                                                                 \
  void __tsan_unaligned_volatile_read##n(void*) {}                                                        \
  void __tsan_unaligned_volatile_write##n(void*) {}                                                       \
  void __tsan_read_write##n(void*) {}                                                                     \
  void __tsan_unaligned_read_write##n(void*) {}
extern "C" {
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
void __tsan_read_range(void*, unsigned long) {}
void __tsan_write_range(void*, unsigned long) {}
void* __tsan_memcpy(void* to, const void* from, size_t n) { return memcpy(to, from, n); }
void* __tsan_memmove(void* to, const void* from, size_t n) { return memmove(to, from, n); }
void* __tsan_memset(void* to, int v, size_t n) { return memset(to, v, n); }
}
namespace emulator {
void begin_spare_read() {}
bool end_spare_read() { return false; }
void note_unwritten(const void*) {}
void undefined_used(const char*, int) {}
void mark_undefined(const char*, unsigned) {}
bool marked_undefined(const char*, unsigned) { return false; }
}  // namespace emulator
#endif  // EMULATOR_CHECK

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}

namespace emulator {
static void misaligned_at(const void* address, unsigned alignment, const void* pc, int line) {
  if (current_fibre()) found("misaligned", here(pc, line), format("an access through an address that is no multiple of %u: ", alignment) + describe(address, alignment));
}
void misaligned(const void* address, unsigned alignment) { misaligned_at(address, alignment, (const char*)__builtin_return_address(0) - 1, 0); }
}  // namespace emulator

extern "C" {
// -fsanitize=alignment: a pointer that is not aligned for its type, before the access happens. No GPU reads through one.
struct AlignmentSite {
  struct { const char* file; unsigned line, column; } where;
  const void* type;
  unsigned char log_alignment, access;
};
void __ubsan_handle_type_mismatch_v1(AlignmentSite* site, unsigned long address) {
  const unsigned alignment = 1u << site->log_alignment;
  if (address && (address & (alignment - 1))) emulator::misaligned_at((const void*)address, alignment, nullptr, (int)site->where.line);
}
void __ubsan_handle_type_mismatch_v1_abort(AlignmentSite* site, unsigned long address) { __ubsan_handle_type_mismatch_v1(site, address); }
}
