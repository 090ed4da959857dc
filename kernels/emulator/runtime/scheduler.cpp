// Fibres, barriers, warp operations: see scheduler.h for how they fit together.
#include "scheduler.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "check.h"
#include "findings.h"
#include "switching.h"

extern "C" void emulator_enter();

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim, gridDim;

namespace emulator {

__thread Worker* worker;
const size_t kStackSize = 128 << 10;
static const unsigned long kIdleRounds = 50000;  // rounds in which only waiting loops ran, before it is called a deadlock
static const size_t kResidentBlocks = 256;        // blocks that may wait for others at once, as on a large GPU
static const size_t kPage = 4096;

const Configuration& configuration() {
  static const Configuration chosen = [] {
    const auto number = [](const char* name, long otherwise) { const char* text = getenv(name); return text ? atol(text) : otherwise; };
    const char* order = getenv("EMULATOR_ORDER");
    Configuration c;
    c.order = order && !strcmp(order, "reverse") ? Order::Reverse : order && !strcmp(order, "random") ? Order::Random : Order::Forward;
    c.seed = (uint64_t)number("EMULATOR_SEED", 1);
    c.workers = (int)number("EMULATOR_WORKERS", 1);
#ifdef EMULATOR_CHECK
    c.workers = 1;  // shadow cells are not shared between threads
    c.strict = true;
#else
    c.strict = false;
#endif
    return c;
  }();
  return chosen;
}

Worker& this_worker() {
  if (!worker) {
    worker = new Worker;
    worker->order = configuration().order;
    prepare_thread();
  }
  return *worker;
}

// ---------------------------------------------------------------------------------------------------- switching

static void fibre_main(Fibre* fibre);

// Stacks start at different places in their pages: at one and the same, 32 of them would fight for one set of the cache.
static void arm(Fibre& fibre) {
  void** top = (void**)(((uintptr_t)fibre.stack + kStackSize - fibre.lane * 192u) & ~(uintptr_t)63);
#if defined(__x86_64__)
  top -= 2;  // keeps the stack 16-byte aligned at emulator_enter's call
  *--top = (void*)&emulator_enter;
  *--top = nullptr;              // rbp
  *--top = (void*)&fibre_main;   // rbx
  *--top = &fibre;               // r12
  for (int i = 0; i < 3; ++i) *--top = nullptr;
#else
  top -= 20;
  memset(top, 0, 160);
  top[0] = (void*)&fibre_main;     // x19
  top[1] = &fibre;                 // x20
  top[11] = (void*)&emulator_enter;  // x30
#endif
  fibre.stack_pointer = top;
}

void make_all_ready(Block& block, State state) {
  for (Fibre& fibre : block.fibres)
    if (fibre.state == state) {
      fibre.state = State::Ready;
      make_ready(block, fibre.warp, 1u << fibre.lane);
    }
}

// ------------------------------------------------------------------------------------------- when nothing can run

[[noreturn]] static void deadlock(Block& block) {
  std::map<std::pair<int, int>, std::pair<unsigned, unsigned>> waiting;  // (state, line) → (threads, lanes of the first warp)
  for (const Fibre& fibre : block.fibres)
    if (fibre.state != State::Done) {
      auto& entry = waiting[{(int)fibre.state, fibre.line}];
      ++entry.first;
      if (fibre.warp == 0) entry.second |= 1u << fibre.lane;
    }
  std::string text = "no thread of the block can go on:";
  size_t shown = 0;
  for (const auto& entry : waiting) {
    const State state = (State)entry.first.first;
    const char* where = state == State::AtBarrier ? "a block barrier" : state == State::AtWarp ? "a warp operation" : state == State::AtGrid ? "a grid barrier" : "a waiting loop";
    const int line = entry.first.second;
    if (++shown > 6) continue;
    text += format(" %u threads wait at %s", entry.second.first, where);
    if (line) text += format(" in line %d", line);
    if (entry.second.second) text += format(" (lanes %08x of warp 0)", entry.second.second);
    text += ";";
  }
  text += format(" %zu of %zu threads have left the kernel", block.fibres.size() - block.live, block.fibres.size());
  Site site;
  site.known = true;
  site.block = block.index;
  for (const Fibre& fibre : block.fibres)
    if (fibre.state != State::Done) {
      site.thread = fibre.index;
      site.line = fibre.line;
      site.callers = callers_of_waiting(fibre);
      break;
    }
  found("deadlock", site, text);
}

static void answer_active_masks(Block& block) {
  for (Fibre& fibre : block.fibres) {
    if (fibre.state != State::AtActiveMask) continue;
    fibre.answer_mask = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const size_t other = fibre.warp * 32u + lane;
      if (other < block.fibres.size() && block.fibres[other].line == fibre.line &&
          (block.fibres[other].state == State::AtActiveMask))
        fibre.answer_mask |= 1u << lane;
    }
  }
  block.asking = 0;
  make_all_ready(block, State::AtActiveMask);
}

