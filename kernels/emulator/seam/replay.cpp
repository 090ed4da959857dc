// What a submission's host code asked for when it was recorded: does what the tape says, in its order.
//
// The file `tape` holds one piece of work a line: `variable NAME ADDRESS BYTES` (what stands for a variable's address),
// `launch KERNEL GRID×3 BLOCK×3 SHARED COOPERATIVE ARGUMENTS [CLUSTER×3]`, `fill TO VALUE BYTES`, `copy TO FROM BYTES`, `upload TO DATA`.
// Arguments and data are hexadecimal, `-` for none.
#include <cstdio>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../runtime/check.h"
#include "../runtime/device_memory.h"
#include "../runtime/findings.h"
#include "ptx/module.h"

namespace emulator {

struct StandIn {
  uint64_t start, size;
  char* real;
};
static std::vector<StandIn> stand_ins;
alignas(64) static unsigned char arguments_of_launch[32 << 10];  // static: the check build leaves the program's own data alone

[[noreturn]] static void damaged(const std::string& what) {
  fprintf(stderr, "replay: %s\n", what.c_str());
  _exit(87);
}

static uint64_t real(uint64_t address) {
  for (const StandIn& each : stand_ins)
    if (address >= each.start && address - each.start < each.size) return (uint64_t)each.real + (address - each.start);
  return address;
}
static char* place(uint64_t address, size_t size) {
  char* at = (char*)real(address);
  if (!device_range(at, size)) damaged("a piece of work lies in no array");
  return at;
}

static std::string from_hex(const std::string& text) {
  std::string out;
  if (text == "-") return out;
  for (size_t i = 0; i + 1 < text.size(); i += 2) out += (char)std::stoul(text.substr(i, 2), nullptr, 16);
  return out;
}

static const char* start(std::istream& line, const Slice& slice, bool last) {
  std::string name, hex;
  dim3 grid, block, cluster(0, 0, 0);
  size_t shared = 0;
  bool cooperative = false;
  line >> name >> grid.x >> grid.y >> grid.z >> block.x >> block.y >> block.z >> shared >> cooperative >> hex;
  line >> cluster.x >> cluster.y >> cluster.z;  // only where the launch states one
  const ptx::Kernel* kernel = ptx::kernel(name.c_str());
  const std::string given = from_hex(hex);
  if (!kernel || given.size() > sizeof arguments_of_launch) damaged("a launch names a kernel that is not there");
  memset(arguments_of_launch, 0, sizeof arguments_of_launch);
  memcpy(arguments_of_launch, given.data(), given.size());
  for (size_t at = 0; at + 8 <= given.size(); at += 8) {
    uint64_t word;
    memcpy(&word, arguments_of_launch + at, 8);
    word = real(word);
    memcpy(arguments_of_launch + at, &word, 8);
  }
  if (!cluster.x) cluster = kernel->cluster.x ? kernel->cluster : dim3(1, 1, 1);
  return run(LaunchRequest{kernel->shown, grid, block, shared, cooperative, kernel->run, arguments_of_launch, cluster, slice, last});
}

static void change(const std::string& what, std::istream& line) {
  uint64_t to = 0, from = 0;
  size_t size = 0;
  int value = 0;
  std::string hex;
  if (what == "fill") {
    line >> to >> value >> size;
    memset(place(to, size), value, size);
  } else if (what == "copy") {
    line >> to >> from >> size;
    memmove(place(to, size), place(from, size), size);
  } else if (what == "upload") {
    line >> to >> hex;
    const std::string data = from_hex(hex);
    size = data.size();
    memcpy(place(to, size), data.data(), size);
  } else {
    damaged("the tape says " + what);
  }
  mark_written((char*)real(to), size, true);
}

static void name_variable(std::istream& line) {
  StandIn each;
  std::string name;
  line >> name >> each.start >> each.size;
  const ptx::Global* known = ptx::global(name.c_str());
  if (!known || known->size < each.size) damaged("the tape names a variable that is not there");
  each.real = (char*)known->address;
  stand_ins.push_back(each);
}

static std::vector<std::string> lines_of_tape(size_t& last_launch) {
  std::ifstream tape("tape");
  std::vector<std::string> lines;
  for (std::string text; std::getline(tape, text);) {
    if (!text.compare(0, 7, "launch ")) last_launch = lines.size();
    lines.push_back(text);
  }
  return lines;
}

std::string replay(const Slice& slice) {
  size_t last_launch = 0;
  const std::vector<std::string> lines = lines_of_tape(last_launch);
  std::string what;
  stand_ins.clear();
  for (size_t at = 0; at < lines.size(); ++at) {
    std::istringstream line(lines[at]);
    line >> what;
    if (what == "variable") {
      name_variable(line);
    } else if (what != "launch") {
      change(what, line);
    } else if (const char* error = start(line, slice, at == last_launch)) {
      return error;
    }
  }
  return "";
}

}  // namespace emulator
