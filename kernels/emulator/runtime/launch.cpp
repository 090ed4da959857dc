// Starts kernels: checks a launch as a GPU would, and hands its blocks to the workers.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "check.h"
#include "device_memory.h"
#include "findings.h"

extern "C" const int emulator_serial_blocks __attribute__((weak));

namespace emulator {

struct Pool {
  std::mutex lock;
  std::condition_variable work, done;
  Launch* launch = nullptr;
  unsigned generation = 0, busy = 0;
};
static Pool* pool;
static unsigned pool_size;

// The first unit (a block, or a cluster of them), the last, and others that the seed draws: a legal order, in which the rest
// come late.
static std::vector<size_t> drawn(size_t units, const Slice& slice) {
  std::vector<size_t> found = {0, units - 1};
  for (uint64_t state = slice.seed; found.size() < slice.blocks;) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const size_t unit = (size_t)((state >> 16) % units);
    if (std::find(found.begin(), found.end(), unit) == found.end()) found.push_back(unit);
  }
  std::sort(found.begin(), found.end());
  return found;
}

static size_t watched_first(const Launch& launch, size_t turn) {
  if (turn < launch.watched.size()) return launch.watched[turn];
  size_t unit = turn - launch.watched.size();
  for (const size_t watched : launch.watched) unit += unit >= watched;
  return unit;
}

static size_t in_order(size_t turn, size_t count) {
  switch (configuration().order) {
    case Order::Reverse: return count - 1 - turn;
    case Order::Random: return (turn + configuration().seed) % count;
    default: return turn;
  }
}

size_t blocks_of_cluster(const Launch& launch) {
  const dim3 c = launch.request.cluster;
  return (size_t)c.x * c.y * c.z;
}

// The block of rank `rank` in the cluster of that number.
static size_t in_cluster(const Launch& launch, size_t number, size_t rank) {
  const dim3 c = launch.request.cluster, g = launch.request.grid, wide(g.x / c.x, g.y / c.y, g.z / c.z);
  const size_t x = number % wide.x * c.x + rank % c.x, y = number / wide.x % wide.y * c.y + rank / c.x % c.y;
  const size_t z = number / wide.x / wide.y * c.z + rank / c.x / c.y;
  return (z * g.y + y) * g.x + x;
}

static size_t take_block(Launch& launch) {
  const size_t turn = __atomic_fetch_add(&launch.next, 1, __ATOMIC_RELAXED), together = blocks_of_cluster(launch);
  if (turn >= launch.blocks) return launch.blocks;
  const size_t units = launch.blocks / together;
  const size_t unit = launch.watched.empty() ? in_order(turn / together, units) : watched_first(launch, turn / together);
  return together == 1 ? unit : in_cluster(launch, unit, turn % together);
}

static void serve_pool() {
  unsigned seen = 0;
  for (;;) {
    Launch* launch;
    {
      std::unique_lock<std::mutex> guard(pool->lock);
      pool->work.wait(guard, [&] { return pool->generation != seen; });
      seen = pool->generation;
      launch = pool->launch;
    }
    run_blocks(*launch, take_block);
    std::lock_guard<std::mutex> guard(pool->lock);
    if (--pool->busy == 0) pool->done.notify_one();
  }
}

static void run_on_pool(Launch& launch) {
  if (!pool) {
    pool = new Pool;
    pool_size = (unsigned)configuration().workers - 1;
    for (unsigned i = 0; i < pool_size; ++i) std::thread(serve_pool).detach();
  }
  {
    std::lock_guard<std::mutex> guard(pool->lock);
    pool->launch = &launch;
    pool->busy = pool_size;
    ++pool->generation;
  }
  pool->work.notify_all();
  run_blocks(launch, take_block);
  std::unique_lock<std::mutex> guard(pool->lock);
  pool->done.wait(guard, [] { return pool->busy == 0; });
}

// ------------------------------------------------------------------------------------------------------- launching

static const size_t kProcessors = 16;  // of the virtual GPU

static size_t blocks_per_processor(size_t threads, size_t shared) {
  return std::min<size_t>({2048 / ((threads + 31) / 32 * 32), (228 << 10) / (shared + 1024), 32});
}

// What the recorder lets through comes here again from a tape, which anything may have been written on.
static const char* refused(const LaunchRequest& request) {
  const dim3 g = request.grid, b = request.block;
  const uint64_t threads = (uint64_t)b.x * b.y * b.z, blocks = (uint64_t)g.x * g.y * g.z;
  if (!threads || !blocks || threads > kMaxThreads || b.z > 64 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
    return "cudaErrorInvalidConfiguration";
  const dim3 c = request.cluster;
  if (!c.x || !c.y || !c.z || g.x % c.x || g.y % c.y || g.z % c.z || (uint64_t)c.x * c.y * c.z > 16) return "cudaErrorInvalidConfiguration";
  if (request.shared > kSharedOptIn) return "cudaErrorInvalidValue";
  const uint64_t resident = kProcessors * blocks_per_processor(threads, request.shared);
  if (request.cooperative && blocks > resident) return "cudaErrorCooperativeLaunchTooLarge";
  return nullptr;
}

const char* run(const LaunchRequest& request) {
  if (const char* error = refused(request)) return error;
  Launch launch;
  launch.request = request;
  launch.blocks = (size_t)request.grid.x * request.grid.y * request.grid.z;
  launch.threads = (size_t)request.block.x * request.block.y * request.block.z;
  launch.next = 0;
  launch.resident = request.cooperative;
  const size_t together = blocks_of_cluster(launch), units = launch.blocks / together;
  if (request.slice.blocks > 1 && units > request.slice.blocks) launch.watched = drawn(units, request.slice);
  launch.unstarted = launch.unfinished = launch.watched.size() * together;
  check_launch();
  const bool serial = request.cooperative || blocks_of_cluster(launch) > 1 || (&emulator_serial_blocks && emulator_serial_blocks);
  if (configuration().workers > 1 && launch.blocks > 1 && !serial) run_on_pool(launch);
  else run_blocks(launch, take_block);
  verify_margins();
  check_results();
  return nullptr;
}

}  // namespace emulator
