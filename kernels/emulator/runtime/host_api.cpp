// The runtime API behind include/emulator/host_api.h. The virtual GPU: compute capability 9.0, 16 multiprocessors.
#include <map>
#include <mutex>

#include "check.h"
#include "device_memory.h"
#include "findings.h"
#include "host_state.h"

// A stream knows, for each stream, how much of that stream's work is ordered before its own next piece.
struct EmulatorStream {
  unsigned number;
  std::map<unsigned, unsigned long> before;
};
struct EmulatorEvent {
  std::map<unsigned, unsigned long> before;
  long long ticks;
  bool recorded;
};

namespace emulator {

static const size_t kUploadLimit = 1 << 20;  // as on the tape
static cudaError_t last_error = cudaSuccess;
static bool in_seam;
static size_t workspace_limit, workspace_used;
static std::map<unsigned, unsigned long> issued;  // pieces of work by stream number
static std::map<unsigned, unsigned long> host_waited;
static unsigned streams_made = 1;
static EmulatorStream given{1, {}};

cudaError_t set_error(cudaError_t error) { return error == cudaSuccess ? error : last_error = error; }

// A violation's text is its call, its detail and a number of bytes, between bars: the sentence is made outside, where
// every backend's sentences are made.
static cudaError_t violation(const char* kind, const char* call, const char* detail, size_t bytes, int line) {
  found(kind, here(nullptr, line), format("%s|%s|%zu", call, detail, bytes));
}

static EmulatorStream& resolve(cudaStream_t stream) {
  static EmulatorStream legacy{0, {}};
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread ? legacy : *stream;
}

void note_work(cudaStream_t stream) {
  EmulatorStream& s = resolve(stream);
  s.before[s.number] = ++issued[s.number];
}

void begin_seam(size_t workspace_bytes) {
  in_seam = true;
  workspace_limit = workspace_bytes;
  issued.clear();
  host_waited.clear();
  guard_arrays(true);
}
cudaStream_t seam_stream() { return &given; }
void end_seam() {
  for (const auto& entry : issued) {
    const unsigned number = entry.first;
    if (number <= 1) continue;  // the default stream orders itself with the given one
    if (given.before[number] < entry.second && host_waited[number] < entry.second)
      found("stream_not_joined", Site(), format("stream %u of its own", number - 1));
  }
  in_seam = false;
  guard_arrays(false);
}

static std::map<unsigned, unsigned long>& merge(std::map<unsigned, unsigned long>& into, const std::map<unsigned, unsigned long>& from) {
  for (const auto& entry : from) into[entry.first] = std::max(into[entry.first], entry.second);
  return into;
}

cudaError_t create_stream(cudaStream_t* stream) {
  *stream = new EmulatorStream{++streams_made, {}};
  return cudaSuccess;
}
cudaError_t destroy_stream(cudaStream_t stream) {
  return stream && stream != &given ? cudaSuccess : set_error(cudaErrorInvalidResourceHandle);
}
cudaError_t synchronise(cudaStream_t stream) {
  merge(host_waited, resolve(stream).before);
  return cudaSuccess;
}
cudaError_t create_event(cudaEvent_t* event) {
  *event = new EmulatorEvent{{}, 0, false};
  return cudaSuccess;
}
cudaError_t destroy_event(cudaEvent_t event) { return event ? cudaSuccess : set_error(cudaErrorInvalidResourceHandle); }
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream) {
  if (!event) return set_error(cudaErrorInvalidResourceHandle);
  event->before = resolve(stream).before;
  event->ticks = ticks();
  event->recorded = true;
  return cudaSuccess;
}
cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event) {
  if (!event) return set_error(cudaErrorInvalidResourceHandle);
  merge(resolve(stream).before, event->before);
  return cudaSuccess;
}
cudaError_t elapsed(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!start || !end || !start->recorded || !end->recorded) return set_error(cudaErrorInvalidResourceHandle);
  *milliseconds = (float)(end->ticks - start->ticks) * 1e-6f;  // scheduler steps: emulated time means nothing else
  return cudaSuccess;
}
cudaError_t host_function(cudaStream_t, void (*function)(void*), void* data, const char* call, int line) {
  if (in_seam) return violation("unrecordable_call", call, "a host callback", 0, line);
  function(data);
  return cudaSuccess;
}

cudaError_t refused_call(const char* call, const char* detail, int line) { return violation("unrecordable_call", call, detail, 0, line); }

// ----------------------------------------------------------------------------------------------------------- memory

cudaError_t allocate(void** address, size_t size, const char* call, int line) {
  const std::string name = call;
  if (in_seam && name == "cudaMallocManaged") return violation("managed_memory", call, "", size, line);
  if (in_seam && (name == "cudaMallocHost" || name == "cudaHostAlloc")) return violation("unrecordable_call", call, "pinned memory", size, line);
  if (in_seam && workspace_used + size > workspace_limit) return violation("workspace", call, "", size, line);
  workspace_used += size;
  if (!size) {
    *address = nullptr;
    return cudaSuccess;
  }
  if (size > (size_t)8 << 30) return set_error(cudaErrorMemoryAllocation);
  Array* array = new_array(size, format("the array of line %d", line), name == "cudaMallocHost" || name == "cudaHostAlloc");
  if (!array) return set_error(cudaErrorMemoryAllocation);
  *address = array->data;
  return cudaSuccess;
}

