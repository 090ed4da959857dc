// Device memory: fills, copies, symbols, and the workspace arena.
#include "tape.h"

#include <cstring>

namespace recorder {

std::uint64_t workspace_at = 0;

namespace {

std::uint64_t workspace_used = 0;

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

std::string common(const char* op, cudaStream_t stream, const char* call) {
    return std::string("{\"op\":\"") + op + "\",\"stream\":" + std::to_string(streamNumber(stream, call));
}

cudaError_t fill(void* to, int value, std::size_t bytes, cudaStream_t stream, const char* call) {
    if (!isDevice(to)) return remember(cudaErrorInvalidValue);
    if (bytes)
        line(common("fill", stream, call) + ",\"to\":" + std::to_string(number(to)) +
             ",\"value\":" + std::to_string(value & 255) + ",\"bytes\":" + std::to_string(bytes) + "}");
    return cudaSuccess;
}

cudaError_t upload(std::uint64_t to, const void* from, std::size_t bytes, cudaStream_t stream, const char* call) {
    if (bytes > job.upload_limit) violation("upload_too_large", call, "host data copied to the device", bytes);
    if (bytes)
        line(common("upload", stream, call) + ",\"to\":" + std::to_string(to) + ",\"data\":" + quoted(hex(from, bytes)) + "}");
    return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                 const char* call) {
    const bool to_device = kind == cudaMemcpyDefault ? isDevice(to) : kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyHostToHost;
    const bool from_device = kind == cudaMemcpyDefault ? isDevice(from) : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (from_device && !to_device) violation("unrecordable_call", call, "a copy from the device to the host", bytes);
    if (!from_device && !to_device) {
        std::memmove(to, from, bytes);
        return cudaSuccess;
    }
    if (!isDevice(to) || (from_device && !isDevice(from))) return remember(cudaErrorInvalidValue);
    if (!from_device) return upload(number(to), from, bytes, stream, call);
    if (bytes)
        line(common("copy", stream, call) + ",\"to\":" + std::to_string(number(to)) +
             ",\"from\":" + std::to_string(number(from)) + ",\"bytes\":" + std::to_string(bytes) + "}");
    return cudaSuccess;
}

cudaError_t copyRows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                     std::size_t height, cudaMemcpyKind kind, cudaStream_t stream, const char* call) {
    for (std::size_t row = 0; row < height; ++row) {
        const cudaError_t error = copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
                                       width, kind, stream, call);
        if (error) return error;
    }
    return cudaSuccess;
}

cudaError_t allocate(void** pointer, std::size_t bytes, const char* call) {
    if (!workspace_at || bytes > job.workspace || workspace_used > job.workspace - bytes)
        violation("workspace", call, "", bytes);
    *pointer = reinterpret_cast<void*>(workspace_at + workspace_used);
    workspace_used += (bytes + 255) / 256 * 256;
    return cudaSuccess;
}

cudaError_t toSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                     cudaStream_t stream, const char* call) {
    Variable* variable = variableOf(symbol);
    if (!variable) return remember(cudaErrorInvalidSymbol);
    if (offset + bytes > variable->size) return remember(cudaErrorInvalidValue);
    return copy(reinterpret_cast<void*>(variable->address + offset), from, bytes, kind, stream, call);
}

}  // namespace

bool isDevice(const void* pointer) {
    const std::uint64_t address = number(pointer);
    return address >= 0x5a0000000000ull && address < 0x700000000000ull;
}

}  // namespace recorder

using namespace recorder;

extern "C" {

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) { return fill(to, value, bytes, nullptr, "cudaMemset"); }
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
    return fill(to, value, bytes, stream, "cudaMemsetAsync");
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                              cudaStream_t stream) {
    for (std::size_t row = 0; row < height; ++row)
        if (cudaError_t error = fill(static_cast<char*>(to) + row * pitch, value, width, stream, "cudaMemset2DAsync"))
            return error;
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return copy(to, from, bytes, kind, nullptr, "cudaMemcpy");
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy(to, from, bytes, kind, stream, "cudaMemcpyAsync");
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t height, cudaMemcpyKind kind) {
    return copyRows(to, to_pitch, from, from_pitch, width, height, kind, nullptr, "cudaMemcpy2D");
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                              std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return copyRows(to, to_pitch, from, from_pitch, width, height, kind, stream, "cudaMemcpy2DAsync");
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                               cudaMemcpyKind kind) {
    return toSymbol(symbol, from, bytes, offset, kind, nullptr, "cudaMemcpyToSymbol");
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
    return toSymbol(symbol, from, bytes, offset, kind, stream, "cudaMemcpyToSymbolAsync");
}
cudaError_t cudaMemcpyFromSymbol(void*, const void*, std::size_t bytes, std::size_t, cudaMemcpyKind) {
    violation("unrecordable_call", "cudaMemcpyFromSymbol", "a copy from the device to the host", bytes);
}
cudaError_t cudaMemcpyFromSymbolAsync(void*, const void*, std::size_t bytes, std::size_t, cudaMemcpyKind, cudaStream_t) {
    violation("unrecordable_call", "cudaMemcpyFromSymbolAsync", "a copy from the device to the host", bytes);
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) { return allocate(pointer, bytes, "cudaMalloc"); }
cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t) {
    return allocate(pointer, bytes, "cudaMallocAsync");
}
cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
    *pitch = (width + 511) / 512 * 512;
    return allocate(pointer, *pitch * height, "cudaMallocPitch");
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t, cudaStream_t) {
    return allocate(pointer, bytes, "cudaMallocFromPoolAsync");
}
cudaError_t cudaMallocManaged(void**, std::size_t bytes, unsigned) {
    violation("managed_memory", "cudaMallocManaged", "", bytes);
}
cudaError_t cudaMallocHost(void**, std::size_t bytes) { violation("unrecordable_call", "cudaMallocHost", "pinned memory", bytes); }
cudaError_t cudaHostAlloc(void**, std::size_t bytes, unsigned) {
    violation("unrecordable_call", "cudaHostAlloc", "pinned memory", bytes);
}
cudaError_t cudaHostRegister(void*, std::size_t bytes, unsigned) {
    violation("unrecordable_call", "cudaHostRegister", "pinned memory", bytes);
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaFreeAsync(void*, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaFreeHost(void*) { return cudaSuccess; }

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    *free = *total = job.memory;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    *attributes = {};
    attributes->type = isDevice(pointer) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    attributes->devicePointer = isDevice(pointer) ? const_cast<void*>(pointer) : nullptr;
    attributes->hostPointer = isDevice(pointer) ? nullptr : const_cast<void*>(pointer);
    return cudaSuccess;
}
}
