// Kernel launches of every spelling, checked as the driver would check them, then written down.
#include "tape.h"

#include <cstring>

namespace recorder {

Kernel* kernelOf(const void* stub);

namespace {

int attribute(int which, int otherwise) {
    const auto found = job.attributes.find(which);
    return found == job.attributes.end() ? otherwise : found->second;
}

struct Extras {
    unsigned cluster[3] = {0, 0, 0};
    bool cooperative = false;
};

cudaError_t check(const Kernel& kernel, dim3 grid, dim3 block, std::size_t shared) {
    const std::uint64_t threads = std::uint64_t(block.x) * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads) return cudaErrorInvalidConfiguration;
    if (threads > 1024 || block.z > 64) return cudaErrorInvalidConfiguration;
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidConfiguration;
    if (threads > unsigned(kernel.max_threads)) return cudaErrorLaunchOutOfResources;
    if (shared > std::size_t(kernel.dynamic_shared_limit)) return cudaErrorInvalidValue;
    const int optin = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 48 * 1024);
    if (shared + kernel.static_shared > std::size_t(optin)) return cudaErrorInvalidValue;
    return cudaSuccess;
}

cudaError_t record(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t shared, cudaStream_t stream,
                   const Extras& extras, const char* call) {
    Kernel* kernel = kernelOf(function);
    if (!kernel) return remember(cudaErrorInvalidDeviceFunction);
    const cudaError_t error = check(*kernel, grid, block, shared);
    if (error) return remember(error);
    std::string bytes(kernel->parameterBytes(), '\0');
    for (std::size_t i = 0; i < kernel->parameters.size(); ++i) {
        const auto [offset, size] = kernel->parameters[i];
        std::memcpy(&bytes[offset], arguments[i], size);
    }
    const unsigned blocks[] = {grid.x, grid.y, grid.z}, threads[] = {block.x, block.y, block.z};
    std::string entry = "{\"op\":\"launch\",\"kernel\":" + quoted(kernel->name) + ",\"grid\":" + numbers(blocks, 3) +
                        ",\"block\":" + numbers(threads, 3) + ",\"shared\":" + std::to_string(shared) +
                        ",\"stream\":" + std::to_string(streamNumber(stream, call)) +
                        ",\"arguments\":" + quoted(hex(bytes.data(), bytes.size()));
    if (extras.cluster[0]) entry += ",\"cluster\":" + numbers(extras.cluster, 3);
    if (extras.cooperative) entry += ",\"cooperative\":true";
    line(entry + "}");
    return cudaSuccess;
}

}  // namespace
}  // namespace recorder

using namespace recorder;

