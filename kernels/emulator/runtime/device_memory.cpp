#include "device_memory.h"

#include <sys/mman.h>

#include <map>
#include <mutex>

#include "check.h"
#include "findings.h"

namespace emulator {

static const size_t kGuardPage = 4096, kAlignment = 256;
static const unsigned char kMargin = 0xee;
static std::mutex arrays_lock;
static std::map<uintptr_t, Array*>& arrays() {
  static auto* all = new std::map<uintptr_t, Array*>;
  return *all;
}
static Variable* variables;

Variable::Variable(const void* address_, size_t size_, const char* name_, bool constant_)
    : address(address_), size(size_), name(name_), constant(constant_), next(variables) { variables = this; }

Array* new_array(size_t size, const std::string& name, uintptr_t wanted) {
  const size_t body = (size + kGuardPage - 1 + kAlignment) / kGuardPage * kGuardPage;
  const size_t room = (size + kAlignment - 1) / kAlignment * kAlignment;
  void* hint = wanted ? (void*)(wanted + room - body - kGuardPage) : nullptr;
  char* mapping = (char*)mmap(hint, body + 2 * kGuardPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED || (hint && mapping != hint)) return nullptr;
  if (mprotect(mapping + kGuardPage, body, PROT_READ | PROT_WRITE)) {
    munmap(mapping, body + 2 * kGuardPage);
    return nullptr;
  }
  char* end = mapping + kGuardPage + body;
  char* data = end - room;
  memset(mapping + kGuardPage, kMargin, body);
  memset(data, 0xff, size);  // NaN, or the largest unsigned: what was never written is seen in the results
  auto* array = new Array{data, size, mapping, body + 2 * kGuardPage, name, nullptr, false};
  std::lock_guard<std::mutex> guard(arrays_lock);
  arrays()[(uintptr_t)mapping] = array;
  return array;
}

Array* array_at(const void* address) {
  std::lock_guard<std::mutex> guard(arrays_lock);
  auto after = arrays().upper_bound((uintptr_t)address);
  if (after == arrays().begin()) return nullptr;
  Array* array = (--after)->second;
  return (const char*)address < array->mapping + array->mapping_size ? array : nullptr;
}

const Variable* variable_at(const void* address) {
  for (const Variable* v = variables; v; v = v->next)
    if ((const char*)address >= (const char*)v->address && (const char*)address < (const char*)v->address + v->size) return v;
  return nullptr;
}

bool device_range(const void* address, size_t size) {
  if (const Array* array = array_at(address))
    return (const char*)address >= array->data && (const char*)address + size <= array->data + array->size;
  const Variable* variable = variable_at(address);
  return variable && (const char*)address + size <= (const char*)variable->address + variable->size;
}

bool in_global(const void* address) { return device_range(address, 1); }

void verify_margins() {
#ifndef EMULATOR_CHECK  // which sees the access itself
  std::lock_guard<std::mutex> guard(arrays_lock);
  for (const auto& entry : arrays()) {
    const Array& array = *entry.second;
    const char* end = array.mapping + array.mapping_size - kGuardPage;
    for (const char* p = array.mapping + kGuardPage; p < end; p = p + 1 == array.data ? array.data + array.size : p + 1)
      if (p < array.data || p >= array.data + array.size) {
        if ((unsigned char)*p == kMargin) continue;
        found("out_of_bounds", Site(), format("a kernel wrote %s %s, an array of %zu bytes", p < array.data ? "before the start of" : "past the end of", array.name.c_str(), array.size));
      }
  }
#endif
}

std::string describe(const void* address, size_t size) {
  if (Array* array = array_at(address)) {
    const long offset = (long)((const char*)address - array->data);
    if (offset < 0) return format("%ld bytes before %s, an array of %zu bytes", -offset, array->name.c_str(), array->size);
    if ((size_t)offset + size > array->size)
      return format("%ld bytes past the end of %s, an array of %zu bytes", offset + (long)size - (long)array->size, array->name.c_str(), array->size);
    return format("byte %ld of %s (%zu bytes)", offset, array->name.c_str(), array->size);
  }
  if (worker && worker->block && in_shared(address)) {
    const long offset = (long)((const char*)address - worker->block->arena);
    if (offset >= (long)kDynamicOffset)
      return format("byte %ld of the dynamic shared memory, which has %zu bytes", offset - (long)kDynamicOffset, worker->block->launch->request.shared);
    const SharedVariable* best = nullptr;
    for (const SharedVariable* v : worker->block->touched)
      if (v->offset <= offset && (!best || v->offset > best->offset)) best = v;
    if (best && offset + (long)size > best->offset + (long)best->size)
      return format("%ld bytes past the end of the shared variable %s (%zu bytes)", offset + (long)size - best->offset - (long)best->size, best->name, best->size);
    if (best) return format("byte %ld of the shared variable %s (%zu bytes)", offset - best->offset, best->name, best->size);
    return "shared memory that belongs to no variable";
  }
  if (const Variable* v = variable_at(address)) return format("byte %ld of the variable %s (%zu bytes)", (long)((const char*)address - (const char*)v->address), v->name, v->size);
  if ((uintptr_t)address < 4096) return "a null pointer";
  return format("%p, which is no device memory", address);
}

}  // namespace emulator
