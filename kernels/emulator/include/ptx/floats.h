// Floating-point instructions. Nearest rounding is the CPU's own; the directed ones take the nearest result and move it by one
// place where its error, which is computed exactly, has the wrong sign. Compiled without contraction: nvcc has fused already.
#pragma once
#include <cfenv>

#include "integers.h"

namespace ptx {

enum class Round { Nearest, Zero, Down, Up };
enum class Tie { Even, Away, Cut };

template <class T> PTX_INLINE bool unordered(T a, T b) { return a != a || b != b; }
template <class T> PTX_INLINE bool ordered_unequal(T a, T b) { return a < b || a > b; }

PTX_INLINE float flushed(float v) {
  const uint32_t bits = as<uint32_t>(v);
  return bits & 0x7f800000u ? v : as<float>(bits & 0x80000000u);
}
PTX_INLINE double flushed(double v) {
  const uint64_t bits = as<uint64_t>(v);
  return bits & 0x7ff0000000000000u ? v : as<double>(bits & 0x8000000000000000u);
}
PTX_INLINE Half flushed(Half v) {
  if (!(v.bits & 0x7c00u)) v.bits &= 0x8000u;
  return v;
}
template <class T> PTX_INLINE Two<T> flushed(Two<T> v) { return {flushed(v.x), flushed(v.y)}; }
template <class T> PTX_INLINE T unit(T v) { return v > T(0.0f) ? (v < T(1.0f) ? v : T(1.0f)) : T(0.0f); }  // NaN becomes 0
template <class T> PTX_INLINE Two<T> unit(Two<T> v) { return {unit(v.x), unit(v.y)}; }
template <class T> PTX_INLINE T positive(T v) { return v != v || v > T(0.0f) ? v : T(0.0f); }
template <class T> PTX_INLINE Two<T> positive(Two<T> v) { return {positive(v.x), positive(v.y)}; }

// `near` is `exact` rounded to nearest, and `above` says which side of it the exact value lies on: -1, 0 or 1.
template <Round R, class T>
PTX_INLINE T settled(T near, int above) {
  if (R == Round::Nearest || above == 0 || near != near) return near;
  const T infinity = std::numeric_limits<T>::infinity();
  if (R == Round::Down || (R == Round::Zero && near > 0)) return above < 0 ? std::nextafter(near, -infinity) : near;
  if (R == Round::Up || (R == Round::Zero && near < 0)) return above > 0 ? std::nextafter(near, infinity) : near;
  return near;
}
template <class T> PTX_INLINE int sign_of(T v) { return (v > 0) - (v < 0); }

// sum + error, which is exact, as a float.
template <Round R>
PTX_INLINE float narrowed(double sum, double error) {
  const float near = (float)sum;
  if (R == Round::Nearest || !(std::fabs(sum) <= std::numeric_limits<double>::max())) return near;
  const double rest = sum - (double)near;
  return settled<R>(near, rest != 0 ? sign_of(rest) : sign_of(error));
}
template <Round R> PTX_INLINE float narrowed(double v) { return narrowed<R>(v, 0.0); }

// a + b in double with its error (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B).
template <Round R>
PTX_INLINE float rounded_sum(double a, double b) {
  const double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  if (R == Round::Down && sum == 0 && (std::signbit(a) || std::signbit(b))) return -0.0f;  // unless both are +0
  return narrowed<R>(sum, error);
}
// Double precision: the CPU's own directed modes, which are slow and rarely asked for.
template <Round R, class Operation>
__attribute__((noinline)) double directed(Operation operation) {
  const int before = std::fegetround();
  std::fesetround(R == Round::Zero ? FE_TOWARDZERO : R == Round::Down ? FE_DOWNWARD : FE_UPWARD);
  const volatile double value = operation();
  std::fesetround(before);
  return value;
}
#define PTX_DIRECTED(name, sign)                                            \
  template <Round R> PTX_INLINE double name(double a, double b) {           \
    if (R == Round::Nearest) return a sign b;                               \
    volatile double x = a, y = b;                                           \
    return directed<R>([&] { return x sign y; });                           \
  }
PTX_DIRECTED(add, +)
PTX_DIRECTED(sub, -)
PTX_DIRECTED(mul, *)
PTX_DIRECTED(div, /)
#undef PTX_DIRECTED
template <Round R>
PTX_INLINE double fma(double a, double b, double c) {
  if (R == Round::Nearest) return __builtin_fma(a, b, c);
  volatile double x = a, y = b, z = c;
  return directed<R>([&] { return ::fma(x, y, z); });
}
template <Round R>
PTX_INLINE double root(double v) {
  if (R == Round::Nearest) return sqrt(v);
  volatile double x = v;
  return directed<R>([&] { return ::sqrt(x); });
}

template <Round R> PTX_INLINE float add(float a, float b) { return R == Round::Nearest ? a + b : rounded_sum<R>(a, b); }
template <Round R> PTX_INLINE float sub(float a, float b) { return R == Round::Nearest ? a - b : rounded_sum<R>(a, -b); }
template <Round R> PTX_INLINE float mul(float a, float b) { return R == Round::Nearest ? a * b : narrowed<R>((double)a * b); }
template <Round R>
PTX_INLINE float fma(float a, float b, float c) {
  if (R == Round::Nearest) return __builtin_fmaf(a, b, c);
  return rounded_sum<R>((double)a * b, c);
}
template <Round R>
PTX_INLINE float div(float a, float b) {
  const float near = a / b;
  if (R == Round::Nearest || b == 0 || !std::isfinite(a) || !std::isfinite(b)) return near;
  if (std::isinf(near)) return settled<R>(near, near > 0 ? -1 : 1);
  return settled<R>(near, sign_of(__builtin_fma(-(double)near, (double)b, (double)a)) * (b < 0 ? -1 : 1));
}
template <Round R>
PTX_INLINE float root(float v) {
  const float near = sqrtf(v);
  if (R == Round::Nearest || !(v > 0) || std::isinf(v)) return near;
  return settled<R>(near, sign_of(__builtin_fma(-(double)near, (double)near, (double)v)));
}

// ------------------------------------------------------------------------------------------------------ sign and order

#define PTX_SIGN_BITS(type, word, sign)                                                                       \
  PTX_INLINE type magnitude(type v) { return as<type>((word)(as<word>(v) & (word)~(sign))); }                \
  PTX_INLINE type negated(type v) { return as<type>((word)(as<word>(v) ^ (sign))); }                         \
  PTX_INLINE type with_sign_of(type s, type v) { return as<type>((word)((as<word>(v) & (word)~(sign)) | (as<word>(s) & (sign)))); }
PTX_SIGN_BITS(float, uint32_t, 0x80000000u)
PTX_SIGN_BITS(double, uint64_t, 0x8000000000000000u)
PTX_SIGN_BITS(Half, uint16_t, 0x8000u)
PTX_SIGN_BITS(Brain, uint16_t, 0x8000u)
#undef PTX_SIGN_BITS
template <class T> PTX_INLINE Two<T> magnitude(Two<T> v) { return {magnitude(v.x), magnitude(v.y)}; }
template <class T> PTX_INLINE Two<T> negated(Two<T> v) { return {negated(v.x), negated(v.y)}; }

PTX_INLINE float not_a_number(float) { return as<float>(0x7fffffffu); }
PTX_INLINE double not_a_number(double) { return as<double>((uint64_t)0x7fffffffffffffffu); }
PTX_INLINE Half not_a_number(Half) { return as<Half>((uint16_t)0x7fffu); }
PTX_INLINE Brain not_a_number(Brain) { return as<Brain>((uint16_t)0x7fffu); }

// The operand that is a number, if only one is; -0 is smaller than +0.
#define PTX_ORDER(type, word)                                                              \
  PTX_INLINE type smaller(type a, type b) {                                                \
    if (a != a) return b != b ? not_a_number(a) : b;                                       \
    if (a == b) return as<type>((word)(as<word>(a) | as<word>(b)));                        \
    return b < a ? b : a;                                                                  \
  }                                                                                        \
  PTX_INLINE type larger(type a, type b) {                                                 \
    if (a != a) return b != b ? not_a_number(a) : b;                                       \
    if (a == b) return as<type>((word)(as<word>(a) & as<word>(b)));                        \
    return a < b ? b : a;                                                                  \
  }                                                                                        \
  PTX_INLINE type smaller_or_nan(type a, type b) { return unordered(a, b) ? not_a_number(a) : smaller(a, b); } \
  PTX_INLINE type larger_or_nan(type a, type b) { return unordered(a, b) ? not_a_number(a) : larger(a, b); }
PTX_ORDER(float, uint32_t)
PTX_ORDER(double, uint64_t)
PTX_ORDER(Half, uint16_t)
PTX_ORDER(Brain, uint16_t)
#undef PTX_ORDER
template <class T> PTX_INLINE Two<T> smaller(Two<T> a, Two<T> b) { return {smaller(a.x, b.x), smaller(a.y, b.y)}; }
template <class T> PTX_INLINE Two<T> larger(Two<T> a, Two<T> b) { return {larger(a.x, b.x), larger(a.y, b.y)}; }
template <class T> PTX_INLINE Two<T> smaller_or_nan(Two<T> a, Two<T> b) { return {smaller_or_nan(a.x, b.x), smaller_or_nan(a.y, b.y)}; }
template <class T> PTX_INLINE Two<T> larger_or_nan(Two<T> a, Two<T> b) { return {larger_or_nan(a.x, b.x), larger_or_nan(a.y, b.y)}; }

template <class T> PTX_INLINE bool is_finite(T v) { return std::isfinite(v); }
template <class T> PTX_INLINE bool is_infinite(T v) { return std::isinf(v); }
template <class T> PTX_INLINE bool is_number(T v) { return v == v; }
template <class T> PTX_INLINE bool is_notanumber(T v) { return v != v; }
template <class T> PTX_INLINE bool is_normal(T v) { return std::fpclassify(v) == FP_NORMAL; }
template <class T> PTX_INLINE bool is_subnormal(T v) { return std::fpclassify(v) == FP_SUBNORMAL; }

// --------------------------------------------------------------------------------------------------------- sixteen bits

template <class T> PTX_INLINE Two<T> operator-(Two<T> a, Two<T> b) { return {a.x - b.x, a.y - b.y}; }
template <class T> PTX_INLINE Two<T> operator*(Two<T> a, Two<T> b) { return {a.x * b.x, a.y * b.y}; }
// The product is exact in double. What the sum loses is kept as an odd last bit, so that rounding once more is rounding once.
template <class T>
PTX_INLINE T fused(T a, T b, T c) {
  const double x = (double)(float)a * (double)(float)b, y = (float)c;
  const double sum = x + y, part = sum - x, error = (x - (sum - part)) + (y - part);
  uint64_t bits = as<uint64_t>(sum);
  if (error == error && error != 0 && !(bits & 1)) bits += (error > 0) == (sum > 0) ? 1 : -1;
  return T(as<double>(bits));
}
template <class T> PTX_INLINE Two<T> fused(Two<T> a, Two<T> b, Two<T> c) { return {fused(a.x, b.x, c.x), fused(a.y, b.y, c.y)}; }
template <class T> PTX_INLINE T each(T v, float (*function)(float)) { return T(function((float)v)); }
template <class T> PTX_INLINE Two<T> each(Two<T> v, float (*function)(float)) { return {each(v.x, function), each(v.y, function)}; }

// A float or double as a sixteen-bit value. Bits of one sign are in the order of their values, infinity at the end.
template <class T, Round R, class From>
PTX_INLINE T sixteen(From v) {
  T near(v);
  const From back = (From)(float)near;
  if (R == Round::Nearest || v != v || std::isinf(v) || back == v) return near;
  const bool above = v > back, negative = std::signbit(v);
  const bool up = R == Round::Up || (R == Round::Zero && negative), wanted = up ? above : !above;
  if (!wanted) return near;
  if ((near.bits & 0x7fffu) == 0) near.bits = up ? 1 : 0x8001u;
  else near.bits = (unsigned short)(near.bits + ((near.bits >> 15 != 0) == up ? -1 : 1));
  return near;
}
// Eight-bit floats: e5m2 (Wide) is the upper half of an f16, e4m3 has no infinity and NaN only where all bits are set.
template <bool Wide>
PTX_INLINE float eight_bits(uint8_t bits) {
  if constexpr (Wide) return (float)as<Half>((uint16_t)(bits << 8));
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const float size = (bits & 127) == 127 ? as<float>(0x7fffffffu) : exponent ? std::ldexp((float)(8 + fraction), exponent - 10) : std::ldexp((float)fraction, -9);
  return bits & 128 ? -size : size;
}
// Rounded to nearest even; what is larger than the largest number becomes that.
template <bool Wide>
PTX_INLINE uint8_t to_eight_bits(float v) {
  const int digits = Wide ? 2 : 3, bias = Wide ? 15 : 7;
  const uint8_t sign = std::signbit(v) ? 128 : 0, most = Wide ? 0x7b : 0x7e;
  if (v != v) return 0x7f;
  const float size = std::fabs(v);
  if (size >= (Wide ? 57344.0f : 448.0f)) return sign | most;
  if (size == 0) return sign;
  int exponent = std::ilogb(size);
  if (exponent < 1 - bias) exponent = 1 - bias;
  const int code = ((exponent + bias - 1) << digits) + (int)std::nearbyint(std::ldexp(size, digits - exponent));
  return (uint8_t)(sign | (code > most ? most : code));
}
template <bool Wide> PTX_INLINE uint16_t two_eights(float low, float high) { return (uint16_t)(to_eight_bits<Wide>(low) | to_eight_bits<Wide>(high) << 8); }
template <bool Wide> PTX_INLINE uint16_t two_eights(Two<Half> v) { return two_eights<Wide>((float)v.x, (float)v.y); }
template <bool Wide> PTX_INLINE Two<Half> two_halves(uint16_t v) { return {Half(eight_bits<Wide>((uint8_t)v)), Half(eight_bits<Wide>((uint8_t)(v >> 8)))}; }

template <Tie How>
PTX_INLINE uint32_t to_tf32(float v) {
  const uint32_t bits = as<uint32_t>(v);
  if (v != v) return 0x7fffffffu;
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  const uint32_t half = How == Tie::Away ? 0x1000u : How == Tie::Even ? 0x0fffu + (bits >> 13 & 1u) : 0u;
  return (bits + half) & ~0x1fffu;
}

// ----------------------------------------------------------------------------------------------------------- conversion

template <Round R, class T>
PTX_INLINE T whole(T v) {
  if constexpr (!std::is_floating_point<T>::value) return T(whole<R>((float)v));
  else return R == Round::Nearest ? std::nearbyint(v) : R == Round::Zero ? std::trunc(v) : R == Round::Down ? std::floor(v) : std::ceil(v);
}
// What does not fit becomes the nearest end; NaN is 0, or the highest bit where 64 bits are read or written.
template <class To, Round R, class From>
PTX_INLINE To to_integer(From v) {
  const double d = whole<R>((double)(std::conditional_t<std::is_floating_point<From>::value, From, float>)v);
  if (d != d) return sizeof(To) == 8 || sizeof(From) == 8 ? (To)((typename Word<sizeof(To)>::type)1 << (8 * sizeof(To) - 1)) : (To)0;
  const double low = (double)std::numeric_limits<To>::min(), high = (double)std::numeric_limits<To>::max();
  return d <= low ? std::numeric_limits<To>::min() : d >= high ? std::numeric_limits<To>::max() : (To)d;
}
template <class To, Round R, class From>
PTX_INLINE To from_integer(From v) {
  if constexpr (std::is_floating_point<To>::value) {
    const To near = (To)v;
    if (R == Round::Nearest) return near;
    const __int128 rest = (__int128)v - (__int128)near;
    return settled<R>(near, (rest > 0) - (rest < 0));
  } else {
    return To((double)v);
  }
}

}  // namespace ptx