extern "C" {

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                               cudaStream_t stream) {
    return record(kernel, grid, block, arguments, shared, stream, {}, "<<<>>>");
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                                    cudaStream_t stream) {
    return record(kernel, grid, block, arguments, shared, stream, {}, "<<<>>>");
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                             cudaStream_t stream) {
    return record(function, grid, block, arguments, shared, stream, {}, "cudaLaunchKernel");
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                                        cudaStream_t stream) {
    Extras extras;
    extras.cooperative = true;
    return record(function, grid, block, arguments, shared, stream, extras, "cudaLaunchCooperativeKernel");
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
    Extras extras;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const cudaLaunchAttribute& attribute = config->attrs[i];
        if (attribute.id == cudaLaunchAttributeClusterDimension) {
            extras.cluster[0] = attribute.val.clusterDim.x;
            extras.cluster[1] = attribute.val.clusterDim.y;
            extras.cluster[2] = attribute.val.clusterDim.z;
        } else if (attribute.id == cudaLaunchAttributeCooperative) {
            extras.cooperative = attribute.val.cooperative != 0;
        } else if (attribute.id == cudaLaunchAttributeProgrammaticEvent ||
                   attribute.id == cudaLaunchAttributeLaunchCompletionEvent) {
            violation("unrecordable_call", "cudaLaunchKernelExC", "a launch attribute that signals an event");
        }  // programmatic serialization, priorities and cache policies are hints: the replay is right without them
    }
    return record(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream, extras,
                  "cudaLaunchKernelExC");
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute which, int value) {
    Kernel* kernel = kernelOf(function);
    if (!kernel) return remember(cudaErrorInvalidDeviceFunction);
    if (which == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        const int most = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 48 * 1024) - kernel->static_shared;
        if (value < 0 || value > most) return remember(cudaErrorInvalidValue);
        kernel->dynamic_shared_limit = value;
    } else if (which == cudaFuncAttributePreferredSharedMemoryCarveout) {
        if (value < -1 || value > 100) return remember(cudaErrorInvalidValue);
    }
    line("{\"op\":\"attribute\",\"kernel\":" + quoted(kernel->name) + ",\"which\":" + std::to_string(which) +
         ",\"value\":" + std::to_string(value) + "}");
    return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
    return kernelOf(function) ? cudaSuccess : remember(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
    Kernel* kernel = kernelOf(function);
    if (!kernel) return remember(cudaErrorInvalidDeviceFunction);
    *attributes = {};
    attributes->sharedSizeBytes = kernel->static_shared;
    attributes->localSizeBytes = kernel->local_bytes;
    attributes->maxThreadsPerBlock = kernel->max_threads;
    attributes->numRegs = kernel->registers;
    attributes->maxDynamicSharedSizeBytes = kernel->dynamic_shared_limit;
    attributes->binaryVersion = attributes->ptxVersion =
        10 * attribute(cudaDevAttrComputeCapabilityMajor, 9) + attribute(cudaDevAttrComputeCapabilityMinor, 0);
    return cudaSuccess;
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
    Kernel* kernel = kernelOf(function);
    if (!kernel) return remember(cudaErrorInvalidDeviceFunction);
    *name = kernel->name.c_str();
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                                   std::size_t dynamic, unsigned) {
    Kernel* kernel = kernelOf(function);
    if (!kernel) return remember(cudaErrorInvalidDeviceFunction);
    if (threads < 1) return remember(cudaErrorInvalidValue);
    const int warps = (threads + 31) / 32;
    int most = attribute(cudaDevAttrMaxBlocksPerMultiprocessor, 32);
    most = std::min(most, attribute(cudaDevAttrMaxThreadsPerMultiProcessor, 2048) / (warps * 32));
    if (kernel->registers) {
        const int a_warp = (kernel->registers * 32 + 255) / 256 * 256;
        const int a_quarter = attribute(cudaDevAttrMaxRegistersPerMultiprocessor, 65536) / 4;
        most = std::min(most, a_quarter / a_warp * 4 / warps);
    }
    const int reserved = attribute(cudaDevAttrReservedSharedMemoryPerBlock, 1024);
    const int shared = (int(dynamic) + kernel->static_shared + reserved + 127) / 128 * 128;
    most = std::min(most, attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233472) / std::max(shared, 1));
    *blocks = threads > kernel->max_threads || dynamic > std::size_t(kernel->dynamic_shared_limit) ? 0 : most;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                          std::size_t dynamic) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function, int blocks, int) {
    Kernel* kernel = kernelOf(function);
    if (!kernel || blocks < 1) return remember(cudaErrorInvalidValue);
    const int each = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233472) / blocks / 128 * 128 -
                     attribute(cudaDevAttrReservedSharedMemoryPerBlock, 1024) - kernel->static_shared;
    *bytes = std::size_t(std::max(0, each));
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const cudaLaunchConfig_t*) {
    *size = 8;
    return kernelOf(function) ? cudaSuccess : remember(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
    int blocks = 0;
    const int threads = int(config->blockDim.x * config->blockDim.y * config->blockDim.z);
    const cudaError_t error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, config->dynamicSmemBytes);
    int size = 1;
    for (unsigned i = 0; i < config->numAttrs; ++i)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
            const auto& cluster = config->attrs[i].val.clusterDim;
            size = int(cluster.x * cluster.y * cluster.z);
        }
    *clusters = blocks * attribute(cudaDevAttrMultiProcessorCount, 1) / std::max(size, 1);
    return error;
}
}
