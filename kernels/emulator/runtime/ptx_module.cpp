// What translated PTX asks of the runtime: its tables, shared-memory offsets, numbered
// barriers, the workspace of a grid's barrier, and printf with arguments in a buffer.
#include "ptx/module.h"

#include <string>

#include "check.h"
#include "device_memory.h"
#include "findings.h"

namespace ptx {

using namespace emulator;

static Kernel* kernels;
static Global* globals;

Kernel::Kernel(const char* name_, const char* shown_, void (*run_)(void*), dim3 cluster_)
    : name(name_), shown(shown_), run(run_), cluster(cluster_), next(kernels) { kernels = this; }
Global::Global(const char* name_, void* address_, size_t size_, bool constant)
    : name(name_), address(address_), size(size_), announced(address_, size_, name_, constant), next(globals) { globals = this; }
const Kernel* kernel(const char* name) {
  for (const Kernel* k = kernels; k; k = k->next)
    if (!strcmp(k->name, name)) return k;
  return nullptr;
}
const Global* global(const char* name) {
  for (const Global* g = globals; g; g = g->next)
    if (!strcmp(g->name, name)) return g;
  return nullptr;
}

char* arena() { return worker->block->arena; }
uint32_t shared_offset(SharedVariable& variable) { return (uint32_t)((char*)shared_address(variable) - arena()); }
uint32_t dynamic_offset() { return (uint32_t)kDynamicOffset; }
uint32_t dynamic_size() { return (uint32_t)worker->block->launch->request.shared; }
uint32_t shared_size() {
  size_t size = worker->block->launch->request.shared;
  for (const SharedVariable* variable : worker->block->touched) size += variable->size;
  return (uint32_t)size;
}
static SharedVariable reserved = {1024, 128, "the system's part of shared memory", -1};
// It starts as zero: cooperative_groups counts arrivals there without having written it, and what orders the warps that
// exchange values there is the group's own affair, so that no race is looked for.
uint32_t reserved_offset() {
  Block& block = *worker->block;
  const size_t known = block.touched.size();
  const uint32_t offset = shared_offset(reserved);
  if (block.touched.size() > known) {
    memset(block.arena + offset, 0, reserved.size);
    check_nothing(block, block.arena + offset, reserved.size);
  }
  return offset;
}

static Callables* functions;
Callables::Callables(const Callable* first_, size_t count_) : first(first_), count(count_), next(functions) { functions = this; }
void (*callable(uint64_t at, int results, int parameters, int line))() {
  for (const Callables* known = functions; known; known = known->next)
    for (size_t i = 0; i < known->count; ++i)
      if ((uint64_t)(known->first + i) == at && known->first[i].results == results && known->first[i].parameters == parameters) return known->first[i].code;
  found("trap", here(nullptr, line), "a call through a pointer that points to no function of this form");
}

// ------------------------------------------------------------------------------------------------- numbered barriers

// `bar.sync 3, 64`: a phase ends with the stated number of arrivals, whoever they are. The state lies in shared memory, where
// a block starts with all bits set.
static const uint32_t kBarriers = 16;
static SharedVariable barriers = {sizeof(BarrierState) * kBarriers, 8, "the block's numbered barriers", -1};

void named_barrier(uint32_t number, uint32_t threads, bool waits, int line) {
  if (number >= kBarriers) found("barrier_object", here(nullptr, line), format("there is no barrier %u; a block has %u", number, kBarriers));
  if (threads == 0 || threads % 32) found("barrier_object", here(nullptr, line), format("a barrier of %u threads; whole warps are accepted", threads));
  BarrierState& state = static_cast<BarrierState*>(shared_address(barriers))[number];
  if (state.expected == ~0u) barrier_init(&state, threads);
  if (state.arrived == 0) state.expected = threads;
  if (state.expected != threads) found("barrier_object", here(nullptr, line), format("barrier %u is used with %u threads and with %u at once", number, state.expected, threads));
  const uint32_t phase = barrier_arrive(&state, 1, false);
  if (waits) barrier_wait(&state, phase, line);
}

// ------------------------------------------------------------------------------------------------------- grid barrier

// cooperative_groups keeps the counter of grid.sync() in memory that the driver provides: a word of flags, then the counter.
uint64_t grid_workspace() {
  if (!worker->block->launch->resident) return 0;
  static const Launch* owner;
  static Array* memory;
  if (owner != worker->block->launch || !memory) {
    if (!memory) memory = new_array(64, "the grid's barrier");
    owner = worker->block->launch;
    memset(memory->data, 0, memory->size);
    mark_written(memory->data, memory->size, true);
  }
  return (uint64_t)memory->data;
}

// --------------------------------------------------------------------------------------------------------------- printf

static void print_one(const std::string& how, const char*& at, size_t& used, std::string& out) {
  const char kind = how.back();
  char text[512];
  const auto take = [&](size_t size) {
    used = (used + size - 1) / size * size;
    const char* from = at + used;
    used += size;
    return from;
  };
  const bool wide = how.find('l') != std::string::npos || how.find('z') != std::string::npos || how.find('j') != std::string::npos;
  if (strchr("eEfFgGaA", kind)) snprintf(text, sizeof text, how.c_str(), load<double>(take(8)));
  else if (kind == 's') snprintf(text, sizeof text, how.c_str(), address(load<uint64_t>(take(8))));
  else if (kind == 'p') snprintf(text, sizeof text, how.c_str(), address(load<uint64_t>(take(8))));
  else if (wide) snprintf(text, sizeof text, how.c_str(), load<long long>(take(8)));
  else snprintf(text, sizeof text, how.c_str(), load<int>(take(4)));
  out += text;
}

void print(const char* format, const void* arguments) {
  std::string out;
  const char* given = (const char*)arguments;
  size_t used = 0;
  for (const char* at = format; *at;) {
    if (*at != '%') { out += *at++; continue; }
    const size_t length = strspn(at + 1, "-+ #0123456789.hljzt");
    const char kind = at[length + 1];
    if (kind == '%') out += '%';
    else if (kind && strchr("diouxXcsp" "eEfFgGaA", kind)) print_one(std::string(at, length + 2), given, used, out);
    else { out += *at++; continue; }
    at += length + 2;
  }
  fwrite(out.data(), 1, out.size(), stdout);
}

void assertion_failed(const char* expression, uint32_t line) {
  found("assertion", here(nullptr, (int)line), emulator::format("the assertion %.300s does not hold", expression));
}

}  // namespace ptx
