// Calls a submission's seam once and leaves the arrays as they are afterwards. Runs in the sandbox; holds nothing secret.
//
// The file `case` says what the seam gets, one line each: `workspace BYTES`, `in NAME BYTES` (its bytes are in NAME.in),
// `out NAME BYTES` (filled with 0xff, which is NaN), `value NAME NUMBER`. After the call NAME.out holds every array.
#include "host.h"

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

static void read_input(Array& array, const std::string& name) {
  std::ifstream file(name + ".in", std::ios::binary);
  if (!file.read(array.data, (std::streamsize)array.size)) refuse("cannot read " + name + ".in");
  mark_written(array.data, array.size, true);
}

static size_t read_case(Arguments& arguments) {
  std::ifstream file("case");
  std::string what, name;
  size_t workspace = 0, bytes = 0;
  while (file >> what) {
    if (what == "workspace") {
      file >> workspace;
    } else if (what == "value") {
      file >> name >> arguments.values[name];
    } else if (what == "in" || what == "out") {
      file >> name >> bytes;
      Array* array = new_array(bytes, name, false);
      if (!array) refuse("no memory for " + name);
      if (what == "in") read_input(*array, name);
      arguments.arrays[name] = array;
    } else {
      refuse("the case says " + what);
    }
  }
  return workspace;
}

static int call_and_write() {
  install_handlers();
  this_worker();
  Arguments arguments;
  const size_t workspace = read_case(arguments);
  begin_seam(workspace);
  emulator_call_seam(arguments);
  end_seam();
  const cudaError_t error = cudaGetLastError();
  verify_margins();
  for (const auto& entry : arguments.arrays) {
    std::ofstream file(entry.first + ".out", std::ios::binary);
    if (!file.write(entry.second->data, (std::streamsize)entry.second->size)) refuse("cannot write " + entry.first + ".out");
  }
  std::ofstream("ended") << (error == cudaSuccess ? "ok" : cudaGetErrorName(error)) << " " << cudaGetErrorString(error) << "\n";
  fflush(stdout);
  return 0;
}

}  // namespace emulator

int main() { std::_Exit(emulator::call_and_write()); }
