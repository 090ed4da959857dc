// Barrier objects (PTX ISA, "mbarrier") and bulk copies. See include/ptx/barrier.h.
#include "ptx/barrier.h"

#include <algorithm>
#include <vector>

#include "check.h"
#include "findings.h"
#include "switching.h"

namespace ptx {

using namespace emulator;

// A phase is over when `pending` arrivals and `bytes` of copies are no longer awaited.
struct Object {
  uint64_t expected : 20, pending : 20;
  int64_t bytes : 23;
  uint64_t odd : 1;
};
static_assert(sizeof(Object) == 8, "an mbarrier has 64 bits");
static const uint32_t kMostArrivals = (1u << 20) - 1;

static Object& at(void* object, int line) {
  if ((uintptr_t)object % 8) found("misaligned", here(nullptr, line), "a barrier object that does not lie at a multiple of 8 bytes");
  note_atomic(object, 8, __builtin_return_address(0));
  return *static_cast<Object*>(object);
}
static uint64_t word_of(const Object& object) {
  uint64_t word;
  memcpy(&word, &object, 8);
  return word;
}

void object_init(void* object, uint32_t count, int line) {
  if (!count || count > kMostArrivals) found("barrier_object", here(nullptr, line), format("a barrier object for %u arrivals; 1 to %u are accepted", count, kMostArrivals));
  if ((uintptr_t)object % 8) found("misaligned", here(nullptr, line), "a barrier object that does not lie at a multiple of 8 bytes");
  check_access(object, 8, Access::Write, __builtin_return_address(0));
  Object fresh = {};
  fresh.expected = fresh.pending = count;
  *static_cast<Object*>(object) = fresh;
}
void object_ended(void* object) { note_atomic(object, 8, __builtin_return_address(0)); }

static void settle(Object& object) {
  if (object.pending || object.bytes) return;
  object.odd ^= 1;
  object.pending = object.expected;
  worker->block->idle_rounds = 0;
}

uint64_t object_arrive(void* where, uint32_t count, uint32_t bytes, bool drops, bool publishes, int line) {
  Object& object = at(where, line);
  if (publishes) note_release(where);
  const uint64_t before = word_of(object);
  if (count > object.pending)
    found("barrier_object", here(nullptr, line), format("%u arrivals at a barrier object that waits for %u more of %u in this phase", count, (unsigned)object.pending, (unsigned)object.expected));
  object.bytes += bytes;
  object.pending -= count;
  if (drops) object.expected -= count;
  settle(object);
  return before;
}
void object_expect(void* where, int32_t bytes, int line) {
  Object& object = at(where, line);
  object.bytes += bytes;
  settle(object);
}
void object_copied(void* where, bool counted, int line) {
  Object& object = at(where, line);
  note_release(where);
  if (!counted) object.pending += 1;  // the arrival is one more than was expected
  object.pending -= 1;
  settle(object);
}
uint32_t object_pending(uint64_t state) {
  Object object;
  memcpy(&object, &state, 8);
  return (uint32_t)object.pending;
}

// ------------------------------------------------------------------------------------------------------------- copies

struct BulkCopy {
  void* to;
  const void* from;
  uint32_t size;
  void* object;  // null: of a batch
  const Fibre* owner;
  size_t batch;
};
static __thread std::vector<BulkCopy>* underway;
static std::vector<BulkCopy>& copies() { return *(underway ? underway : underway = new std::vector<BulkCopy>); }

void bulk_copy(void* to, const void* from, uint32_t size, void* object, int line) {
  if (size % 16 || (uintptr_t)to % 16 || (uintptr_t)from % 16)
    found("misaligned", here(nullptr, line), format("a bulk copy of %u bytes; its size and both addresses have to be multiples of 16", size));
  const void* pc = __builtin_return_address(0);
  check_access(from, size, Access::Read, pc);
  check_access(to, size, Access::Write, pc);
  if (object) note_release(object);
  Fibre* me = current_fibre();
  copies().push_back({to, from, size, object, me, me->bulk_batch});
}

static void make(const BulkCopy& copy) {
  memcpy(copy.to, copy.from, copy.size);
  if (!copy.object) return;
  Object& object = *static_cast<Object*>(copy.object);
  object.bytes -= copy.size;
  settle(object);
}

template <class Wanted>
static void make_those(Wanted wanted) {
  if (!underway) return;
  size_t kept = 0;
  for (const BulkCopy& copy : *underway) {
    if (wanted(copy)) make(copy);
    else (*underway)[kept++] = copy;
  }
  underway->resize(kept);
}

void close_bulk_batch() { ++current_fibre()->bulk_batch; }
void finish_bulk_copies(uint32_t left) {
  const Fibre* me = current_fibre();
  make_those([&](const BulkCopy& copy) { return !copy.object && copy.owner == me && copy.batch + left < me->bulk_batch; });
}

bool object_passed(void* where, bool odd, bool patient, bool acquires, int line) {
  Object& object = at(where, line);
  make_those([&](const BulkCopy& copy) { return copy.object == where; });
  if (object.odd == odd && patient) spin(line);
  if (object.odd == odd) return false;
  if (acquires) note_acquire(where);
  return true;
}

static void drop_of(const Block& block) {
  make_those([&](const BulkCopy& copy) {
    return !copy.object && copy.owner >= block.fibres.data() && copy.owner < block.fibres.data() + block.fibres.size();
  });
  if (!underway) return;
  const auto ends = [&](const BulkCopy& copy) { return (char*)copy.object >= block.arena && (char*)copy.object < block.arena + kArena; };
  underway->erase(std::remove_if(underway->begin(), underway->end(), ends), underway->end());
}

}  // namespace ptx

namespace emulator {
void drop_bulk_copies(const Block& block) { ptx::drop_of(block); }
}  // namespace emulator
