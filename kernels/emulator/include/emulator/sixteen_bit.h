// f16 and bf16 as one template: arithmetic in float, rounded to nearest even after every operation.
// float has more than twice the digits of either format plus two, so that rounding twice gives what rounding once would.
#pragma once
#include "kernel.h"

namespace emulator {

template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

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
};

// Without these both sides would become float, and a result that is flushed or clamped would not have been rounded before.
template <class Format>
inline SixteenBit<Format> operator+(SixteenBit<Format> a, SixteenBit<Format> b) { return SixteenBit<Format>((float)a + (float)b); }
template <class Format>
inline SixteenBit<Format> operator-(SixteenBit<Format> a, SixteenBit<Format> b) { return SixteenBit<Format>((float)a - (float)b); }
template <class Format>
inline SixteenBit<Format> operator*(SixteenBit<Format> a, SixteenBit<Format> b) { return SixteenBit<Format>((float)a * (float)b); }

}  // namespace emulator
