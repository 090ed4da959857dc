// Shadow memory: what every access of a kernel is looked up in. See check.h.
#ifdef EMULATOR_CHECK
#include "check.h"

#include <sys/mman.h>

#include <array>
#include <deque>
#include <map>
#include <unordered_map>

#include "counting.h"
#include "device_memory.h"
#include "findings.h"

namespace emulator {

struct Stamp {
  uint32_t launch, block, phase, time, fences, pc;  // pc: low 32 bits; the program is not relocated
  uint16_t thread, warp_phase;
};
enum Flag : uint8_t {
  kWritten = 1,       // holds a value
  kManyWarps = 2,     // read by several warps of the block in this phase
  kManyLanes = 4,     // read by several lanes of one warp in this warp phase
  kManyBlocks = 8,    // read by several blocks in this launch
  kAtomicWrite = 16,  // the last write was atomic
  kAtomicRead = 32,
  kSplit = 64,        // `write.pc` is an index into `split_cells`: the bytes have cells of their own
  kUndefined = 128,   // holds what a variable that was never set was stored as
};
struct Cell {
  Stamp write, read;
  Stamp beside;  // another reader, of another warp than the last where there was one
  uint8_t flags;
};

static uint32_t launch_number = 1;
static std::deque<std::array<Cell, 4>> split_cells;
static std::unordered_map<const Variable*, Cell*> variable_cells;
static std::unordered_map<const Block*, Cell*> arena_cells;
static Cell* arena_of_block;  // the current block's
static const Block* arena_owner;

// What an atomic or volatile object has been told: by blocks (their fences) and by threads of one block (their times).
struct Clock {
  std::unordered_map<uint32_t, uint32_t> blocks;
  uint32_t owner = 0;
  std::vector<uint32_t> threads;
};
static std::unordered_map<const void*, Clock> clocks;
static std::unordered_map<uint32_t, std::unordered_map<uint32_t, uint32_t>> block_acquired;

static Cell* new_cells(size_t bytes) {
  void* memory = mmap(nullptr, (bytes / 4 + 2) * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) found("out_of_memory", Site(), "no memory for the checks; use smaller cases");
  return (Cell*)memory;
}

void check_launch() {
  ++launch_number;
  clocks.clear();
  block_acquired.clear();
}

static bool unseen_writes;  // blocks that nobody watches have run: global memory may have been written by them

void check_block(Block& block) {
  unseen_writes |= !block.watched;
  if (counting) count_block(block);
  Cell*& cells = arena_cells[&block];
  if (!cells) cells = new_cells(kArena);
  memset(cells + kDynamicOffset / 4, 0, (block.launch->request.shared / 4 + 1) * sizeof(Cell));
}

void check_shared(Block& block, const void* address, size_t size) {
  const size_t offset = (size_t)((const char*)address - block.arena);
  memset(arena_cells[&block] + offset / 4, 0, (size / 4 + 1) * sizeof(Cell));
}

static size_t unwatched_from = 0, unwatched_to = 0;  // offsets in every block's arena
void check_nothing(Block& block, const void* address, size_t size) {
  unwatched_from = (size_t)((const char*)address - block.arena);
  unwatched_to = unwatched_from + size;
}

// Everything that any thread of the cluster did before is ordered before what any of them does afterwards.
void check_cluster(Cluster& cluster) {
  settle_pending();
  for (Block* block : cluster.blocks) {
    if (!block) continue;
    ++block->phase;
    auto& mine = block_acquired[(uint32_t)block->number];
    for (const Block* other : cluster.blocks)
      if (other && other != block) mine[(uint32_t)other->number] = std::max(mine[(uint32_t)other->number], other->fences);
  }
  for (Block* block : cluster.blocks)
    if (block) ++block->fences;
}

void check_fence() {
  Fibre* me = current_fibre();
  if (!me) return;
  me->published = me->time++;
  me->published_fence = worker->block->fences++;
}

void check_release(const void* object) {
  Fibre* me = current_fibre();
  if (!me) return;
  Clock& clock = clocks[object];
  const Block& block = *worker->block;
  uint32_t& told = clock.blocks[(uint32_t)block.number];
  told = std::max(told, me->published_fence);
  for (const auto& entry : block_acquired[(uint32_t)block.number])
    clock.blocks[entry.first] = std::max(clock.blocks[entry.first], entry.second);
  if (clock.owner != block.number || clock.threads.size() != block.fibres.size()) {
    clock.owner = (uint32_t)block.number;
    clock.threads.assign(block.fibres.size(), 0);
  }
  for (size_t i = 0; i < me->acquired.size(); ++i) clock.threads[i] = std::max(clock.threads[i], me->acquired[i]);
  clock.threads[me->linear] = std::max(clock.threads[me->linear], me->published);
}

void check_acquire(const void* object) {
  Fibre* me = current_fibre();
  const auto known = me ? clocks.find(object) : clocks.end();
  if (known == clocks.end()) return;
  const Block& block = *worker->block;
  auto& mine = block_acquired[(uint32_t)block.number];
  for (const auto& entry : known->second.blocks) mine[entry.first] = std::max(mine[entry.first], entry.second);
  if (known->second.owner != block.number || known->second.threads.empty()) return;
  me->acquired.resize(block.fibres.size());
  for (size_t i = 0; i < me->acquired.size(); ++i) me->acquired[i] = std::max(me->acquired[i], known->second.threads[i]);
}

// ------------------------------------------------------------------------------------------------------- conflicts

// Whether something orders the access that left `stamp` before what `me` does now.
static bool ordered(const Stamp& stamp, const Fibre& me, const Block& block) {
  if (stamp.launch != launch_number) return true;
  if (stamp.block != (uint32_t)block.number) {
    const auto mine = block_acquired.find((uint32_t)block.number);
    if (mine == block_acquired.end()) return false;
    const auto told = mine->second.find(stamp.block);
    return told != mine->second.end() && told->second >= stamp.fences;
  }
  if (stamp.phase < block.phase || stamp.thread == me.linear) return true;
  if (stamp.thread / 32 == me.warp && stamp.warp_phase < me.warp_phase) return true;
  return stamp.thread < me.acquired.size() && me.acquired[stamp.thread] >= stamp.time;
}

static Stamp stamp_now(const Fibre& me, const Block& block, const void* pc) {
  return {launch_number, (uint32_t)block.number, block.phase, me.time, block.fences, (uint32_t)(uintptr_t)pc, me.linear, me.warp_phase};
}

static Site site_of(const Stamp& stamp) {
  Site site;
  site.known = true;
  site.block = block_of(stamp.block);
  site.thread = thread_of(stamp.thread);
  site.pc = (const void*)(uintptr_t)stamp.pc;
  return site;
}

static const char* word(Access access) {
  return access == Access::Write ? "write" : access == Access::Atomic ? "atomic update" : "read";
}

[[noreturn]] static void race(const Stamp& earlier, bool earlier_wrote, bool earlier_atomic, const void* address, unsigned size, Access access, const void* pc) {
  const bool same_block = earlier.block == (uint32_t)worker->block->number;
  const char* remedy = !same_block ? "nothing orders different blocks within a launch"
                       : earlier.thread / 32 == current_fibre()->warp ? "a __syncwarp() or __syncthreads() is missing between them; a shuffle or a vote orders no memory" : "a __syncthreads() is missing between them";
  found("race", here(pc, 0), format("a %s of %u bytes at ", word(access), size) + describe(address, size) + " races with another thread's access: " + remedy,
        earlier_atomic && earlier_wrote ? "atomic_update" : earlier_wrote ? "write" : "read", site_of(earlier));
}

// How much an access tells of what `me` races with: another block's most, then another warp's, then another thread's.
static unsigned distance(const Stamp& stamp, const Fibre& me, const Block& block) {
  if (stamp.launch != launch_number) return 0;
  if (stamp.block != (uint32_t)block.number) return 3;
  return stamp.thread / 32 != me.warp ? 2 : stamp.thread != me.linear;
}
static const Stamp& reader_to_name(const Cell& cell, const Fibre& me, const Block& block) {
  const bool valid = cell.beside.block != (uint32_t)block.number || cell.beside.phase == block.phase;
  return valid && distance(cell.beside, me, block) > distance(cell.read, me, block) ? cell.beside : cell.read;
}

// A write over another thread's write is judged when the value has changed: storing the same value twice is no race.
static struct Pending {
  bool armed;
  Stamp earlier;
  const char* address;
  unsigned size;
  char before[16];
  const void* pc;
  Fibre* by;
} pending;

void settle_pending() {
  if (!pending.armed) return;
  pending.armed = false;
  if (!memcmp(pending.address, pending.before, pending.size)) return;
  race(pending.earlier, true, false, pending.address, pending.size, Access::Write, pending.pc);
}

// A read of what nothing has written. Kept until the phase ends: if another thread writes there meanwhile, it is a race.
static struct Unwritten {
  bool armed;
  const Block* block;
  Site site;
  std::string text;
} unwritten;

static void note_unwritten_read(Block& block, Site site, Access access, const char* address, unsigned size) {
  unwritten = {true, &block, site, format("a %s of %u bytes that nothing has written yet, at ", word(access), size) + describe(address, size)};
}

static bool sparing, spared;  // the read in hand is looked at only if its value is chosen; what it read was never written
void begin_spare_read() { sparing = true, spared = false; }
bool end_spare_read() {
  sparing = false;
  return spared;
}
void note_unwritten(const void* address) {
  if (!unwritten.armed && current_fibre()) note_unwritten_read(*worker->block, here(__builtin_return_address(0), 0), Access::Read, (const char*)address, 4);
}

void check_phase(Block& block) {
  settle_pending();
  if (counting) count_phase(block);
  if (unwritten.armed && unwritten.block == &block) found("uninitialised", unwritten.site, unwritten.text);
  uint32_t fences = 0;  // a barrier makes every thread's fences every other thread's
  for (const Fibre& fibre : block.fibres) fences = std::max(fences, fibre.published_fence);
  for (Fibre& fibre : block.fibres) fibre.published_fence = fences;
}

static void visit(Cell& cell, Fibre& me, Block& block, const char* address, unsigned size, unsigned whole, Access access, const void* pc) {
  // An atomic update may be an exchange, which needs no value; one that does has the fill, which shows in its result.
  const bool reads = access == Access::Read || access == Access::Load;
  if (reads && !(cell.flags & kWritten) && (!unseen_writes || in_shared(address))) {
    if (sparing) spared = true;
    else if (!unwritten.armed) note_unwritten_read(block, here(pc, 0), access, address, whole);
  }
  const bool atomic = access == Access::Atomic || access == Access::Load;
  const bool both_atomic = atomic && (cell.flags & kAtomicWrite);
  if ((cell.flags & kWritten) && cell.write.launch && !both_atomic && !ordered(cell.write, me, block)) {
    if (access != Access::Write || (cell.flags & kAtomicWrite)) race(cell.write, true, cell.flags & kAtomicWrite, address, size, access, pc);
    if (!pending.armed) {
      pending = {true, cell.write, address, std::min(size, 16u), {}, pc, &me};
      memcpy(pending.before, address, pending.size);
    }
  }
  const bool current = cell.read.launch == launch_number;
  if (access == Access::Write || access == Access::Atomic) {
    const bool both = access == Access::Atomic && (cell.flags & kAtomicRead);
    const bool same_block = cell.read.block == (uint32_t)block.number, same_phase = same_block && cell.read.phase == block.phase;
    bool conflict = current && !ordered(cell.read, me, block);
    conflict |= current && same_phase && (cell.flags & kManyWarps) && me.acquired.empty();
    conflict |= current && same_phase && (cell.flags & kManyLanes) && cell.read.thread / 32 == me.warp && cell.read.warp_phase == me.warp_phase;
    conflict |= current && (cell.flags & kManyBlocks) && block_acquired.empty();
    if (conflict && !both) race(reader_to_name(cell, me, block), false, cell.flags & kAtomicRead, address, size, access, pc);
    cell.write = stamp_now(me, block, pc);
    cell.read.launch = cell.beside.launch = 0;
    cell.flags = (uint8_t)(kWritten | (access == Access::Atomic ? kAtomicWrite : 0));
    return;
  }
  if (current && cell.read.block != (uint32_t)block.number) cell.flags |= kManyBlocks;
  else if (current && cell.read.phase == block.phase && cell.read.thread != me.linear) {
    if (cell.read.thread / 32 != me.warp) cell.flags |= kManyWarps;
    else if (cell.read.warp_phase == me.warp_phase) cell.flags |= kManyLanes;
    else cell.flags &= (uint8_t)~kManyLanes;
  } else if (!current || cell.read.phase != block.phase) {
    cell.flags &= (uint8_t)~(kManyWarps | kManyLanes | (current ? 0 : kManyBlocks));
  }
  if (current && distance(cell.read, me, block)) {
    const bool old = cell.beside.launch != launch_number || cell.beside.phase != block.phase;
    if (old || distance(cell.read, me, block) >= distance(cell.beside, me, block)) cell.beside = cell.read;
  }
  cell.flags = (uint8_t)(access == Access::Load ? cell.flags | kAtomicRead : cell.flags & ~kAtomicRead);
  cell.read = stamp_now(me, block, pc);
}

static void visit_words(Cell* cells, size_t offset, Fibre& me, Block& block, const char* address, unsigned size, Access access, const void* pc) {
  const size_t end = offset + size;
  for (size_t at = offset; at < end;) {
    Cell& cell = cells[at / 4];
    const size_t stop = std::min(end, (at / 4 + 1) * 4);
    const bool whole = stop - at == 4;
    if (whole && !(cell.flags & kSplit)) {
      visit(cell, me, block, address + (at - offset), 4, size, access, pc);
    } else {
      if (!(cell.flags & kSplit)) {  // neighbouring bytes may belong to different threads
        split_cells.push_back({cell, cell, cell, cell});
        cell.write.pc = (uint32_t)(split_cells.size() - 1);
        cell.flags = kSplit;
      }
      auto& bytes = split_cells[cell.write.pc];
      for (size_t byte = at; byte < stop; ++byte) visit(bytes[byte % 4], me, block, address + (byte - offset), 1, size, access, pc);
    }
    at = stop;
  }
}

// ---------------------------------------------------------------------------------------------- which memory it is

extern "C" char __executable_start, _end;

static bool ignored(const Fibre& me, const char* p) {
  if (p >= me.stack && p < me.stack + kStackSize) return true;
  if (p >= &__executable_start && p < &_end) return true;                            // constants, a kernel's arguments
  return p >= (const char*)&threadIdx - 8192 && p < (const char*)&threadIdx + 8192;  // thread indices
}

static bool shared_is_known(const Block& block, size_t offset, unsigned size) {
  if (offset >= kDynamicOffset) return offset + size <= kDynamicOffset + block.launch->request.shared;
  for (const SharedVariable* v : block.touched)
    if ((long)offset >= v->offset && offset + size <= (size_t)v->offset + v->size) return true;
  return false;
}

static void check_variable(const Variable& v, Fibre& me, Block& block, const char* p, unsigned size, Access access, const void* pc) {
  if (p + size > (const char*)v.address + v.size)
    found("out_of_bounds", here(pc, 0), format("a %s of %u bytes at ", word(access), size) + describe(p, size));
  if (v.constant && access != Access::Read) found("constant_write", here(pc, 0), format("a kernel writes to %s, which is __constant__", v.name));
  if (v.constant) return;
  Cell*& cells = variable_cells[&v];
  if (!cells) {
    cells = new_cells(v.size + 8);
    for (size_t i = 0; i < v.size / 4 + 2; ++i) cells[i].flags = kWritten;  // variables start as zero
  }
  const size_t offset = (size_t)(p - (const char*)v.address) + (uintptr_t)v.address % 4;
  visit_words(cells, offset, me, block, p, size, access, pc);
}

void check_access(const void* address, unsigned size, Access access, const void* pc) {
  Fibre* me = current_fibre();
  if (!me || !size) return;
  Worker& w = *worker;
  if (w.collective) return;
  const char* p = (const char*)address;
  if (p >= me->stack && p < me->stack + kStackSize) return;
  if (pending.armed) settle_pending();
  Block& block = *w.block;
  if (!block.watched) return;
  const bool power = (size & (size - 1)) == 0 && size <= 16;
  if (p >= block.arena && p < block.arena + kArena) {
    const size_t offset = (size_t)(p - block.arena);
    if (!shared_is_known(block, offset, size))
      found("out_of_bounds", here(pc, 0), format("a %s of %u bytes at ", word(access), size) + describe(address, size));
    if (power && ((uintptr_t)p & (size - 1))) found("misaligned", here(pc, 0), format("a %s of %u bytes at an address that is no multiple of %u: ", word(access), size, size) + describe(address, size));
    if (offset >= unwatched_from && offset + size <= unwatched_to) return;
    if (counting && power && access != Access::Atomic) count_shared(p, size, access == Access::Write, pc);
    if (arena_owner != &block) arena_owner = &block, arena_of_block = arena_cells[&block];
    return visit_words(arena_of_block, offset, *me, block, p, size, access, pc);
  }
  if (block.cluster)
    for (const Block* other : block.cluster->blocks)
      if (other && p >= other->arena && p < other->arena + kArena) {
        const size_t offset = (size_t)(p - other->arena);
        if (!shared_is_known(*other, offset, size))
          found("out_of_bounds", here(pc, 0), format("a %s of %u bytes at shared memory of block %u of the cluster that belongs to no variable", word(access), size, other->rank));
        return visit_words(arena_cells[other], offset, *me, block, p, size, access, pc);
      }
  static Array* last;
  Array* array = last && p >= last->data && p + size <= last->data + last->size ? last : nullptr;
  if (!array) {
    array = array_at(address);
    if (!array) {
      const Variable* variable = variable_at(address);
      if (variable) return check_variable(*variable, *me, block, p, size, access, pc);
      if (ignored(*me, p)) return;
      found("out_of_bounds", here(pc, 0), format("a %s of %u bytes at ", word(access), size) + describe(address, size) + "; a kernel can use device memory only");
    }
    if (p < array->data || p + size > array->data + array->size)
      found("out_of_bounds", here(pc, 0), format("a %s of %u bytes at ", word(access), size) + describe(address, size));
    last = array;
  }
  if (power && ((uintptr_t)p & (size - 1))) found("misaligned", here(pc, 0), format("a %s of %u bytes at an address that is no multiple of %u: ", word(access), size, size) + describe(address, size));
  if (counting && power && access != Access::Atomic) count_global(*array, p, size, access == Access::Write, pc);
  if (!array->shadow) array->shadow = new_cells(array->size + 8);
  visit_words((Cell*)array->shadow, (size_t)(p - array->data), *me, block, p, size, access, pc);
}

// ---------------------------------------------------------------------------------------------- variables that were never set

struct UndefinedResult {
  Cell* cell;
  Site site;
  std::string text;
};
static std::vector<UndefinedResult> undefined_results;
static const size_t kUndefinedResults = 256;

static Cell& cell_of_byte(Cell* cells, size_t at) {
  Cell& cell = cells[at / 4];
  return cell.flags & kSplit ? split_cells[cell.write.pc][at % 4] : cell;
}

// The cells that a byte of the block's shared memory or of an array lies in; null for anything else, which is not followed.
static Cell* cells_around(const char* at, size_t& offset, Array*& array) {
  const Block& block = *worker->block;
  array = nullptr;
  if (at >= block.arena && at < block.arena + kArena) return offset = (size_t)(at - block.arena), arena_cells[&block];
  array = array_at(at);
  if (!array || !array->shadow || at < array->data || at >= array->data + array->size) return nullptr;
  return offset = (size_t)(at - array->data), (Cell*)array->shadow;
}

void undefined_used(const char* what, int line) {
  if (current_fibre() && worker->block->watched) found("uninitialised", here(nullptr, line), what);
}

void mark_undefined(const char* at, unsigned size) {
  size_t offset;
  Array* array;
  Cell* cells = current_fibre() && worker->block->watched ? cells_around(at, offset, array) : nullptr;
  if (!cells) return;
  for (size_t byte = offset; byte < offset + size; ++byte) cell_of_byte(cells, byte).flags |= kUndefined;
  if (!array || !array->result || undefined_results.size() >= kUndefinedResults) return;
  Site site = here((const char*)__builtin_return_address(0) - 1, 0);
  site.kernel = worker->block->launch->request.name;
  undefined_results.push_back({&cell_of_byte(cells, offset), site, "a variable that was never set is handed on in " + describe(at, size)});
}

bool marked_undefined(const char* at, unsigned size) {
  size_t offset;
  Array* array;
  Cell* cells = current_fibre() && worker->block->watched ? cells_around(at, offset, array) : nullptr;
  bool any = false;
  for (size_t byte = offset; cells && byte < offset + size; ++byte) any |= (cell_of_byte(cells, byte).flags & kUndefined) != 0;
  return any;
}

void check_results() {
  for (const UndefinedResult& each : undefined_results)
    if (each.cell->flags & kUndefined) found("uninitialised", each.site, each.text);
  undefined_results.clear();
}

void mark_written(const void* address, size_t size, bool written) {
  Array* array = array_at(address);
  if (!array) return;
  if (!written && address == array->data && size == array->size) {  // a workspace may be large, and cells start as zero
    if (array->shadow) munmap(array->shadow, (array->size / 4 + 4) * sizeof(Cell));
    array->shadow = nullptr;
    return;
  }
  if (!array->shadow) array->shadow = new_cells(array->size + 8);
  Cell* cells = (Cell*)array->shadow;
  const size_t first = (size_t)((const char*)address - array->data), end = first + size;
  for (size_t word = first / 4; word * 4 < end; ++word) {
    cells[word] = Cell();
    cells[word].flags = written ? kWritten : 0;
  }
}

// A volatile access is how threads signal each other without atomics: it orders like a relaxed atomic.
void check_volatile(const void* address, unsigned size, bool write, const void* pc) {
  const char* p = (const char*)address;
  const bool device = current_fibre() && !worker->collective && (in_shared(p) || array_at(p) || variable_at(p));
  check_access(address, size, device ? (write ? Access::Atomic : Access::Load) : write ? Access::Write : Access::Read, pc);
  if (!device) return;
  check_acquire(address);
  if (write) check_release(address);
}

}  // namespace emulator
#endif  // EMULATOR_CHECK
