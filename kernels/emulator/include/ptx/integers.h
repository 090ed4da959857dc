// Integer instructions (PTX ISA, "Integer Arithmetic", "Extended-Precision Integer Arithmetic", "Logic and Shift").
// The translation is compiled with -fwrapv: sums and products wrap.
#pragma once
#include "registers.h"

namespace ptx {

template <class T, class = std::enable_if_t<std::is_integral<T>::value>> PTX_INLINE T smaller(T a, T b) { return b < a ? b : a; }
template <class T, class = std::enable_if_t<std::is_integral<T>::value>> PTX_INLINE T larger(T a, T b) { return a < b ? b : a; }
template <class T> PTX_INLINE Two<T> operator+(Two<T> a, Two<T> b) { return {(T)(a.x + b.x), (T)(a.y + b.y)}; }

PTX_INLINE int32_t not_negative(int32_t v) { return v < 0 ? 0 : v; }
PTX_INLINE Two<int16_t> not_negative(Two<int16_t> v) { return {(int16_t)not_negative(v.x), (int16_t)not_negative(v.y)}; }
PTX_INLINE int32_t saturated(int64_t v) { return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int32_t)v; }
// An integer of one type as another, at its nearest end where it does not fit.
template <class To, class From>
PTX_INLINE To clamped(From v) {
  const __int128 wide = v, low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  return (To)(wide < low ? low : wide > high ? high : wide);
}

template <class T>
PTX_INLINE T high(T a, T b) {
  if constexpr (sizeof(T) < 8) return (T)(((int64_t)a * (int64_t)b) >> (8 * sizeof(T)));
  else if constexpr (std::is_signed<T>::value) return (T)(((__int128)a * b) >> 64);
  else return (T)(((unsigned __int128)a * b) >> 64);
}
PTX_INLINE int64_t times24(int32_t a, int32_t b) { return (int64_t)(a << 8 >> 8) * (b << 8 >> 8); }
PTX_INLINE int64_t times24(uint32_t a, uint32_t b) { return (int64_t)(a & 0xffffffu) * (b & 0xffffffu); }

// A division by zero is found as one; the smallest by -1 wraps, where a CPU would trap.
template <class T>
PTX_INLINE T quotient(T a, T b) {
  if constexpr (std::is_signed<T>::value)
    if (b == (T)-1) return (T)-a;
  return (T)(a / b);
}
template <class T>
PTX_INLINE T remainder(T a, T b) {
  if constexpr (std::is_signed<T>::value)
    if (b == (T)-1) return 0;
  return (T)(a % b);
}

template <bool Takes, bool Leaves, class T>
PTX_INLINE T add_carry(T a, T b, bool& carry) {
  typedef typename Word<sizeof(T)>::type U;
  const unsigned __int128 sum = (unsigned __int128)(U)a + (U)b + (Takes && carry);
  if (Leaves) carry = (sum >> (8 * sizeof(T))) != 0;
  return (T)sum;
}
template <bool Takes, bool Leaves, class T>
PTX_INLINE T sub_carry(T a, T b, bool& carry) {  // `carry` holds the borrow
  typedef typename Word<sizeof(T)>::type U;
  const unsigned __int128 rest = (unsigned __int128)(U)a - (U)b - (Takes && carry);
  if (Leaves) carry = (rest >> (8 * sizeof(T)) & 1) != 0;
  return (T)rest;
}

// How far bytes or halves of two words are apart, each in its place, or their sum.
template <int Width, bool Sum>
PTX_INLINE uint32_t distances(uint32_t a, uint32_t b) {
  uint32_t value = 0;
  for (int at = 0; at < 32; at += Width) {
    const uint32_t x = a >> at & ((1u << Width) - 1), y = b >> at & ((1u << Width) - 1), apart = x < y ? y - x : x - y;
    value += Sum ? apart : apart << at;
  }
  return value;
}
// Two integers at their nearest ends, the first above the second; `above` is what was packed before.
template <class To>
PTX_INLINE uint32_t packed(int32_t a, int32_t b, uint32_t above) {
  typedef typename Word<sizeof(To)>::type U;
  const uint64_t two = (uint64_t)(U)clamped<To>(a) << 8 * sizeof(To) | (U)clamped<To>(b);
  return (uint32_t)((uint64_t)above << 16 * sizeof(To) | two);
}

template <bool SignedA, bool SignedB>
PTX_INLINE uint32_t dot4(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    const uint8_t x = (uint8_t)(a >> 8 * i), y = (uint8_t)(b >> 8 * i);
    sum += (uint32_t)((SignedA ? (int32_t)(int8_t)x : (int32_t)x) * (SignedB ? (int32_t)(int8_t)y : (int32_t)y));
  }
  return sum;
}
template <bool SignedA, bool SignedB>
PTX_INLINE uint32_t dot2(uint32_t a, uint32_t b, int first) {
  uint32_t sum = 0;
  for (int i = 0; i < 2; ++i) {
    const uint16_t x = (uint16_t)(a >> 16 * i);
    const uint8_t y = (uint8_t)(b >> 8 * (first + i));
    sum += (uint32_t)((SignedA ? (int32_t)(int16_t)x : (int32_t)x) * (SignedB ? (int32_t)(int8_t)y : (int32_t)y));
  }
  return sum;
}

