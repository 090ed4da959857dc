// How the accesses of a case's warps fall on memory: a request is what the lanes of one warp ask for in one access of the
// program. In global memory it takes sectors of 32 bytes, in shared memory passes over its 32 banks.
//
// Lanes run one after another here, so a request is put together of each lane's n-th run of one place in the program since the
// block's last barrier. Requests of some blocks and warps are looked at, what all lanes did is counted: the rest follows from it.
#pragma once
#include "device_memory.h"

namespace emulator {

#ifdef EMULATOR_CHECK
extern bool counting;  // set for one case
void count_block(Block& block);  // it begins
void count_global(const Array& array, const char* at, unsigned size, bool writes, const void* pc);
void count_shared(const char* at, unsigned size, bool writes, const void* pc);
void count_phase(const Block& block);  // a barrier opens, or the block ends
void write_counts(const char* path);   // one JSON object for each place in the program
#endif

}  // namespace emulator
