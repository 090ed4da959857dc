// recorder JOB: loads the submission's library once and runs its seam once per case, each in a process of its own, so that
// nothing a case leaves behind (a `static bool ready`, a cached pointer) reaches the next case's tape.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>

#include "tape.h"

namespace recorder {
namespace {

using Open = void* (*)(const char*, int);

// The C library's own dlopen: this program exports one of its own, for the submission to meet.
void* openLibrary(const char* path, int mode) { return reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"))(path, mode); }

[[noreturn]] void unreadable(const std::string& line) {
    std::fprintf(stderr, "recorder: job line not understood: %s\n", line.c_str());
    std::exit(126);
}

void readKernel(std::istringstream& words) {
    Kernel kernel;
    std::string parameter;
    words >> kernel.name >> kernel.registers >> kernel.static_shared >> kernel.local_bytes >> kernel.max_threads;
    while (words >> parameter) {
        int offset = 0, size = 0;
        if (std::sscanf(parameter.c_str(), "%d:%d", &offset, &size) != 2) unreadable(parameter);
        kernel.parameters.emplace_back(offset, size);
    }
    job.kernels[kernel.name] = kernel;
}

constexpr std::size_t MOST_INTEGERS = 16, MOST_FLOATS = 8;

void readCase(std::istringstream& words) {
    Case one;
    std::string value;
    words >> one.label;
    while (words >> value) {
        if (value == "stream") one.integers.push_back(reinterpret_cast<std::uint64_t>(givenStream()));
        else if (value[0] == 'w') one.workspace = std::strtoull(value.c_str() + 1, nullptr, 10);
        else if (value[0] == 'f') one.floats.push_back(std::strtof(value.c_str() + 1, nullptr));
        else one.integers.push_back(std::strtoull(value.c_str(), nullptr, 10));
    }
    if (one.integers.size() > MOST_INTEGERS || one.floats.size() > MOST_FLOATS) unreadable(one.label);
    job.cases.push_back(one);
}

void readJob(const char* path) {
    std::ifstream file(path);
    std::string text, key;
    while (std::getline(file, text)) {
        std::istringstream words(text);
        words >> key;
        if (key == "library") words >> job.library;
        else if (key == "seam") words >> job.seam;
        else if (key == "workspace") words >> job.workspace;
        else if (key == "memory") words >> job.memory;
        else if (key == "device") std::getline(words >> std::ws, job.device_name);
        else if (key == "kernel") readKernel(words);
        else if (key == "case") readCase(words);
        else if (key == "attribute") {
            int which = 0, value = 0;
            words >> which >> value;
            job.attributes[which] = value;
        } else unreadable(text);
    }
}

using U = std::uint64_t;
using Seam = void (*)(U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, float, float, float, float, float, float, float, float);

// Integers and pointers travel in one set of registers, and behind those on the stack, floats in another set: one call fits every
// seam of up to 16 + 8. What a seam does not take it does not look at.
[[noreturn]] void runCase(Seam seam, const Case& one) {
    open(one.label + ".tape");
    U i[MOST_INTEGERS] = {};
    float f[MOST_FLOATS] = {};
    workspace_at = one.workspace;
    std::copy(one.integers.begin(), one.integers.end(), i);
    std::copy(one.floats.begin(), one.floats.end(), f);
    for (const Variable* variable : variables())
        line("{\"op\":\"variable\",\"name\":" + quoted(variable->name) + ",\"bytes\":" + std::to_string(variable->size) +
             ",\"address\":" + std::to_string(variable->address) + "}");
    try {
        seam(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13], i[14], i[15], f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]);
    } catch (const std::exception& error) {
        failed("exception", error.what());
    } catch (...) {
        failed("exception", "not a std::exception");
    }
    const cudaError_t error = cudaPeekAtLastError();
    if (error) line("{\"op\":\"last_error\",\"name\":" + quoted(cudaGetErrorName(error)) + "}");
    line("{\"op\":\"end\"}");
    close();
    std::fflush(nullptr);
    _exit(0);
}

}  // namespace
}  // namespace recorder

using namespace recorder;

extern "C" void* dlopen(const char* path, int) {
    violation("forbidden_call", "dlopen", path ? path : "the program itself");
}

int main(int count, char** words) {
    if (count != 2) unreadable("usage: recorder JOB");
    readJob(words[1]);
    open("load.tape");
    void* library = openLibrary(job.library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) failed("load", dlerror());
    const Seam seam = reinterpret_cast<Seam>(dlsym(library, job.seam.c_str()));
    if (!seam) failed("missing_function", job.seam);
    line("{\"op\":\"end\"}");
    close();
    int failures = 0;
    for (const Case& one : job.cases) {  // all of them, whatever becomes of one: they come in no order that means anything
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child == 0) runCase(seam, one);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) return 124;
        std::ofstream ended("ended.txt", std::ios::app);
        ended << one.label << (WIFSIGNALED(status) ? " signal " : " exit ")
              << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)) << '\n';
        if (status) ++failures;
    }
    return failures != 0;
}
