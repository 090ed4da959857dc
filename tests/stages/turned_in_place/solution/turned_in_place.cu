#include "turned_in_place.h"
__global__ void turn(float* x, int tokens, int pairs) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= tokens * pairs) return;
    int token = at / pairs, pair = at % pairs;
    float angle = token * powf(10000.f, -(float)pair / pairs), c = cosf(angle), s = sinf(angle);
    float* row = x + 2 * at;
    float a = row[0], b = row[1];
    row[0] = a * c - b * s;
    row[1] = a * s + b * c;
}
extern "C" void rope(float* x, int tokens, int pairs, cudaStream_t stream) {
    turn<<<(tokens * pairs + 127) / 128, 128, 0, stream>>>(x, tokens, pairs);
}
