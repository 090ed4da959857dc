// Calls a submission's seam once and leaves the arrays as they are afterwards. Runs in the sandbox; holds nothing secret.
//
// The file `case` says what the seam gets, one line each: `workspace BYTES`, `static BYTES` (what its variables may take),
// `in NAME BYTES ADDRESS` (its bytes are in NAME.in; address 0: anywhere), `out NAME BYTES ADDRESS` (filled with 0xff, which is
// NaN), `value NAME NUMBER`. With
// `decoy` the seam is called before with the inputs NAME.decoy, so that an answer kept from an earlier call shows, and after
// with the same inputs again. NAME.out holds every array after the call for which the case is, NAME.again what a repeated
// call wrote, and `ended` how many kernels were launched and the CUDA error that was left.
#include "host.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

#include "../runtime/check.h"
#include "../runtime/device_memory.h"
#include "../runtime/findings.h"
#include "../runtime/host_state.h"

namespace emulator {

[[noreturn]] static void refuse(const std::string& text) {
  std::cerr << "seam host: " << text << "\n";
  std::exit(87);  // our own fault, not the submission's: the caller takes it so
}

void* Arguments::array(const char* name) const {
  const auto known = arrays.find(name);
  if (known == arrays.end()) refuse(std::string("the case has no array ") + name);
  return known->second->data;
}
double Arguments::number(const char* name) const {
  const auto known = values.find(name);
  if (known == values.end()) refuse(std::string("the case has no value ") + name);
  return known->second;
}
cudaStream_t Arguments::stream() const { return seam_stream(); }

struct CaseFile {
  size_t workspace = 0, static_limit = ~(size_t)0;
  bool decoy = false;
  std::vector<std::string> inputs, outputs;
};

static void read_input(Array& array, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.read(array.data, (std::streamsize)array.size)) refuse("cannot read " + path);
  mark_written(array.data, array.size, true);
}

static CaseFile read_case(Arguments& arguments) {
  std::ifstream file("case");
  CaseFile one;
  std::string what, name;
  size_t bytes = 0, address = 0;
  while (file >> what) {
    if (what == "workspace") {
      file >> one.workspace;
    } else if (what == "static") {
      file >> one.static_limit;
    } else if (what == "decoy") {
      one.decoy = true;
    } else if (what == "value") {
      file >> name;
      file >> arguments.values[name];
    } else if (what == "in" || what == "out") {
      file >> name >> bytes >> address;
      (what == "in" ? one.inputs : one.outputs).push_back(name);
      arguments.arrays[name] = new_array(bytes, name, false, address);
      if (!arguments.arrays[name]) refuse("no memory for " + name);
    } else {
      refuse("the case says " + what);
    }
  }
  return one;
}

static void check_static(size_t limit) {
  size_t total = 0;
  for (const Variable* v = first_variable(); v; v = v->next) total += v->size;
  if (total > limit) found("static_memory", Site(), format("%zu", total));
}

static void call(const CaseFile& one, const Arguments& arguments, const char* suffix) {
  for (const std::string& name : one.inputs) read_input(*arguments.arrays.at(name), name + suffix);
  for (const std::string& name : one.outputs) {
    Array& array = *arguments.arrays.at(name);
    memset(array.data, 0xff, array.size);
    mark_written(array.data, array.size, false);
  }
  const pid_t self = getpid();
  begin_seam(one.workspace);
  try {
    emulator_call_seam(arguments);
  } catch (const std::exception& error) {
    found("exception", Site(), error.what());
  } catch (...) {
    found("exception", Site(), "of a type that is no std::exception");
  }
  if (getpid() != self) std::_Exit(0);  // the seam forked: the answer is the parent's, and two would write into one file
  end_seam();
  verify_margins();
}

static void write(const Array& array, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file.write(array.data, (std::streamsize)array.size)) refuse("cannot write " + path);
}

static int call_and_write() {
  install_handlers();
  this_worker();
  Arguments arguments;
  const CaseFile one = read_case(arguments);
  check_static(one.static_limit);
  if (one.decoy) call(one, arguments, ".decoy");
  call(one, arguments, ".in");
  const cudaError_t error = cudaGetLastError();
  const unsigned long launched = launch_count();
  for (const auto& entry : arguments.arrays) write(*entry.second, entry.first + ".out");
  if (one.decoy) {
    call(one, arguments, ".in");
    for (const std::string& name : one.outputs) write(*arguments.arrays.at(name), name + ".again");
  }
  std::ofstream("ended") << launched << " " << (error == cudaSuccess ? "" : cudaGetErrorName(error)) << "\n";
  fflush(stdout);
  return 0;
}

}  // namespace emulator

int main() { std::_Exit(emulator::call_and_write()); }
