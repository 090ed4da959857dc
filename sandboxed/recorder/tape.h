// The tape: what a seam asked of the GPU, as JSON, one object a line. See docs/tape.md for every line's fields.
//
// Theory of operation. The submission's host code runs in this process, on a machine without a GPU, and this library answers
// it in libcudart's place. Nothing here is a defence: submitted code shares the address space and can write what it likes on
// the tape. The tape is only ever *replayed*, and what counts are the values that come out of the replay, so a forged tape is
// just another submission. The trusted reader checks the tape's form and bounds.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace recorder {

struct Kernel {
    std::string name;
    int registers = 0;
    int static_shared = 0;
    int local_bytes = 0;
    int max_threads = 1024;
    int dynamic_shared_limit = 48 * 1024;
    std::vector<std::pair<int, int>> parameters;  // offset, size

    int parameterBytes() const;
};

struct Variable {
    std::string name;
    std::size_t size = 0;
    std::uint64_t address = 0;  // a stand-in; the replay puts the real address where it stands in arguments
};

struct Case {
    std::string label;
    std::vector<std::uint64_t> integers;
    std::vector<float> floats;
    std::uint64_t workspace = 0;  // where this case's lies on the device; 0: the stage has none
};

struct Job {
    std::string library, seam;
    std::size_t workspace = 0, upload_limit = 1 << 20;
    std::map<std::string, Kernel> kernels;
    std::map<int, int> attributes;
    std::string device_name = "GPU";
    std::uint64_t memory = 0;
    std::vector<Case> cases;
};

extern Job job;
extern std::uint64_t workspace_at;  // of the case that is being recorded; 0 while the library loads

// Starts an empty tape that close() writes to `path`.
void open(const std::string& path);
void line(const std::string& json);
void close();
// Ends the recording with a contract violation: the call, and a number where it has one. Does not return.
[[noreturn]] void violation(const char* reason, const char* call, const std::string& detail = "", std::uint64_t bytes = 0);
[[noreturn]] void failed(const char* kind, const std::string& what);

std::string quoted(const std::string& text);
std::string hex(const void* data, std::size_t bytes);
std::string numbers(const unsigned* values, int count);

// Streams: 0 is the default stream, 1 the one given to the seam, 2 and up the seam's own.
int streamNumber(cudaStream_t stream, const char* call);
cudaStream_t givenStream();
bool isDevice(const void* pointer);
Variable* variableOf(const void* host_symbol);
const std::vector<Variable*>& variables();

cudaError_t remember(cudaError_t error);  // for cudaGetLastError

}  // namespace recorder
