// Streams and events: only their order is recorded; nothing runs here, so every wait is over at once.
#include "tape.h"

#include <set>

namespace recorder {
namespace {

constexpr std::uintptr_t STREAM = 0x7100, EVENT = 0x7200000;
std::uintptr_t streams_made = 2, events_made = 0;
std::set<int> nonblocking;

std::uintptr_t number(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle); }

int eventNumber(cudaEvent_t event) {
    const std::uintptr_t value = number(event);
    return value > EVENT && value <= EVENT + events_made ? int(value - EVENT) : 0;
}

cudaError_t makeStream(cudaStream_t* stream, unsigned flags) {
    const int made = int(streams_made++);
    if (made > 1000) return remember(cudaErrorMemoryAllocation);
    *stream = reinterpret_cast<cudaStream_t>(STREAM + made);
    if (flags & cudaStreamNonBlocking) line("{\"op\":\"nonblocking\",\"stream\":" + std::to_string(made) + "}");
    return cudaSuccess;
}

cudaError_t makeEvent(cudaEvent_t* event) {
    if (events_made > 100000) return remember(cudaErrorMemoryAllocation);
    *event = reinterpret_cast<cudaEvent_t>(EVENT + ++events_made);
    return cudaSuccess;
}

cudaError_t mark(const char* op, cudaEvent_t event, cudaStream_t stream, const char* call) {
    const int which = eventNumber(event);
    if (!which) return remember(cudaErrorInvalidResourceHandle);
    line(std::string("{\"op\":\"") + op + "\",\"event\":" + std::to_string(which) +
         ",\"stream\":" + std::to_string(streamNumber(stream, call)) + "}");
    return cudaSuccess;
}

}  // namespace

int streamNumber(cudaStream_t stream, const char* call) {
    const std::uintptr_t value = number(stream);
    if (value == 0 || stream == cudaStreamLegacy) return 0;
    if (stream == cudaStreamPerThread) violation("unrecordable_call", call, "cudaStreamPerThread");
    if (value > STREAM && value < STREAM + streams_made) return int(value - STREAM);
    violation("unknown_stream", call, "a stream handle that was not handed out");
}

cudaStream_t givenStream() { return reinterpret_cast<cudaStream_t>(STREAM + 1); }

}  // namespace recorder

using namespace recorder;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return makeStream(stream, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { return makeStream(stream, flags); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) { return makeStream(stream, flags); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* flags) { return *flags = 0, cudaSuccess; }
cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) { return *priority = 0, cudaSuccess; }
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) { return cudaSuccess; }
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, std::size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    line("{\"op\":\"synchronize\",\"stream\":" + std::to_string(streamNumber(stream, "cudaStreamSynchronize")) + "}");
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return line("{\"op\":\"synchronize\",\"stream\":-1}"), cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    return mark("wait", event, stream, "cudaStreamWaitEvent");
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return makeEvent(event); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return makeEvent(event); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return mark("record", event, stream, "cudaEventRecord");
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
    return mark("record", event, stream, "cudaEventRecordWithFlags");
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const int which = eventNumber(event);
    if (!which) return remember(cudaErrorInvalidResourceHandle);
    return line("{\"op\":\"synchronize_event\",\"event\":" + std::to_string(which) + "}"), cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
    return *ms = 0.0f, cudaSuccess;  // nothing ran; the trusted side does its own timing
}

cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t, void*) { violation("unrecordable_call", "cudaLaunchHostFunc", "a host callback"); }
cudaError_t cudaStreamAddCallback(cudaStream_t, cudaStreamCallback_t, void*, unsigned) {
    violation("unrecordable_call", "cudaStreamAddCallback", "a host callback");
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    violation("unrecordable_call", "cudaStreamBeginCapture", "the judge makes the graph");
}
}
