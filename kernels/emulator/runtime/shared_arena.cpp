// Shared variables get an offset for all blocks at their first use; each block's arena holds them with red zones between.
#include <mutex>

#include "check.h"
#include "findings.h"

namespace emulator {

static const long kLine = 128;  // alignment of every variable and width of the gap behind it
static std::mutex arena_lock;
static long top = kLine;

static void assign_offset(SharedVariable& variable) {
  std::lock_guard<std::mutex> guard(arena_lock);
  if (variable.offset >= 0) return;
  const long size = ((long)variable.size + kLine - 1) / kLine * kLine;
  if (top + size + kLine > (long)kDynamicOffset)
    found("shared_memory", here(nullptr, 0), format("the __shared__ variables of this file take more than %zu bytes", kDynamicOffset));
  __atomic_store_n(&variable.offset, top, __ATOMIC_RELEASE);
  top += size + kLine;
}

static void first_use(Block& block, SharedVariable& variable) {
  size_t total = variable.size;
  for (const SharedVariable* other : block.touched) total += other->size;
  if (total > kSharedPerBlock)
    found("shared_memory", here(nullptr, 0), format("the block's static __shared__ variables take %zu bytes; at most %zu are allowed (use dynamic shared memory)", total, kSharedPerBlock));
  if (total + block.launch->request.shared > kSharedOptIn)
    found("shared_memory", here(nullptr, 0), format("the block takes %zu bytes of shared memory; at most %zu are there", total + block.launch->request.shared, kSharedOptIn));
  block.touched.push_back(&variable);
  char* address = block.arena + variable.offset;
  memset(address, 0xff, variable.size);
  check_shared(block, address, variable.size);
}

void* shared_address(SharedVariable& variable) {
  if (__builtin_expect(__atomic_load_n(&variable.offset, __ATOMIC_ACQUIRE) < 0, 0)) assign_offset(variable);
  Block& block = *worker->block;
  for (const SharedVariable* known : block.touched)  // a handful: a search through them is the fastest lookup
    if (known == &variable) return block.arena + variable.offset;
  first_use(block, variable);
  return block.arena + variable.offset;
}

void* dynamic_shared() {
  return worker->block->arena + kDynamicOffset;
}

bool in_shared(const void* address) {
  if (!worker || !worker->block) return false;
  const char* arena = worker->block->arena;
  return (const char*)address >= arena && (const char*)address < arena + kArena;
}

}  // namespace emulator
