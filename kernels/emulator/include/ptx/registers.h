// Registers: a variable each, of the width that PTX declares. An instruction reads one as the type that it computes in, and
// writes one with the rule of its type: a narrower integer is extended as its sign says.
#pragma once
#include "../emulator/sixteen_bit.h"

#define PTX_INLINE inline __attribute__((always_inline))

namespace ptx {

typedef ::emulator::SixteenBit<::emulator::HalfFormat> Half;
typedef ::emulator::SixteenBit<::emulator::BrainFormat> Brain;
template <class T>
struct Two {
  T x, y;  // x in the lower half
};

template <size_t Bytes> struct Word;
template <> struct Word<1> { typedef uint8_t type; };
template <> struct Word<2> { typedef uint16_t type; };
template <> struct Word<4> { typedef uint32_t type; };
template <> struct Word<8> { typedef uint64_t type; };

template <class T, class R>
PTX_INLINE T as(R held) {
  if constexpr (std::is_same<T, R>::value) return held;
  static_assert(sizeof(T) <= sizeof(R), "the translator refuses a register that is too narrow");
  typename Word<sizeof(R)>::type bits;
  __builtin_memcpy(&bits, &held, sizeof bits);
  const auto low = (typename Word<sizeof(T)>::type)bits;
  T value;
  __builtin_memcpy(&value, &low, sizeof value);
  return value;
}

template <class R, class V>
PTX_INLINE void set(R& held, V value) {
  if constexpr (std::is_same<R, V>::value) {
    held = value;
  } else if constexpr (sizeof(R) == sizeof(V)) {
    __builtin_memcpy(&held, &value, sizeof held);
  } else {
    static_assert(sizeof(V) < sizeof(R), "the translator refuses a register that is too narrow");
    typename Word<sizeof(R)>::type bits;
    if constexpr (std::is_integral<V>::value) {
      bits = (typename Word<sizeof(R)>::type)value;
    } else {
      typename Word<sizeof(V)>::type low;
      __builtin_memcpy(&low, &value, sizeof low);
      bits = low;
    }
    __builtin_memcpy(&held, &bits, sizeof held);
  }
}

}  // namespace ptx