cudaError_t release(void* address, const char*) {
  if (!address) return cudaSuccess;
  Array* array = array_at(address);
  if (!array || array->data != address || !array->live) return set_error(cudaErrorInvalidValue);
  workspace_used -= std::min(workspace_used, array->size);
  free_array(*array);
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream, const char* call, int line) {
  if (!size) return cudaSuccess;
  const bool to_device = device_range(to, 1), from_device = device_range(from, 1);
  if (kind == cudaMemcpyDefault) kind = to_device ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice) : (from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
  if (in_seam && kind == cudaMemcpyDeviceToHost) return violation("unrecordable_call", call, "a copy from the device to the host", size, line);
  if (in_seam && kind == cudaMemcpyHostToDevice && size > kUploadLimit) return violation("upload_too_large", call, "host data copied to the device", size, line);
  const bool needs_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool needs_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((needs_to && !device_range(to, size)) || (needs_from && !device_range(from, size))) return set_error(cudaErrorInvalidValue);
  note_work(stream);
  const DeviceAccess access;
  memmove(to, from, size);
  mark_written(to, size, true);
  return cudaSuccess;
}

cudaError_t fill(void* to, int value, size_t size, cudaStream_t stream, int) {
  if (!size) return cudaSuccess;
  if (!device_range(to, size)) return set_error(cudaErrorInvalidValue);
  note_work(stream);
  const DeviceAccess access;
  memset(to, value, size);
  mark_written(to, size, true);
  return cudaSuccess;
}

cudaError_t copy_symbol(void* symbol, size_t symbol_size, void* host, size_t size, size_t offset, bool to_symbol, cudaMemcpyKind kind, cudaStream_t stream, const char* call, int line) {
  if (in_seam && !to_symbol && kind != cudaMemcpyDeviceToDevice) return violation("unrecordable_call", call, "a copy from the device to the host", size, line);
  if (offset > symbol_size || size > symbol_size - offset) return set_error(cudaErrorInvalidValue);
  note_work(stream);
  const DeviceAccess access;
  if (to_symbol) memcpy((char*)symbol + offset, host, size);
  else memcpy(host, (char*)symbol + offset, size);
  return cudaSuccess;
}

// ------------------------------------------------------------------------------------------------------- the device

int blocks_per_processor(int threads, size_t dynamic_shared) {
  if (threads < 1 || threads > (int)kMaxThreads) return 0;
  const size_t by_threads = 2048 / (size_t)((threads + 31) / 32 * 32);
  const size_t by_shared = (228 << 10) / (dynamic_shared + 1024);
  return (int)std::min<size_t>({by_threads, by_shared, 32});
}

void function_attributes(cudaFuncAttributes* attributes) {
  *attributes = {};
  attributes->maxThreadsPerBlock = kMaxThreads;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = (int)kSharedPerBlock;
}

}  // namespace emulator
using namespace emulator;

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
#define EMULATOR_NAME(name, number, text) case name: return #name;
#define EMULATOR_TEXT(name, number, text) case name: return text;
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) { EMULATOR_ERRORS(EMULATOR_NAME) }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) { EMULATOR_ERRORS(EMULATOR_TEXT) }
  return "unrecognized error code";
}

cudaError_t cudaDeviceSynchronize() {
  for (const auto& entry : issued) host_waited[entry.first] = entry.second;
  return cudaSuccess;
}
cudaError_t cudaDeviceReset() { return in_seam ? violation("unrecordable_call", "cudaDeviceReset", "the device is the judge's", 0, 0) : cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return device ? set_error(cudaErrorInvalidDevice) : cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) { return *free_bytes = *total_bytes = (size_t)8 << 30, cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (device) return set_error(cudaErrorInvalidDevice);
  *p = {};
  strcpy(p->name, "Kernelgate virtual GPU");
  p->totalGlobalMem = (size_t)8 << 30;
  p->sharedMemPerBlock = kSharedPerBlock;
  p->sharedMemPerBlockOptin = kSharedOptIn;
  p->sharedMemPerMultiprocessor = 228 << 10;
  p->reservedSharedMemPerBlock = 1024;
  p->totalConstMem = 64 << 10;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->warpSize = 32;
  p->maxThreadsPerBlock = kMaxThreads;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024, p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 0x7fffffff, p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->multiProcessorCount = kProcessors;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxBlocksPerMultiProcessor = 32;
  p->major = 9;
  p->concurrentKernels = p->unifiedAddressing = p->cooperativeLaunch = 1;
  p->l2CacheSize = 50 << 20;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device) return set_error(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: *value = kMaxThreads; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; break;
    case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)kSharedPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)kSharedOptIn; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 228 << 10; break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = 1024; break;
    case cudaDevAttrTotalConstantMemory: *value = 64 << 10; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxRegistersPerBlock: case cudaDevAttrMaxRegistersPerMultiprocessor: *value = 65536; break;
    case cudaDevAttrMultiProcessorCount: *value = kProcessors; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrL2CacheSize: *value = 50 << 20; break;
    case cudaDevAttrClockRate: *value = 1000000; break;
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    default: *value = 0;
  }
  return cudaSuccess;
}
