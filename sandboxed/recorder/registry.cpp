// What nvcc's own start-up code registers: kernels by the address of their host stub, and __device__ variables.
#include "tape.h"

#include <cstring>

namespace recorder {
namespace {
std::map<const void*, Kernel*> stubs;
std::map<const void*, Variable> symbols;
std::vector<Variable*> in_order;
std::uint64_t next_symbol = 0x5a0000000000ull;
std::vector<Kernel*> handed_out;

struct Configuration {
    dim3 grid, block;
    std::size_t shared;
    cudaStream_t stream;
};
std::vector<Configuration> configurations;
}  // namespace

Kernel* kernelOf(const void* stub) {
    const auto found = stubs.find(stub);
    if (found != stubs.end()) return found->second;
    for (Kernel* kernel : handed_out)
        if (kernel == stub) return kernel;
    return nullptr;
}

Variable* variableOf(const void* host_symbol) {
    const auto found = symbols.find(host_symbol);
    return found == symbols.end() ? nullptr : &found->second;
}

const std::vector<Variable*>& variables() { return in_order; }

}  // namespace recorder

using namespace recorder;

extern "C" {

void** __cudaRegisterFatBinary(void*) {
    static void* handle;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaInitModule(void**) {}

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, void*, void*, void*, void*, int*) {
    Kernel& kernel = job.kernels[name];
    kernel.name = name;
    stubs[stub] = &kernel;
    handed_out.push_back(&kernel);
}

void __cudaRegisterVar(void**, char* symbol, char*, const char* name, int, std::size_t size, int, int) {
    Variable& variable = symbols[symbol];
    variable.name = name;
    variable.size = size;
    variable.address = next_symbol;
    next_symbol += (size + 0xffff) / 0x10000 * 0x10000 + 0x10000;
    in_order.push_back(&variable);
}

void __cudaRegisterManagedVar(void**, void**, char*, const char* name, int, std::size_t size, int, int) {
    violation("managed_memory", "__managed__", name, size);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
    configurations.push_back({grid, block, shared, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
    if (configurations.empty()) return remember(cudaErrorMissingConfiguration);
    const Configuration last = configurations.back();
    configurations.pop_back();
    *grid = last.grid;
    *block = last.block;
    *shared = last.shared;
    std::memcpy(stream, &last.stream, sizeof last.stream);
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
    *kernel = reinterpret_cast<cudaKernel_t>(kernelOf(stub));
    return *kernel ? cudaSuccess : remember(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
    Variable* variable = variableOf(symbol);
    if (!variable) return remember(cudaErrorInvalidSymbol);
    *address = reinterpret_cast<void*>(variable->address);
    return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(std::size_t* size, const void* symbol) {
    Variable* variable = variableOf(symbol);
    if (!variable) return remember(cudaErrorInvalidSymbol);
    *size = variable->size;
    return cudaSuccess;
}
}
