// The CUDA runtime API. Work is executed when it is issued; streams and events keep only the order that they promise.
#pragma once

#define EMULATOR_ERRORS(each)                                                                              \
  each(cudaSuccess, 0, "no error")                                                                         \
  each(cudaErrorInvalidValue, 1, "invalid argument")                                                       \
  each(cudaErrorMemoryAllocation, 2, "out of memory")                                                      \
  each(cudaErrorInitializationError, 3, "initialization error")                                            \
  each(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                 \
  each(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                                           \
  each(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                                \
  each(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                                        \
  each(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                           \
  each(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                      \
  each(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                       \
  each(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                              \
  each(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                     \
  each(cudaErrorSymbolNotFound, 500, "named symbol not found")                                             \
  each(cudaErrorNotReady, 600, "device not ready")                                                         \
  each(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                           \
  each(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")                      \
  each(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                             \
  each(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                           \
  each(cudaErrorAssert, 710, "device-side assert triggered")                                               \
  each(cudaErrorMisalignedAddress, 716, "misaligned address")                                              \
  each(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                          \
  each(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")                   \
  each(cudaErrorNotSupported, 801, "operation not supported")                                              \
  each(cudaErrorUnknown, 999, "unknown error")
#define EMULATOR_ENUMERATOR(name, number, text) name = number,
enum cudaError { EMULATOR_ERRORS(EMULATOR_ENUMERATOR) };
#undef EMULATOR_ENUMERATOR
typedef cudaError cudaError_t;

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 12,
};
enum cudaSharedCarveout { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxL1 = 0, cudaSharedmemCarveoutMaxShared = 100 };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize };
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxBlockDimX = 2,
  cudaDevAttrMaxBlockDimY = 3,
  cudaDevAttrMaxBlockDimZ = 4,
  cudaDevAttrMaxGridDimX = 5,
  cudaDevAttrMaxGridDimY = 6,
  cudaDevAttrMaxGridDimZ = 7,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrTotalConstantMemory = 9,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMaxRegistersPerBlock = 12,
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxRegistersPerMultiprocessor = 82,
  cudaDevAttrManagedMemory = 83,
  cudaDevAttrConcurrentManagedAccess = 89,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrReservedSharedMemoryPerBlock = 111,
};
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  size_t totalConstMem;
  int major, minor, multiProcessorCount, integrated, canMapHostMemory, concurrentKernels, ECCEnabled, asyncEngineCount;
  int unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, cooperativeLaunch, maxBlocksPerMultiProcessor;
  size_t sharedMemPerBlockOptin, reservedSharedMemPerBlock;
};
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
enum cudaLaunchAttributeID { cudaLaunchAttributeIgnore = 0, cudaLaunchAttributeCooperative = 2, cudaLaunchAttributeClusterDimension = 4, cudaLaunchAttributePriority = 8 };
union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative, priority;
  struct { unsigned x, y, z; } clusterDim;
};
struct cudaLaunchAttribute { cudaLaunchAttributeID id; char pad[4]; cudaLaunchAttributeValue val; };
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
typedef void (*cudaHostFn_t)(void*);
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void*);

#define cudaStreamDefault 0u
#define cudaStreamNonBlocking 1u
#define cudaStreamLegacy ((cudaStream_t)1)
#define cudaStreamPerThread ((cudaStream_t)2)
#define cudaEventDefault 0u
#define cudaEventBlockingSync 1u
#define cudaEventDisableTiming 2u
#define cudaEventRecordDefault 0u
#define cudaHostAllocDefault 0u
#define cudaMemAttachGlobal 1u
#define cudaDeviceScheduleAuto 0u
#define cudaOccupancyDefault 0u
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define CUDART_CB

const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }

namespace emulator {
// `call` is the name the submission wrote; `line` where. The seam's policy may end the run here.
cudaError_t allocate(void** address, size_t size, const char* call, int line);
cudaError_t release(void* address, const char* call);
cudaError_t copy(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream, const char* call, int line);
cudaError_t fill(void* to, int value, size_t size, cudaStream_t stream, int line);
cudaError_t copy_symbol(void* symbol, size_t symbol_size, void* host, size_t size, size_t offset, bool to_symbol,
                        cudaMemcpyKind kind, cudaStream_t stream, const char* call, int line);
cudaError_t set_error(cudaError_t error);  // remembers it, and returns it
cudaError_t refused_call(const char* call, const char* detail, int line);  // in any program: there is no such thing here
int blocks_per_processor(int threads, size_t dynamic_shared);
void function_attributes(cudaFuncAttributes* attributes);
cudaError_t create_stream(cudaStream_t* stream);
cudaError_t destroy_stream(cudaStream_t stream);
cudaError_t synchronise(cudaStream_t stream);
cudaError_t create_event(cudaEvent_t* event);
cudaError_t destroy_event(cudaEvent_t event);
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream);
cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event);
cudaError_t elapsed(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t host_function(cudaStream_t stream, void (*function)(void*), void* data, const char* call, int line);
}  // namespace emulator

#define EMULATOR_LINE int line = __builtin_LINE()
template <class T> inline cudaError_t cudaMalloc(T** p, size_t n, EMULATOR_LINE) { return ::emulator::allocate((void**)p, n, "cudaMalloc", line); }
template <class T> inline cudaError_t cudaMallocAsync(T** p, size_t n, cudaStream_t, EMULATOR_LINE) { return ::emulator::allocate((void**)p, n, "cudaMallocAsync", line); }
template <class T> inline cudaError_t cudaMallocManaged(T** p, size_t n, unsigned = cudaMemAttachGlobal, EMULATOR_LINE) { return ::emulator::allocate((void**)p, n, "cudaMallocManaged", line); }
template <class T> inline cudaError_t cudaMallocHost(T** p, size_t n, unsigned = 0, EMULATOR_LINE) { return ::emulator::allocate((void**)p, n, "cudaMallocHost", line); }
template <class T> inline cudaError_t cudaHostAlloc(T** p, size_t n, unsigned, EMULATOR_LINE) { return ::emulator::allocate((void**)p, n, "cudaHostAlloc", line); }
template <class T> inline cudaError_t cudaMallocPitch(T** p, size_t* pitch, size_t width, size_t height, EMULATOR_LINE) {
  *pitch = (width + 511) / 512 * 512;
  return ::emulator::allocate((void**)p, *pitch * height, "cudaMallocPitch", line);
}
inline cudaError_t cudaFree(void* p) { return ::emulator::release(p, "cudaFree"); }
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return ::emulator::release(p, "cudaFreeAsync"); }
inline cudaError_t cudaFreeHost(void* p) { return ::emulator::release(p, "cudaFreeHost"); }
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind kind, EMULATOR_LINE) { return ::emulator::copy(to, from, n, kind, nullptr, "cudaMemcpy", line); }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t s = nullptr, EMULATOR_LINE) { return ::emulator::copy(to, from, n, kind, s, "cudaMemcpyAsync", line); }
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t s = nullptr, EMULATOR_LINE) {
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t error = ::emulator::copy((char*)to + row * to_pitch, (const char*)from + row * from_pitch, width, kind, s, "cudaMemcpy2D", line);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind, EMULATOR_LINE) { return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr, line); }
inline cudaError_t cudaMemset(void* to, int value, size_t n, EMULATOR_LINE) { return ::emulator::fill(to, value, n, nullptr, line); }
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t s = nullptr, EMULATOR_LINE) { return ::emulator::fill(to, value, n, s, line); }
template <class T> inline cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t n, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice, EMULATOR_LINE) { return ::emulator::copy_symbol((void*)&symbol, sizeof(T), (void*)from, n, offset, true, kind, nullptr, "cudaMemcpyToSymbol", line); }
template <class T> inline cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t n, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t s = nullptr, EMULATOR_LINE) { return ::emulator::copy_symbol((void*)&symbol, sizeof(T), (void*)from, n, offset, true, kind, s, "cudaMemcpyToSymbolAsync", line); }
template <class T> inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t n, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost, EMULATOR_LINE) { return ::emulator::copy_symbol((void*)&symbol, sizeof(T), to, n, offset, false, kind, nullptr, "cudaMemcpyFromSymbol", line); }
template <class T> inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t n, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t s = nullptr, EMULATOR_LINE) { return ::emulator::copy_symbol((void*)&symbol, sizeof(T), to, n, offset, false, kind, s, "cudaMemcpyFromSymbolAsync", line); }
template <class T> inline cudaError_t cudaGetSymbolAddress(void** p, const T& symbol) { *p = (void*)&symbol; return cudaSuccess; }
template <class T> inline cudaError_t cudaGetSymbolSize(size_t* n, const T& symbol) { *n = sizeof(symbol); return cudaSuccess; }

