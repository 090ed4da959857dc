// TMA descriptors. The driver encodes them, and needs a context for it, which is not here: a seam gets a token of the same 128
// bytes, unlike any other, and its call goes on the tape. The replay has the driver encode the call's arguments, with the real
// address, and puts what comes out wherever the token stands in arguments and uploads.
#include <cuda.h>

#include <cstring>

#include "tape.h"

namespace recorder {
namespace {

constexpr unsigned MOST_RANK = 5;
constexpr std::uint64_t MARK = 0x70616d726f736e74ull;
std::uint64_t made = 0;

template <typename T>
std::string list(const T* values, unsigned count) {
    std::string text = "[";
    for (unsigned i = 0; i < count; ++i) text += (i ? "," : "") + std::to_string(values[i]);
    return text + "]";
}

std::string field(const char* name, unsigned value) { return std::string(",\"") + name + "\":" + std::to_string(value); }

CUresult encodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* sizes,
                     const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps,
                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                     CUtensorMapFloatOOBfill fill) {
    if (!map || rank < 1 || rank > MOST_RANK || !isDevice(address) || !sizes || !box || !steps || (rank > 1 && !strides))
        return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t token[sizeof(CUtensorMap) / sizeof(std::uint64_t)];
    ++made;
    for (std::size_t i = 0; i < sizeof token / sizeof *token; ++i) token[i] = MARK ^ (made << 8 | i);
    std::memcpy(map, token, sizeof token);
    line("{\"op\":\"descriptor\",\"token\":" + quoted(hex(token, sizeof token)) +
         ",\"address\":" + std::to_string(reinterpret_cast<std::uint64_t>(address)) + field("type", type) +
         ",\"sizes\":" + list(sizes, rank) + ",\"strides\":" + list(strides, rank - 1) + ",\"box\":" + list(box, rank) +
         ",\"steps\":" + list(steps, rank) + field("interleave", interleave) + field("swizzle", swizzle) +
         field("promotion", promotion) + field("fill", fill) + "}");
    return CUDA_SUCCESS;
}

cudaError_t entryPoint(const char* symbol, void** function, cudaDriverEntryPointQueryResult* found, const char* call) {
    if (!symbol || !function || std::strcmp(symbol, "cuTensorMapEncodeTiled") != 0)
        violation("driver_call", call, symbol ? symbol : "");
    *function = reinterpret_cast<void*>(&encodeTiled);
    if (found) *found = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

}  // namespace
}  // namespace recorder

using namespace recorder;

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
    return entryPoint(symbol, function, found, "cudaGetDriverEntryPointByVersion");
}
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* found) {
    return entryPoint(symbol, function, found, "cudaGetDriverEntryPoint");
}
}
