// Starts kernels: checks a launch as a GPU would, hands its blocks to the workers, and keeps the last error.
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "check.h"
#include "device_memory.h"
#include "findings.h"
#include "host_state.h"

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
  if (together == 1) return in_order(turn, launch.blocks);
  return in_cluster(launch, in_order(turn / together, launch.blocks / together), turn % together);
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

// ------------------------------------------------------------------------------------- dynamic shared memory opt-in

static std::vector<std::pair<std::string, size_t>>& opt_ins() {
  static auto* all = new std::vector<std::pair<std::string, size_t>>;
  return *all;
}

// The kernel's own name: what stands before template arguments and behind namespaces.
static std::string base_name(const std::string& callee) {
  std::string name = callee.substr(0, callee.find('<'));
  const size_t end = name.find_last_not_of("()& *");
  name = name.substr(0, end == std::string::npos ? 0 : end + 1);
  const size_t start = name.find_last_of(":.>()& *");
  return start == std::string::npos ? name : name.substr(start + 1);
}

static bool names(const std::string& text, const std::string& name) {
  const auto word = [](char c) { return isalnum((unsigned char)c) || c == '_'; };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
    if ((at == 0 || !word(text[at - 1])) && (at + name.size() >= text.size() || !word(text[at + name.size()]))) return true;
  return false;
}

int allow_dynamic_shared(const char* kernel, int attribute, int bytes) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (bytes < 0 || (size_t)bytes > kSharedOptIn) return set_error(cudaErrorInvalidValue);
  opt_ins().push_back({kernel, (size_t)bytes});
  return cudaSuccess;
}

static bool may_use(const LaunchRequest& request) {
  if (request.shared <= kSharedPerBlock) return true;
  const std::string name = base_name(request.name);
  bool allowed = false;
  for (const auto& entry : opt_ins())
    if (name.empty() || names(entry.first, name)) allowed = entry.second >= request.shared;
  return allowed;
}

// ------------------------------------------------------------------------------------------------------- launching

static cudaError_t refused(const LaunchRequest& request) {
  const dim3 g = request.grid, b = request.block;
  const uint64_t threads = (uint64_t)b.x * b.y * b.z, blocks = (uint64_t)g.x * g.y * g.z;
  if (!threads || !blocks || threads > kMaxThreads || b.z > 64 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
    return cudaErrorInvalidConfiguration;
  const dim3 c = request.cluster;
  if (!c.x || !c.y || !c.z || g.x % c.x || g.y % c.y || g.z % c.z || (uint64_t)c.x * c.y * c.z > 16) return cudaErrorInvalidConfiguration;
  if (request.shared > kSharedOptIn || !may_use(request)) return cudaErrorInvalidValue;
  const uint64_t resident = (uint64_t)kProcessors * blocks_per_processor((int)threads, request.shared);
  if (request.cooperative && blocks > resident) return cudaErrorCooperativeLaunchTooLarge;
  return cudaSuccess;
}

static unsigned long launches;
unsigned long launch_count() { return launches; }

int run(const LaunchRequest& request) {
  if (current_fibre()) found("unrecordable_call", here(nullptr, request.line), "a kernel launch|launched by a kernel (dynamic parallelism)|0");
  if (const cudaError_t error = refused(request)) return set_error(error);
  note_work(request.stream);
  ++launches;
  const DeviceAccess access;
  Launch launch;
  launch.request = request;
  launch.blocks = (size_t)request.grid.x * request.grid.y * request.grid.z;
  launch.threads = (size_t)request.block.x * request.block.y * request.block.z;
  launch.next = 0;
  launch.resident = request.cooperative;
  check_launch();
  const bool serial = request.cooperative || blocks_of_cluster(launch) > 1 || (&emulator_serial_blocks && emulator_serial_blocks);
  if (configuration().workers > 1 && launch.blocks > 1 && !serial) run_on_pool(launch);
  else run_blocks(launch, take_block);
  verify_margins();
  return cudaSuccess;
}

static Kernel* kernels;
void add(Kernel* kernel) {
  kernel->next = kernels;
  kernels = kernel;
}

int launch_by_address(const void* address, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream, bool cooperative, int line) {
  for (const Kernel* kernel = kernels; kernel; kernel = kernel->next) {
    if (kernel->address != address) continue;
    auto body = [&] { kernel->call(address, arguments); };
    const LaunchRequest request{line, kernel->name, grid, block, shared, stream, cooperative,
                                [](void* context) { (*static_cast<decltype(body)*>(context))(); }, &body};
    return run(request);
  }
  found("unknown_kernel", here(nullptr, line), "a template kernel was launched by a plain address; pass it as a function (without the void* cast) or launch it with <<<>>>");
}

}  // namespace emulator
