// What the host API keeps: the last error, the order of streams, and the policy that holds while a seam is called.
#pragma once
#include "scheduler.h"

namespace emulator {

constexpr int kProcessors = 16;  // of the virtual GPU

void note_work(cudaStream_t stream);
unsigned long launch_count();  // launches that were accepted

// While a seam is called: what it may allocate, and the stream it was given. Calls that a recorded seam may not make end
// the run with a finding of the kind `forbidden_call` or `workspace`.
void begin_seam(size_t workspace_bytes);
cudaStream_t seam_stream();
void end_seam();  // every stream that got work has to be joined by now

}  // namespace emulator
