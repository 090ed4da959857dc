// __half and __nv_bfloat16 as one template: arithmetic in float, rounded to nearest even after every operation.
// float has more than twice the digits of either format plus two, so that rounding twice gives what rounding once would.
#pragma once

namespace emulator {

struct HalfFormat {
  static float decode(unsigned short h) {
    const unsigned sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 1023u;
    if (exponent == 31) return bit_cast<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent) return bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    return bit_cast<float>(bit_cast<unsigned>((float)fraction * 5.9604644775390625e-8f) | sign);
  }
  static unsigned short encode(double d) {
    const unsigned short sign = (unsigned short)(bit_cast<unsigned long long>(d) >> 48 & 0x8000u);
    if (d != d) return 0x7fff;
    const double a = std::fabs(d);
    if (a >= 65520.0) return sign | 0x7c00;
    if (a == 0) return sign;
    int exponent = (int)(bit_cast<unsigned long long>(a) >> 52) - 1023;
    if (exponent < -14) exponent = -14;
    return (unsigned short)(sign | (((unsigned)(exponent + 14) << 10) + (unsigned)std::nearbyint(std::ldexp(a, 10 - exponent))));
  }
  static unsigned short encode(float f) {
#ifdef __F16C__
    if (f != f) return 0x7fff;
    typedef float Four __attribute__((vector_size(16)));
    return (unsigned short)__builtin_ia32_vcvtps2ph(Four{f, 0, 0, 0}, 0)[0];
#else
    return encode((double)f);
#endif
  }
};
struct BrainFormat {
  static float decode(unsigned short h) { return bit_cast<float>((unsigned)h << 16); }
  static unsigned short encode(float f) {
    const unsigned bits = bit_cast<unsigned>(f);
    if (f != f) return 0x7fff;
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  static unsigned short encode(double d) {
    float f = (float)d;
    unsigned bits = bit_cast<unsigned>(f);
    if (d == d && std::isfinite(f) && (double)f != d && (bits & 0xffffu) == 0x8000u)  // a tie that rounding to float made
      bits += std::fabs((double)f) < std::fabs(d) ? 1 : -1;
    return d != d ? 0x7fff : encode(bit_cast<float>(bits));
  }
};

template <class Format>
struct SixteenBit {
  unsigned short bits;
  SixteenBit() = default;
  SixteenBit(const SixteenBit&) = default;
  SixteenBit& operator=(const SixteenBit&) = default;
  SixteenBit(float f) : bits(Format::encode(f)) {}
  SixteenBit(double d) : bits(Format::encode(d)) {}
  template <class I, class = std::enable_if_t<std::is_integral<I>::value>>
  SixteenBit(I i) : bits(Format::encode((double)i)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  SixteenBit& operator=(T v) { return *this = SixteenBit(v); }
  operator float() const { return Format::decode(bits); }
  explicit operator bool() const { return (bits & 0x7fff) != 0; }
  explicit operator double() const { return Format::decode(bits); }
  template <class I, class = std::enable_if_t<std::is_integral<I>::value && !std::is_same<I, bool>::value>>
  explicit operator I() const { return saturate<I>((float)*this); }
};
template <class Format>
struct alignas(4) SixteenBitPair {
  SixteenBit<Format> x, y;
  SixteenBitPair() = default;
  SixteenBitPair(SixteenBit<Format> x_, SixteenBit<Format> y_) : x(x_), y(y_) {}
};

// a*b+c with one rounding: the product is exact in double, and so is all that the sum can lose.
template <class Format>
SixteenBit<Format> fused(SixteenBit<Format> a, SixteenBit<Format> b, SixteenBit<Format> c) {
  SixteenBit<Format> r;
  r.bits = Format::encode((double)(float)a * (double)(float)b + (double)(float)c);
  return r;
}
template <class Format>
EMULATOR_UNCHECKED SixteenBit<Format> atomic_add(SixteenBit<Format>* address, SixteenBit<Format> v) {
  const unsigned short old = atomic_update(&address->bits, [v](unsigned short bits) {
    SixteenBit<Format> x;
    x.bits = bits;
    return SixteenBit<Format>((float)x + (float)v).bits;
  });
  SixteenBit<Format> r;
  r.bits = old;
  return r;
}

}  // namespace emulator

// Everything that both types have, for T (one value), T2 (a pair) and the word that CUDA puts into function names.
#define EMULATOR_OPERATOR(T, T2, op)                                                                  \
  inline T operator op(T a, T b) { return T((float)a op (float)b); }                                  \
  inline T& operator op##=(T& a, T b) { return a = a op b; }                                          \
  inline T2 operator op(T2 a, T2 b) { return T2(a.x op b.x, a.y op b.y); }                            \
  inline T2& operator op##=(T2& a, T2 b) { return a = a op b; }
#define EMULATOR_COMPARE(T, T2, op, name)                                                             \
  inline bool operator op(T a, T b) { return (float)a op (float)b; }                                  \
  inline bool __h##name(T a, T b) { return (float)a op (float)b; }                                    \
  inline T2 __h##name##2(T2 a, T2 b) { return T2(T(a.x op b.x ? 1.0f : 0.0f), T(a.y op b.y ? 1.0f : 0.0f)); } \
  inline bool __hb##name##2(T2 a, T2 b) { return a.x op b.x && a.y op b.y; }
#define EMULATOR_ARITHMETIC(T, T2, name, op)                                                          \
  inline T name(T a, T b) { return a op b; }                                                          \
  inline T2 name##2(T2 a, T2 b) { return a op b; }                                                    \
  inline T name##_rn(T a, T b) { return a op b; }                                                     \
  inline T2 name##2_rn(T2 a, T2 b) { return a op b; }
#define EMULATOR_FUNCTION(T, T2, name, expression)                                                    \
  inline T h##name(T h) { const float a = h; return T((float)(expression)); }                         \
  inline T2 h2##name(T2 v) { return T2(h##name(v.x), h##name(v.y)); }
#define EMULATOR_SIXTEEN_BIT(T, T2, word)                                                             \
  EMULATOR_OPERATOR(T, T2, +) EMULATOR_OPERATOR(T, T2, -)                                             \
  EMULATOR_OPERATOR(T, T2, *) EMULATOR_OPERATOR(T, T2, /)                                             \
  EMULATOR_COMPARE(T, T2, <, lt) EMULATOR_COMPARE(T, T2, >, gt)                                 \
  EMULATOR_COMPARE(T, T2, <=, le) EMULATOR_COMPARE(T, T2, >=, ge)                               \
  EMULATOR_COMPARE(T, T2, ==, eq) EMULATOR_COMPARE(T, T2, !=, ne)                               \
  EMULATOR_ARITHMETIC(T, T2, __hadd, +) EMULATOR_ARITHMETIC(T, T2, __hsub, -) EMULATOR_ARITHMETIC(T, T2, __hmul, *) \
  inline T operator-(T a) { a.bits ^= 0x8000; return a; }                                             \
  inline T2 operator-(T2 a) { return T2(-a.x, -a.y); }                                                \
  inline T __hdiv(T a, T b) { return a / b; }                                                         \
  inline T2 __h2div(T2 a, T2 b) { return a / b; }                                                     \
  inline T __hneg(T a) { return -a; }                                                                 \
  inline T2 __hneg2(T2 a) { return -a; }                                                              \
  inline T __habs(T a) { a.bits &= 0x7fff; return a; }                                                \
  inline T2 __habs2(T2 a) { return T2(__habs(a.x), __habs(a.y)); }                                    \
  inline T __hfma(T a, T b, T c) { return ::emulator::fused(a, b, c); }                               \
  inline T2 __hfma2(T2 a, T2 b, T2 c) { return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }    \
  inline T __hmax(T a, T b) { return T(fmaxf(a, b)); }                                                \
  inline T __hmin(T a, T b) { return T(fminf(a, b)); }                                                \
  inline T2 __hmax2(T2 a, T2 b) { return T2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }                    \
  inline T2 __hmin2(T2 a, T2 b) { return T2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }                    \
  inline bool __hisnan(T a) { return std::isnan((float)a); }                                          \
  inline int __hisinf(T a) { return std::isinf((float)a) ? ((float)a > 0 ? 1 : -1) : 0; }             \
  EMULATOR_FUNCTION(T, T2, exp, expf(a)) EMULATOR_FUNCTION(T, T2, exp2, exp2f(a))                     \
  EMULATOR_FUNCTION(T, T2, log, logf(a)) EMULATOR_FUNCTION(T, T2, log2, log2f(a))                     \
  EMULATOR_FUNCTION(T, T2, sqrt, sqrtf(a)) EMULATOR_FUNCTION(T, T2, rsqrt, 1.0f / sqrtf(a))           \
  EMULATOR_FUNCTION(T, T2, rcp, 1.0f / a) EMULATOR_FUNCTION(T, T2, tanh, tanhf(a))                    \
  EMULATOR_FUNCTION(T, T2, floor, floorf(a)) EMULATOR_FUNCTION(T, T2, ceil, ceilf(a))                 \
  EMULATOR_FUNCTION(T, T2, sin, sinf(a)) EMULATOR_FUNCTION(T, T2, cos, cosf(a))                       \
  EMULATOR_FUNCTION(T, T2, rint, rintf(a)) EMULATOR_FUNCTION(T, T2, trunc, truncf(a))                 \
  inline float __low2float(T2 a) { return a.x; }                                                      \
  inline float __high2float(T2 a) { return a.y; }                                                     \
  inline T atomicAdd(T* address, T v) { return ::emulator::atomic_add(address, v); }                  \
  inline T2 atomicAdd(T2* address, T2 v) { return T2(atomicAdd(&address->x, v.x), atomicAdd(&address->y, v.y)); }