inline cudaError_t cudaStreamCreate(cudaStream_t* s) { return ::emulator::create_stream(s); }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { return ::emulator::create_stream(s); }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int) { return ::emulator::create_stream(s); }
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { *least = 0, *greatest = -5; return cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t s) { return ::emulator::destroy_stream(s); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t s) { return ::emulator::synchronise(s); }
inline cudaError_t cudaStreamQuery(cudaStream_t s) { return ::emulator::synchronise(s); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned = 0) { return ::emulator::wait_event(s, e); }
inline cudaError_t cudaEventCreate(cudaEvent_t* e) { return ::emulator::create_event(e); }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { return ::emulator::create_event(e); }
inline cudaError_t cudaEventDestroy(cudaEvent_t e) { return ::emulator::destroy_event(e); }
inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s = nullptr) { return ::emulator::record_event(e, s); }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { return ::emulator::elapsed(ms, a, b); }
inline cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* data, EMULATOR_LINE) { return ::emulator::host_function(s, f, data, "cudaLaunchHostFunc", line); }
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }

inline cudaError_t cudaStreamAddCallback(cudaStream_t, cudaStreamCallback_t, void*, unsigned, EMULATOR_LINE) { return ::emulator::refused_call("cudaStreamAddCallback", "a host callback", line); }
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
typedef struct EmulatorGraph* cudaGraph_t;
typedef struct EmulatorGraphExec* cudaGraphExec_t;
inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode, EMULATOR_LINE) { return ::emulator::refused_call("cudaStreamBeginCapture", "the judge makes the graph", line); }
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*, EMULATOR_LINE) { return ::emulator::refused_call("cudaStreamEndCapture", "the judge makes the graph", line); }
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long = 0, EMULATOR_LINE) { return ::emulator::refused_call("cudaGraphInstantiate", "the judge makes the graph", line); }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t, EMULATOR_LINE) { return ::emulator::refused_call("cudaGraphLaunch", "the judge makes the graph", line); }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
inline cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) { *value = 0; return cudaSuccess; }

