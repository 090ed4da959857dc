// __shared__ variables: each is a place in its block's arena, fenced on both sides and filled with NaN when a block starts.
#pragma once

namespace emulator {

struct SharedVariable {
  size_t size, alignment;
  const char* name;
  long offset;  // in the arena; -1 until the first block that reaches it
};
void* shared_address(SharedVariable& variable);

// A variable in device memory that the submission declares at namespace scope.
struct Variable {
  const void* address;
  size_t size;
  const char* name;
  bool constant;
  Variable* next;
  Variable(const void* address, size_t size, const char* name, bool constant);
};

}  // namespace emulator