// To another fibre of the block, or to the worker's own stack when none can run.
void give_way_slowly(Worker& w, Fibre& me) {
  Block& block = *w.block;
  if (!block.ready_warps && block.asking) answer_active_masks(block);
  Fibre* next = take_ready(w, block, me.warp);
  if (!next && block.live && !block.spinning && block.at_grid != block.live) deadlock(block);
  if (next == &me) return enter(w, me);
  jump(w, &me, next);
}

// ------------------------------------------------------------------------------------------------------ barriers

// The threads of a warp that are alive have to meet a barrier together (PTX ISA, "bar.sync": `.aligned`).
static void check_warps_together(const Block& block) {
  for (size_t i = 1; i < block.fibres.size(); ++i) {
    const Fibre &fibre = block.fibres[i], &before = block.fibres[i - 1];
    if (fibre.warp != before.warp || fibre.state != State::AtBarrier || before.state != State::AtBarrier || fibre.site == before.site) continue;
    Site site, other;
    site.known = other.known = true;
    site.block = other.block = block.index;
    site.thread = fibre.index, site.line = fibre.line;
    other.thread = before.index, other.line = before.line;
    const char* text = "a part of a warp meets this barrier while other threads of the same warp meet another: __syncthreads() has to be reached by all threads of a warp alike, not inside a branch that some of them take";
    found("warp_divergence", site, text, "wait", other);
  }
}

static void open_barrier(Block& block) {
  check_warps_together(block);
  int count = 0, all = 1, any = 0;
  for (const Fibre& fibre : block.fibres)
    if (fibre.state == State::AtBarrier) count += fibre.predicate, all &= fibre.predicate, any |= fibre.predicate;
  for (Fibre& fibre : block.fibres)
    if (fibre.state == State::AtBarrier)
      fibre.answer = fibre.barrier_kind == Barrier::Count ? count : fibre.barrier_kind == Barrier::And ? all : any;
  check_phase(block);
  block.arrived = 0;
  block.idle_rounds = 0;
  ++block.phase;
  make_all_ready(block, State::AtBarrier);
}

Fibre& calling(const char* what, int line) {
  Fibre* me = current_fibre();
  if (!me) found("host_code", here(nullptr, line), format("%s was called by host code; it exists in kernels only", what));
  return *me;
}

int barrier(int line, Barrier kind, int predicate, unsigned site) {
  Fibre& me = calling("__syncthreads", line);
  settle_pending();
  Worker& w = *worker;
  me.state = State::AtBarrier;
  me.line = line;
  me.site = site;
  me.barrier_kind = kind;
  me.predicate = predicate;
  if (++w.block->arrived == w.block->live) open_barrier(*w.block);
  give_way(w, me);
  return me.answer;
}

void grid_barrier(int line) {
  Fibre& me = calling("grid.sync()", line);
  Worker& w = *worker;
  if (!w.block->launch->resident)
    found("grid_sync", here(nullptr, line), "grid.sync() needs a cooperative launch (cudaLaunchCooperativeKernel)");
  settle_pending();
  me.state = State::AtGrid;
  me.line = line;
  ++w.block->at_grid;
  give_way(w, me);
}
bool grid_is_resident() { return current_fibre() && worker->block->launch->resident; }

