// Plays a case's tape and leaves the arrays as they are afterwards. Runs in the sandbox; holds nothing secret.
//
// The file `case` says which arrays there are, one line each: `in NAME BYTES ADDRESS` (its bytes are in NAME.in), `out NAME
// BYTES ADDRESS` and `scratch NAME BYTES ADDRESS` (filled with 0xff, which is NaN). With `decoy` the tape is played before
// with the inputs NAME.decoy, so that an answer kept from an earlier call shows, and after with the same inputs again. With
// `slice BLOCKS SEED` the check build watches some blocks of each launch, with `count` it leaves in `accesses` how they fall on
// memory. NAME.out holds every input and output after the call
// for which the case is, NAME.again what a repeated call wrote, and `ended` the CUDA error of a launch that was refused.
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "../runtime/check.h"
#include "../runtime/counting.h"
#include "../runtime/device_memory.h"
#include "../runtime/findings.h"

namespace emulator {

std::string replay(const Slice& slice);  // the error of a launch that was refused, or nothing

[[noreturn]] static void refuse(const std::string& text) {
  std::cerr << "player: " << text << "\n";
  std::exit(88);  // our own fault, not the submission's
}

struct Case {
  std::map<std::string, Array*> arrays;
  std::vector<std::string> inputs, outputs, scratch;
  Slice slice;
  bool decoy = false;
};

static void read_input(Array& array, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.read(array.data, (std::streamsize)array.size)) refuse("cannot read " + path);
  mark_written(array.data, array.size, true);
}

static Case read_case() {
  std::ifstream file("case");
  Case one;
  std::string what, name;
  size_t bytes = 0, address = 0;
  while (file >> what) {
    if (what == "decoy") {
      one.decoy = true;
    } else if (what == "slice") {
      file >> one.slice.blocks >> one.slice.seed;
    } else if (what == "count") {
#ifdef EMULATOR_CHECK
      counting = true;
#endif
    } else if (what == "in" || what == "out" || what == "scratch") {
      file >> name >> bytes >> address;
      (what == "in" ? one.inputs : what == "out" ? one.outputs : one.scratch).push_back(name);
      one.arrays[name] = new_array(bytes, name, address);
      if (!one.arrays[name]) refuse("no memory for " + name);
      one.arrays[name]->result = what == "out";
    } else {
      refuse("the case says " + what);
    }
  }
  return one;
}

static std::string call(const Case& one, const char* suffix) {
  for (const std::string& name : one.inputs) read_input(*one.arrays.at(name), name + suffix);
  for (const auto* names : {&one.outputs, &one.scratch})
    for (const std::string& name : *names) {
      Array& array = *one.arrays.at(name);
      memset(array.data, 0xff, array.size);
      mark_written(array.data, array.size, false);
    }
  return replay(one.slice);
}

static void write(const Array& array, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file.write(array.data, (std::streamsize)array.size)) refuse("cannot write " + path);
}

static int call_and_write() {
  install_handlers();
  this_worker();
  const Case one = read_case();
  if (one.decoy) call(one, ".decoy");
  const std::string error = call(one, ".in");
#ifdef EMULATOR_CHECK
  if (counting) write_counts("accesses");
#endif
  for (const auto* names : {&one.inputs, &one.outputs})
    for (const std::string& name : *names) write(*one.arrays.at(name), name + ".out");
  if (one.decoy) {
    call(one, ".in");
    for (const std::string& name : one.outputs) write(*one.arrays.at(name), name + ".again");
  }
  std::ofstream("ended") << error << "\n";
  fflush(stdout);
  return 0;
}

}  // namespace emulator

int main() { std::_Exit(emulator::call_and_write()); }
