// __shared__ variables: each is a place in its block's arena, fenced on both sides and filled with NaN when a block starts.
#pragma once

namespace emulator {

struct SharedVariable {
  size_t size, alignment;
  const char* name;
  int line;
  long offset;  // in the arena; -1 until the first block that reaches it
};
void* shared_address(SharedVariable& variable);
void* dynamic_shared();

// `extern __shared__` at namespace scope: a per-worker pointer that is set whenever a block starts to run.
struct DynamicView {
  void (*set)(void*);
  DynamicView* next;
  explicit DynamicView(void (*setter)(void*));
};

// A variable in device memory that the submission declares at namespace scope.
struct Variable {
  const void* address;
  size_t size;
  const char* name;
  int line;
  bool constant;
  Variable* next;
  Variable(const void* address, size_t size, const char* name, int line, bool constant);
};

}  // namespace emulator

#define EMULATOR_SHARED(type, name)                                                                             \
  static ::emulator::SharedVariable name##_emulator_shared = {sizeof(type), alignof(type), #name, __LINE__, -1}; \
  type& name = *static_cast<type*>(::emulator::shared_address(name##_emulator_shared))
