// Which memory an address belongs to, and copies that end later.
#pragma once

namespace emulator {
bool in_shared(const void* address);
bool in_global(const void* address);

// Between these the check build lets memory be read that nothing has written; the end says whether there was any. It is told when
// its value is taken.
void begin_spare_read();
bool end_spare_read();
void note_unwritten(const void* address);

void misaligned(const void* address, unsigned alignment);

// A value that was never set: what it decides, and memory that holds one after it was stored there.
void undefined_used(const char* what, int line);
void mark_undefined(const char* at, unsigned size);
bool marked_undefined(const char* at, unsigned size);

// Asynchronous copies (cp.async): done as late as the program allows, so that a missing wait shows.
void copy_later(void* to, const void* from, size_t size, size_t zeros, const void* pc);
void close_copy_batch();
void finish_copies(size_t batches_left);
}  // namespace emulator
