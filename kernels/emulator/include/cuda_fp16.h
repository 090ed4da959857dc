// fp16: __half, __half2 and their functions (CUDA Math API, "Half Precision Intrinsics").
#pragma once
#include "cuda_runtime.h"
#include "emulator/sixteen_bit.h"

typedef ::emulator::SixteenBit<::emulator::HalfFormat> __half;
typedef ::emulator::SixteenBitPair<::emulator::HalfFormat> __half2;
typedef __half half;
typedef __half2 half2;
typedef __half __half_raw;
EMULATOR_SIXTEEN_BIT(__half, __half2, half)
inline float __half2float(__half h) { return h; }
inline __half __float2half(float f) { return __half(f); }
inline __half __float2half_rn(float f) { return __half(f); }
inline __half __double2half(double d) { return __half(d); }
inline __half __int2half_rn(int i) { return __half(i); }
inline __half __uint2half_rn(unsigned i) { return __half(i); }
inline int __half2int_rn(__half h) { return emulator::saturate<int>(rintf(h)); }
inline int __half2int_rz(__half h) { return emulator::saturate<int>(truncf(h)); }
inline int __half2int_rd(__half h) { return emulator::saturate<int>(floorf(h)); }
inline int __half2int_ru(__half h) { return emulator::saturate<int>(ceilf(h)); }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline short __half_as_short(__half h) { return (short)h.bits; }
inline __half __ushort_as_half(unsigned short bits) { __half h; h.bits = bits; return h; }
inline __half __short_as_half(short bits) { __half h; h.bits = (unsigned short)bits; return h; }
inline __half2 __floats2half2_rn(float a, float b) { return __half2(__half(a), __half(b)); }
inline __half2 __float2half2_rn(float f) { return __half2(__half(f), __half(f)); }
inline __half2 __float22half2_rn(float2 f) { return __half2(__half(f.x), __half(f.y)); }
inline float2 __half22float2(__half2 h) { return make_float2(h.x, h.y); }
inline __half2 __half2half2(__half a) { return __half2(a, a); }
inline __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
inline __half2 make_half2(__half a, __half b) { return __half2(a, b); }
inline __half __low2half(__half2 a) { return a.x; }
inline __half __high2half(__half2 a) { return a.y; }
inline __half2 __low2half2(__half2 a) { return __half2(a.x, a.x); }
inline __half2 __high2half2(__half2 a) { return __half2(a.y, a.y); }
inline __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
inline __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
inline __half2 __lowhigh2highlow(__half2 a) { return __half2(a.y, a.x); }
