// Theory of operation
//
// A block runs on one operating-system thread (a Worker). Its CUDA threads are fibres: own stacks, switched by hand where
// they wait. Nothing preempts them, so an interleaving is a function of the program and the order policy alone.
//
//   __syncthreads   opens when as many fibres have arrived as are alive: an early exit lets the others through.
//   warp operations every lane leaves a word; the last to arrive computes all results, then all lanes are ready. Lanes of one
//                   warp run one after another from one such operation to the next, so that their 32 stacks stay in cache.
//   spin            a fibre that waits for memory is set aside until no other fibre of its block can run; a block in which
//                   only such fibres are left is set aside too, and the worker starts or resumes another block.
//   active mask     lanes that ask wait until nothing else of the block can run: those that then stand at the same line
//                   of the same warp are each other's mask. That is the most converged answer a GPU could give.
//   grid barrier    only in cooperative launches, whose blocks are all resident on one worker.
//
// When nothing can run, the block is deadlocked, and the report says where every fibre stands.
#pragma once
#include <vector>

#include "emulator/kernel.h"

namespace emulator {

constexpr size_t kSharedPerBlock = 48 << 10, kSharedOptIn = 227 << 10, kArena = 1 << 20, kDynamicOffset = 512 << 10;
constexpr unsigned kFullMask = 0xffffffffu, kMaxThreads = 1024;

enum class State : uint8_t { Ready, Running, AtBarrier, AtWarp, AtActiveMask, Spinning, AtGrid, Done };

struct PendingCopy {
  void* to;
  const void* from;
  size_t size, zeros, batch;
  const void* pc;
};

// The first cache line holds what a warp operation touches: there are billions of them in a long case.
struct alignas(64) Fibre {
  void* stack_pointer;
  void* deposit;
  Complete complete;
  unsigned mask;
  int line;  // where it waits
  unsigned site;
  uint3 index;
  uint16_t linear, warp;
  uint8_t lane;
  State state;
  WarpKind kind;
  Barrier barrier_kind;
  char* stack;
  unsigned answer_mask;
  int predicate, answer;
  unsigned atomics;
  size_t batch, bulk_batch;
  std::vector<PendingCopy> copies;
  unsigned cluster_phase;  // the phase of its cluster's barrier that it arrived in, 0: it has not
  // For the check build: epochs of this thread, see check.h.
  uint16_t warp_phase;
  uint32_t time, published;
  uint32_t published_fence;
  std::vector<uint32_t> acquired;
};

// Lane sets are masks. `value` and `source` are what the lanes that stand at an operation left there, `result` what a lane
// takes away: it is overwritten at the lane's own next operation only, however long other lanes have been ahead by then.
struct alignas(64) Warp {
  unsigned existing, live, arrived, ready;
  unsigned common_mask;  // of the lanes that have arrived, while `uniform` says that all gave the same
  WarpKind common_kind;
  bool uniform;
  Butterfly chain;  // of the lanes that have arrived
  unsigned fused;   // lanes whose last chain was done at once
  uint8_t source[32];
  unsigned long long value[32], result[32];
};

struct Block;
// Blocks that run together and see one another's shared memory. `arrived`: threads at its barrier.
struct Cluster {
  dim3 size;
  size_t number;
  std::vector<Block*> blocks;  // by rank; null: ended
  unsigned arrived = 0, phase = 1;
};

struct Launch {
  LaunchRequest request;
  size_t blocks, threads;
  size_t next;  // guarded by the pool's lock when several workers share the launch
  bool resident;
  std::vector<size_t> watched;   // blocks, or clusters of them: sorted; they start first. Empty: all are watched
  size_t unstarted, unfinished;  // blocks of those
};

struct Block {
  const Launch* launch;
  size_t number;
  uint3 index;
  std::vector<Fibre> fibres;
  std::vector<Warp> warps;
  unsigned ready_warps;  // those with a lane that is ready
  unsigned live, arrived, spinning, asking, at_grid;
  unsigned long idle_rounds;
  char* arena = nullptr;
  bool watched;
  bool counted;  // its accesses are looked at, see counting.h
  std::vector<SharedVariable*> touched;
  uint64_t random;
  uint32_t phase;  // barriers passed, for the check build
  uint32_t fences;
  Cluster* cluster;  // null: it is alone
  unsigned rank;
};

enum class Order : uint8_t { Forward, Reverse, Random };

struct Worker {
  Block* block = nullptr;
  Fibre* fibre = nullptr;
  Order order = Order::Forward;
  void* scheduler_pointer = nullptr;
  std::vector<Block*> idle;
  uint64_t switches = 0;
  bool collective = false;  // a warp operation is computing over other lanes' stacks
};

extern __thread Worker* worker;
extern const size_t kStackSize;

struct Configuration {
  Order order;
  uint64_t seed;
  int workers;
  bool strict;  // report what a GPU leaves undefined instead of choosing a meaning for it
};
const Configuration& configuration();

Worker& this_worker();
// Blocks of a cluster follow one another, by rank.
size_t blocks_of_cluster(const Launch& launch);
void leave_cluster(Block& block, Fibre& fibre);  // a fibre ends: the cluster's barrier may have waited for it alone
void run_blocks(Launch& launch, size_t (*take)(Launch&));

inline Fibre* current_fibre() { return worker ? worker->fibre : nullptr; }
inline uint32_t current_phase() { return worker->block->phase; }

}  // namespace emulator
