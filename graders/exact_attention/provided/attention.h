// What a submission to this stage may rely on: the shape of the block and the seam it fills in.
//
// qkv   [tokens, 768] float32, row-major, read-only. One row is  Q (8 heads x 64) | K (2 heads x 64) | V (2 heads x 64).
//       Q and K have their rotary embedding already. Query head h reads key/value head h / 4.
// out   [tokens, 512] float32, row-major, heads side by side: out[t * 512 + h * 64 + d]. Every value must be written.
// Both pointers are device pointers, aligned to 256 bytes. tokens is at least 1.
// Whatever is launched must be on `stream`, or joined to it by events before the function returns.
#pragma once
#include <cuda_runtime.h>

constexpr int HEADS = 8;
constexpr int KV_HEADS = 2;
constexpr int HEADS_PER_KV = HEADS / KV_HEADS;
constexpr int HEAD_DIM = 64;
constexpr int QKV_WIDTH = 768;
constexpr int KEY_OFFSET = HEADS * HEAD_DIM;
constexpr int VALUE_OFFSET = KEY_OFFSET + KV_HEADS * HEAD_DIM;
constexpr int OUT_WIDTH = HEADS * HEAD_DIM;
constexpr float SCORE_SCALE = 0.125f;  // 1 / sqrt(HEAD_DIM)

extern "C" void runCausalAttention(const float* qkv, float* out, int tokens, cudaStream_t stream);
