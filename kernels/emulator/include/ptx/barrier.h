// Barrier objects: 64 bits in shared memory, as the ISA leaves them to the machine. Copies that complete on one are made when a
// thread waits for it, so that what is used too early is the old value; they are checked where they were asked for.
#pragma once
#include "memory.h"

namespace ptx {

void object_init(void* object, uint32_t count, int line);
void object_ended(void* object);
uint64_t object_arrive(void* object, uint32_t count, uint32_t bytes, bool drops, bool publishes, int line);  // the phase it arrived in
void object_expect(void* object, int32_t bytes, int line);
bool object_passed(void* object, bool odd, bool patient, bool acquires, int line);
void object_copied(void* object, bool counted, int line);
uint32_t object_pending(uint64_t state);

// object: where its bytes are counted, or null for a copy of the thread's current batch.
void bulk_copy(void* to, const void* from, uint32_t size, void* object, int line);
void close_bulk_batch();
void finish_bulk_copies(uint32_t batches_left);

}  // namespace ptx