template <class T> PTX_INLINE T left(T v, uint32_t by) { return by >= 8 * sizeof(T) ? (T)0 : (T)(v << by); }
template <class T>
PTX_INLINE T right(T v, uint32_t by) {
  if (by >= 8 * sizeof(T)) return std::is_signed<T>::value && v < 0 ? (T)-1 : (T)0;
  return (T)(v >> by);
}
PTX_INLINE uint32_t funnel_left(uint32_t low, uint32_t above, uint32_t by) {
  return (uint32_t)(((uint64_t)above << 32 | low) << by >> 32);
}
PTX_INLINE uint32_t funnel_right(uint32_t low, uint32_t above, uint32_t by) {
  return (uint32_t)(((uint64_t)above << 32 | low) >> by);
}
PTX_INLINE uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t value = 0;
  for (int at = 0; at < 8; ++at)
    if (table >> at & 1) value |= (at & 4 ? a : ~a) & (at & 2 ? b : ~b) & (at & 1 ? c : ~c);
  return value;
}

enum class Permute { Index, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };
template <Permute How>
PTX_INLINE uint32_t permute(uint32_t a, uint32_t b, uint32_t select) {
  const uint64_t bytes = (uint64_t)b << 32 | a;
  uint32_t value = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t by = select & 3;
    uint32_t from = 0;
    switch (How) {
      case Permute::Index: from = select >> 4 * i & 15; break;
      case Permute::F4e: from = by + i; break;
      case Permute::B4e: from = (by - i) & 7; break;
      case Permute::Rc8: from = by; break;
      case Permute::Ecl: from = i < by ? by : i; break;
      case Permute::Ecr: from = i < by ? i : by; break;
      case Permute::Rc16: from = (by & 1) * 2 + (i & 1); break;
    }
    uint32_t byte = (uint32_t)(bytes >> 8 * (from & 7)) & 255;
    if (How == Permute::Index && (from & 8)) byte = byte & 128 ? 255 : 0;
    value |= byte << 8 * i;
  }
  return value;
}

PTX_INLINE uint32_t leading_zeros(uint32_t v) { return v ? (uint32_t)__builtin_clz(v) : 32; }
PTX_INLINE uint32_t leading_zeros(uint64_t v) { return v ? (uint32_t)__builtin_clzll(v) : 64; }
template <class T>
PTX_INLINE T reversed(T v) {
  T out = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) out = (T)(out << 1 | (v >> i & 1));
  return out;
}
// The highest bit that is set, or for a negative number the highest that is not; ~0 for none.
template <bool Shift, class T>
PTX_INLINE uint32_t highest(T v) {
  typedef typename Word<sizeof(T)>::type U;
  const U bits = std::is_signed<T>::value && v < 0 ? (U)~(U)v : (U)v;
  if (!bits) return ~0u;
  const uint32_t zeros = leading_zeros(bits);
  return Shift ? zeros : (uint32_t)(8 * sizeof(T)) - 1 - zeros;
}
// The place of the nth set bit from `base` on, upwards for n > 0; ~0 for none. n = 0 asks whether `base` itself is set.
PTX_INLINE uint32_t nth_set(uint32_t mask, uint32_t base, int32_t n) {
  if (n == 0) return base < 32 && mask >> base & 1 ? base : ~0u;
  const int step = n > 0 ? 1 : -1;
  int64_t left_over = n > 0 ? n : -(int64_t)n;
  for (int64_t at = base; at >= 0 && at < 32; at += step)
    if (mask >> at & 1 && --left_over == 0) return (uint32_t)at;
  return ~0u;
}
template <class T>
PTX_INLINE T extracted(T v, uint32_t start, uint32_t count) {
  const uint32_t bits = 8 * sizeof(T);
  start &= 255, count &= 255;
  typedef typename Word<sizeof(T)>::type U;
  bool sign = false;
  if (std::is_signed<T>::value && count) {
    const uint32_t last = start + count - 1 < bits - 1 ? start + count - 1 : bits - 1;
    sign = (U)v >> last & 1;
  }
  U out = 0;
  for (uint32_t i = 0; i < bits; ++i) {
    const bool bit = i < count && start + i < bits ? (U)v >> (start + i) & 1 : sign;
    out |= (U)bit << i;
  }
  return (T)out;
}
template <class T>
PTX_INLINE T inserted(T from, T into, uint32_t start, uint32_t count) {
  const uint32_t bits = 8 * sizeof(T);
  start &= 255, count &= 255;
  if (start >= bits || !count) return into;
  const T mask = (T)((count >= bits ? (T)~(T)0 : (T)(((T)1 << count) - 1)) << start);
  return (T)((into & ~mask) | ((T)(from << start) & mask));
}
PTX_INLINE uint32_t bit_mask(uint32_t start, uint32_t width) {
  if (start >= 32) return 0;
  return (width >= 32 ? ~0u : (1u << width) - 1) << start;
}

}  // namespace ptx
