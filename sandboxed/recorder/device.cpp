// What the target GPU is, answered from the numbers that the judge passes; and the error that the last call left.
#include "tape.h"

#include <cstring>

namespace recorder {
namespace {
cudaError_t last = cudaSuccess;

int attribute(int which) {
    const auto found = job.attributes.find(which);
    return found == job.attributes.end() ? 0 : found->second;
}
}  // namespace

cudaError_t remember(cudaError_t error) {
    if (error) last = error;
    return error;
}
}  // namespace recorder

using namespace recorder;

extern "C" {

cudaError_t cudaGetLastError() {
    const cudaError_t error = last;
    last = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError() { return last; }

const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "cudaSuccess";
        case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
        case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
        case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
        case cudaErrorInvalidSymbol: return "cudaErrorInvalidSymbol";
        case cudaErrorInvalidDeviceFunction: return "cudaErrorInvalidDeviceFunction";
        case cudaErrorMissingConfiguration: return "cudaErrorMissingConfiguration";
        case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
        case cudaErrorLaunchOutOfResources: return "cudaErrorLaunchOutOfResources";
        case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
        case cudaErrorNotSupported: return "cudaErrorNotSupported";
        default: return "cudaErrorUnknown";
    }
}
const char* cudaGetErrorString(cudaError_t error) { return error ? cudaGetErrorName(error) : "no error"; }

cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return device ? remember(cudaErrorInvalidDevice) : cudaSuccess; }
cudaError_t cudaInitDevice(int, unsigned, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) { return cudaSuccess; }
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit) { return *value = 0, cudaSuccess; }
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDeviceReset() { violation("unrecordable_call", "cudaDeviceReset", "the device is the judge's"); }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
    if (device) return remember(cudaErrorInvalidDevice);
    *value = attribute(which);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (device) return remember(cudaErrorInvalidDevice);
    *properties = {};
    std::strncpy(properties->name, job.device_name.c_str(), sizeof properties->name - 1);
    properties->totalGlobalMem = job.memory;
    properties->sharedMemPerBlock = attribute(cudaDevAttrMaxSharedMemoryPerBlock);
    properties->sharedMemPerBlockOptin = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    properties->sharedMemPerMultiprocessor = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    properties->reservedSharedMemPerBlock = attribute(cudaDevAttrReservedSharedMemoryPerBlock);
    properties->regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
    properties->regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
    properties->maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    properties->maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 0x7fffffff;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->totalConstMem = attribute(cudaDevAttrTotalConstantMemory);
    properties->multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
    properties->major = attribute(cudaDevAttrComputeCapabilityMajor);
    properties->minor = attribute(cudaDevAttrComputeCapabilityMinor);
    properties->l2CacheSize = attribute(cudaDevAttrL2CacheSize);
    properties->persistingL2CacheMaxSize = attribute(cudaDevAttrMaxPersistingL2CacheSize);
    properties->memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
    properties->concurrentKernels = attribute(cudaDevAttrConcurrentKernels);
    properties->asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
    properties->cooperativeLaunch = attribute(cudaDevAttrCooperativeLaunch);
    properties->unifiedAddressing = 1;
    return cudaSuccess;
}
}