void spin(int line) {
  Fibre* me = current_fibre();
  if (!me) return;
  Worker& w = *worker;
  me->state = State::Spinning;
  me->line = line;
  ++w.block->spinning;
  give_way(w, *me);
}
void yield_after_atomic() {
  Fibre* me = current_fibre();
  if (!me || worker->collective || (++me->atomics & 63u)) return;
  worker->block->idle_rounds = 0;  // it may well be working, so this never counts as a deadlock
  spin(0);
}

long long ticks() { return worker ? (long long)(worker->switches += 40) : 0; }

unsigned active_mask(int line) {
  Fibre& me = calling("__activemask", line);
  me.state = State::AtActiveMask;
  me.line = line;
  ++worker->block->asking;
  give_way(*worker, me);
  return me.answer_mask;
}

// ------------------------------------------------------------------------------------------------- a fibre's life

static void leave_kernel(Block& block, Fibre& fibre) {
  fibre.state = State::Done;
  --block.live;
  block.idle_rounds = 0;
  block.warps[fibre.warp].live &= ~(1u << fibre.lane);
  if (block.live && block.arrived == block.live) open_barrier(block);
  if (!block.live) check_phase(block);
  leave_warp(block, fibre);
  if (block.cluster) leave_cluster(block, fibre);
}

static void fibre_main(Fibre* fibre) {
  Worker& w = *worker;
  w.block->launch->request.body(w.block->launch->request.context);
  leave();
}

void leave() {
  Worker& w = *worker;
  Fibre& me = *w.fibre;
  settle_pending();
  leave_kernel(*w.block, me);
  give_way_slowly(w, me);
  __builtin_trap();
}

// --------------------------------------------------------------------------------------------------------- blocks

static void allocate_stacks(Block& block, size_t first, size_t count) {
  const size_t each = kStackSize + kPage;
  char* memory = (char*)mmap(nullptr, each * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) found("out_of_memory", Site(), format("no memory for the stacks of %zu threads", count));
  for (size_t i = 0; i < count; ++i) {
    mprotect(memory + each * i, kPage, PROT_NONE);  // may fail when very many blocks wait at once: then no guard page
    block.fibres[first + i].stack = memory + each * i + kPage;
  }
}

static Block* prepare_block(Worker& w, Launch& launch, size_t number) {
  Block* block = nullptr;
  for (size_t i = w.idle.size(); i-- > 0 && !block;)
    if (w.idle[i]->fibres.size() == launch.threads) block = w.idle[i], w.idle.erase(w.idle.begin() + (long)i);
  if (!block) {
    block = new Block;
    block->fibres.resize(launch.threads);
    block->warps.resize((launch.threads + 31) / 32);
    allocate_stacks(*block, 0, launch.threads);
    block->arena = (char*)mmap(nullptr, kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block->arena == MAP_FAILED) found("out_of_memory", Site(), "no memory for shared memory");
  }
  const dim3 g = launch.request.grid, b = launch.request.block;
  block->launch = &launch;
  block->number = number;
  block->watched = launch.watched.empty() || launch.unstarted > 0;
  launch.unstarted -= launch.unstarted > 0;
  block->index = uint3{(unsigned)(number % g.x), (unsigned)(number / g.x % g.y), (unsigned)(number / g.x / g.y)};
  block->live = (unsigned)launch.threads;
  block->cluster = nullptr;
  block->arrived = block->spinning = block->asking = block->at_grid = 0;
  block->idle_rounds = 0;
  block->phase = 1;
  block->fences = 1;
  block->ready_warps = 0;
  block->touched.clear();
  block->random = (configuration().seed * 0x9e3779b97f4a7c15ull ^ (number + 1) * 0xbf58476d1ce4e5b9ull) | 1;
  memset(block->arena + kDynamicOffset, 0xff, launch.request.shared);
  for (size_t k = 0; k < block->warps.size(); ++k) {
    const size_t lanes = std::min<size_t>(32, launch.threads - k * 32);
    block->warps[k].existing = block->warps[k].live = lanes == 32 ? kFullMask : (1u << lanes) - 1;
    block->warps[k].arrived = block->warps[k].ready = 0;
  }
  for (size_t i = 0; i < launch.threads; ++i) {
    Fibre& f = block->fibres[i];
    f.linear = (uint16_t)i, f.warp = (uint16_t)(i / 32), f.lane = i & 31;
    f.index = uint3{(unsigned)(i % b.x), (unsigned)(i / b.x % b.y), (unsigned)(i / b.x / b.y)};
    f.line = 0, f.atomics = 0, f.batch = f.bulk_batch = 0, f.cluster_phase = 0;
    f.warp_phase = 1, f.time = 1, f.published = 0, f.published_fence = 0;
    f.copies.clear();
    f.acquired.clear();
    arm(f);
    f.state = State::AtBarrier;
  }
  make_all_ready(*block, State::AtBarrier);
  check_block(*block);
  return block;
}

