// What the run found: one JSON object a line, in a file that the caller named. The first finding ends the run.
#pragma once
#include <string>

#include "scheduler.h"

namespace emulator {

// Where an access was: the thread, and the code as an address that is resolved to a line outside.
struct Site {
  bool known = false;
  uint3 block{}, thread{};
  const void* pc = nullptr;
  int line = 0;
  const char* kernel = nullptr;  // where it is not the one that runs
  std::vector<const void*> callers;  // of `pc`, the innermost first, where that may lie in the player's own code
};
Site here(const void* pc, int line);

// kind: a word from docs/emulator.md; text: a sentence without its place, which the site tells.
[[noreturn]] void found(const char* kind, const Site& site, const std::string& text);
[[noreturn]] void found(const char* kind, const Site& site, const std::string& text, const char* other_access, const Site& other);

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
std::string describe(const void* address, size_t size);  // which array that is, and how far outside it
void install_handlers();                                 // crashes become findings
void prepare_thread();                                   // an alternate stack for the handlers: once for each worker
std::vector<const void*> callers_of_waiting(const Fibre& fibre);  // of one that has given way
uint3 thread_of(unsigned linear);
uint3 block_of(size_t number);

}  // namespace emulator
