// Clusters of blocks: who is in one, its barrier, and shared memory of the others. See include/ptx/module.h.
#include "check.h"
#include "findings.h"
#include "ptx/module.h"
#include "switching.h"

namespace ptx {

using namespace emulator;

static const unsigned kRankShift = 24;

ClusterPart cluster_part() {
  const Block& block = *worker->block;
  const LaunchRequest& request = block.launch->request;
  const dim3 c = request.cluster, g = request.grid;
  ClusterPart part;
  part.size = c;
  part.grid = dim3(g.x / c.x, g.y / c.y, g.z / c.z);
  part.index = dim3(block.index.x % c.x, block.index.y % c.y, block.index.z % c.z);
  part.number = dim3(block.index.x / c.x, block.index.y / c.y, block.index.z / c.z);
  part.blocks = c.x * c.y * c.z;
  part.rank = block.cluster ? block.rank : 0;
  part.stated = block.cluster != nullptr;
  return part;
}

static char* arena_of(uint32_t rank, int line) {
  const Block& block = *worker->block;
  if (!block.cluster && rank == 0) return block.arena;
  const size_t blocks = block.cluster ? block.cluster->blocks.size() : 1;
  if (rank >= blocks) found("out_of_bounds", here(nullptr, line), format("shared memory of block %u of a cluster that has %zu", rank, blocks));
  const Block* other = block.cluster->blocks[rank];
  if (!other) found("out_of_bounds", here(nullptr, line), format("shared memory of block %u of the cluster, which has ended", rank));
  return other->arena;
}

char* cluster_place(uint32_t address) {
  const uint32_t rank = address >> kRankShift;
  return (rank ? arena_of(rank - 1, 0) : worker->block->arena) + (address & ((1u << kRankShift) - 1));
}
static const Block* holder(const char* p) {
  const Block& block = *worker->block;
  if (p >= block.arena && p < block.arena + kArena) return &block;
  if (block.cluster)
    for (const Block* other : block.cluster->blocks)
      if (other && p >= other->arena && p < other->arena + kArena) return other;
  return nullptr;
}
uint64_t cluster_offset(uint64_t address) {
  const Block* block = holder((const char*)address);
  if (!block) return address;
  return (uint64_t)((char*)address - block->arena) | (block->cluster ? (uint64_t)(block->rank + 1) << kRankShift : 0);
}
uint32_t mapped_offset(uint32_t address, uint32_t rank, int line) {
  arena_of(rank, line);
  return (address & ((1u << kRankShift) - 1)) | (rank + 1) << kRankShift;
}
uint64_t mapped_address(uint64_t address, uint32_t rank, int line) {
  const Block* from = holder((const char*)address);
  if (!from) found("out_of_bounds", here(nullptr, line), "an address outside shared memory is asked for in another block");
  return (uint64_t)arena_of(rank, line) + (address - (uint64_t)from->arena);
}
uint32_t rank_of(const void* address) {
  const Block* block = holder((const char*)address);
  return block && block->cluster ? block->rank : 0;
}
bool in_cluster(const void* address) { return holder((const char*)address) != nullptr; }

// ------------------------------------------------------------------------------------------------------------- barrier

static unsigned threads_left(const Cluster& cluster) {
  unsigned live = 0;
  for (const Block* block : cluster.blocks) live += block ? block->live : 0;
  return live;
}
static void settle(Cluster& cluster) {
  if (cluster.arrived < threads_left(cluster)) return;
  cluster.arrived = 0;
  ++cluster.phase;
  check_cluster(cluster);
  for (Block* block : cluster.blocks)
    if (block) block->idle_rounds = 0;
}

void cluster_arrive(bool publishes, int line) {
  Block& block = *worker->block;
  Fibre& me = calling("barrier.cluster.arrive", line);
  if (!block.cluster) return;
  settle_pending();
  (void)publishes;
  if (me.cluster_phase) found("barrier_object", here(nullptr, line), "a thread arrives at the cluster's barrier again before it has waited for it");
  me.cluster_phase = block.cluster->phase;
  ++block.cluster->arrived;
  settle(*block.cluster);
}
void cluster_wait(int line) {
  Block& block = *worker->block;
  Fibre& me = calling("barrier.cluster.wait", line);
  if (!block.cluster) {
    barrier(line, Barrier::Plain, 0);
    return;
  }
  if (!me.cluster_phase) found("barrier_object", here(nullptr, line), "a thread waits at the cluster's barrier where it has not arrived");
  while (block.cluster->phase == me.cluster_phase) spin(line);
  me.cluster_phase = 0;
}

}  // namespace ptx

namespace emulator {

void leave_cluster(Block& block, Fibre& fibre) {
  if (fibre.cluster_phase == block.cluster->phase) --block.cluster->arrived;
  if (block.cluster->arrived) ptx::settle(*block.cluster);
}

}  // namespace emulator
