// Which memory an address belongs to, and copies that end later.
#pragma once

namespace emulator {
bool in_shared(const void* address);
bool in_global(const void* address);

// Asynchronous copies (cp.async): done as late as the program allows, so that a missing wait shows.
void copy_later(void* to, const void* from, size_t size, size_t zeros, const void* pc);
void close_copy_batch();
void finish_copies(size_t batches_left);
}  // namespace emulator