static void join(Block& block, Cluster& cluster) {
  block.cluster = &cluster;
  block.rank = (unsigned)cluster.blocks.size();
  cluster.blocks.push_back(&block);
}

// Runs a block until it ends or none of its fibres can run. Returns whether it ended.
static bool resume(Worker& w, Block& block) {
  if (block.spinning) {
    block.spinning = 0;
    make_all_ready(block, State::Spinning);
  }
  w.block = &block;
  blockIdx = block.index;
  if (Fibre* first = take_ready(w, block, 0)) jump(w, nullptr, first);
  return block.live == 0;
}

static void retire(Worker& w, Block* block) {
  drop_bulk_copies(*block);
  if (block->cluster) {
    block->cluster->blocks[block->rank] = nullptr;
    if (std::none_of(block->cluster->blocks.begin(), block->cluster->blocks.end(), [](const Block* other) { return other; })) delete block->cluster;
  }
  if (w.idle.size() < kResidentBlocks) w.idle.push_back(block);
}

static void open_grid_barrier(std::vector<Block*>& waiting) {
  for (Block* block : waiting) {
    block->at_grid = 0;
    block->idle_rounds = 0;
    make_all_ready(*block, State::AtGrid);
  }
  check_launch();  // all that went before is ordered before all that follows
}

// Runs blocks of the launch until `take` hands out no more (blocks when exhausted) and all of them have ended.
void run_blocks(Launch& launch, size_t (*take)(Launch&)) {
  Worker& w = this_worker();
  blockDim = launch.request.block;
  gridDim = launch.request.grid;
  std::vector<Block*> waiting;
  const size_t together = blocks_of_cluster(launch);
  size_t next = take(launch), turn = 0;
  const auto seen = [&launch] { return launch.request.last && !launch.watched.empty() && !launch.unfinished; };
  while ((next < launch.blocks || !waiting.empty()) && !seen()) {
    const bool start = next < launch.blocks && (launch.resident || waiting.size() < (together > 1 ? 1 : kResidentBlocks));
    if (start) {
      Cluster* cluster = together > 1 ? new Cluster{launch.request.cluster, next, {}} : nullptr;
      for (size_t rank = 0; rank < together; ++rank, next = take(launch)) {
        waiting.push_back(prepare_block(w, launch, next));
        if (cluster) join(*waiting.back(), *cluster);
      }
      turn = waiting.size() - together;
    } else {
      turn = (turn + 1) % waiting.size();
    }
    Block* block = waiting[turn];
    if (!start && block->at_grid == block->live) {
      bool all = true;
      for (const Block* other : waiting) all &= other->at_grid == other->live;
      if (all) open_grid_barrier(waiting);
      continue;
    }
    if (!start && ++block->idle_rounds > kIdleRounds) {
      bool all = true;
      for (const Block* other : waiting) all &= other->idle_rounds > kIdleRounds;
      if (all) deadlock(*block);
    }
    if (resume(w, *block)) {
      launch.unfinished -= !launch.watched.empty() && block->watched;
      retire(w, block);
      waiting.erase(waiting.begin() + (long)turn);
      turn = turn ? turn - 1 : waiting.empty() ? 0 : waiting.size() - 1;
    }
  }
  w.block = nullptr;
}

}  // namespace emulator