// Kernels are named by the text of the argument: a launch finds the opt-in again by the kernel's name.
#define cudaFuncSetAttribute(...) ::emulator::set_attribute(#__VA_ARGS__, __VA_ARGS__)
namespace emulator {
template <class F> inline cudaError_t set_attribute(const char* text, F, cudaFuncAttribute attribute, int value) { return (cudaError_t)allow_dynamic_shared(text, (int)attribute, value); }
}
template <class F> inline cudaError_t cudaFuncSetCacheConfig(F, cudaFuncCache) { return cudaSuccess; }
template <class F> inline cudaError_t cudaFuncSetSharedMemConfig(F, cudaSharedMemConfig) { return cudaSuccess; }
template <class F> inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, F) { ::emulator::function_attributes(a); return cudaSuccess; }
template <class F> inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, F, int threads, size_t shared) { *n = ::emulator::blocks_per_processor(threads, shared); return cudaSuccess; }
template <class F> inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, F, int threads, size_t shared, unsigned) { *n = ::emulator::blocks_per_processor(threads, shared); return cudaSuccess; }
template <class F> inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F, size_t = 0, int limit = 0) {
  *block = limit > 0 && limit < 1024 ? limit : 1024;
  int processors = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  *grid = processors * ::emulator::blocks_per_processor(*block, 0);
  return cudaSuccess;
}
inline cudaError_t cudaLaunchKernel(const void* k, dim3 g, dim3 b, void** a, size_t n = 0, cudaStream_t s = nullptr, EMULATOR_LINE) { return (cudaError_t)::emulator::launch_by_address(k, g, b, a, n, s, false, line); }
inline cudaError_t cudaLaunchCooperativeKernel(const void* k, dim3 g, dim3 b, void** a, size_t n = 0, cudaStream_t s = nullptr, EMULATOR_LINE) { return (cudaError_t)::emulator::launch_by_address(k, g, b, a, n, s, true, line); }
template <class... P> inline cudaError_t cudaLaunchKernel(void (*k)(P...), dim3 g, dim3 b, void** a, size_t n = 0, cudaStream_t s = nullptr, EMULATOR_LINE) { return (cudaError_t)::emulator::launch_typed(k, g, b, a, n, s, false, line); }
template <class... P> inline cudaError_t cudaLaunchCooperativeKernel(void (*k)(P...), dim3 g, dim3 b, void** a, size_t n = 0, cudaStream_t s = nullptr, EMULATOR_LINE) { return (cudaError_t)::emulator::launch_typed(k, g, b, a, n, s, true, line); }
template <class... P, class... A> inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  bool cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id == cudaLaunchAttributeCooperative) cooperative = config->attrs[i].val.cooperative != 0;
    if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
    // A cluster changes where blocks run, and what a kernel may use; <cooperative_groups.h> has no clusters here, so it uses none.
    const auto& c = config->attrs[i].val.clusterDim;
    const dim3& g = config->gridDim;
    if (!c.x || !c.y || !c.z || c.x * c.y * c.z > 8 || g.x % c.x || g.y % c.y || g.z % c.z) return ::emulator::set_error(cudaErrorInvalidConfiguration);
  }
  auto all = std::tuple<P...>(std::forward<A>(arguments)...);
  auto body = [&] { std::apply(kernel, all); };
  const ::emulator::LaunchRequest request{__builtin_LINE(), "", config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream, cooperative,
                                          [](void* context) { (*static_cast<decltype(body)*>(context))(); }, &body};
  return (cudaError_t)::emulator::run(request);
}
#undef EMULATOR_LINE
