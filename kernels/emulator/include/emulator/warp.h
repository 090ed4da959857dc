// Warp-level functions (CUDA C++ Programming Guide, "Warp Shuffle", "Warp Vote", "Warp Match", "Warp Reduce").
#pragma once

namespace emulator {

template <class T>
unsigned long long bits_of(T value) {
  static_assert(sizeof(T) <= 8, "at most 8 bytes can be exchanged at once");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T from_bits(unsigned long long bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
inline T shuffle(unsigned mask, T value, Source how, int operand, int width, int line) {
  static_assert(std::is_trivially_copyable<T>::value, "a shuffled value must be trivially copyable");
  if constexpr (sizeof(T) <= 8) {
    return from_bits<T>(shuffle_word(mask, bits_of(value), how, operand, width, line));
  } else {
    unsigned long long words[(sizeof(T) + 7) / 8] = {};
    __builtin_memcpy(words, &value, sizeof value);
    for (auto& word : words) word = shuffle_word(mask, word, how, operand, width, line);
    __builtin_memcpy(&value, words, sizeof value);
    return value;
  }
}

inline unsigned butterfly_source(const ButterflyLoop& loop, unsigned lane, unsigned step) {
  const unsigned end = (lane & ~(loop.width - 1u)) + loop.width, source = loop.how == Source::Xor ? lane ^ step : lane + step;
  return source < end ? source : lane;
}
template <class T, class Operation>
EMULATOR_UNCHECKED void butterfly_steps(unsigned long long* words, const ButterflyLoop& loop, void* operation) {
  const Operation& both = *static_cast<Operation*>(operation);
  T now[32], other[32];
  for (unsigned lane = 0; lane < 32; ++lane) now[lane] = from_bits<T>(words[lane]);
  for (unsigned step = loop.first; loop.up_to ? step < (unsigned)loop.up_to : step; step = loop.up_to ? step << 1 : step >> 1) {
    for (unsigned lane = 0; lane < 32; ++lane) other[lane] = now[butterfly_source(loop, lane, step)];
    for (unsigned lane = 0; lane < 32; ++lane) now[lane] = both(now[lane], other[lane]);
  }
  for (unsigned lane = 0; lane < 32; ++lane) words[lane] = bits_of(now[lane]);
}

// One step of such a loop, or, where the whole warp is in it, all that are left: true says that the loop is done. The
// arithmetic is the same in the same order; what is saved is waiting for one another once a step.
template <class T, class Operation>
inline bool butterfly(unsigned mask, T& value, Source how, int step, int up_to, int width, Operation operation, int line) {
  if constexpr (std::is_arithmetic<T>::value && !std::is_volatile<T>::value && sizeof(T) <= 8) {
    if constexpr (std::is_same<decltype(operation(value, value)), T>::value) {
      unsigned long long word = bits_of(value);
      const bool done = butterfly_words(mask, word, {how, step, up_to, width}, &butterfly_steps<T, Operation>, &operation, line);
      value = done ? from_bits<T>(word) : operation(value, from_bits<T>(word));
      return done;
    }
  }
  value = operation(value, shuffle(mask, value, how, step, width, line));
  return false;
}

}  // namespace emulator

inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  ::emulator::warp_operation(mask, ::emulator::WarpKind::Sync, nullptr, nullptr, line);
}
#define EMULATOR_SHUFFLE(name, how, Operand)                                                            \
  template <class T>                                                                                     \
  inline T name(unsigned mask, T value, Operand operand, int width = 32, int line = __builtin_LINE()) { \
    return ::emulator::shuffle(mask, value, ::emulator::Source::how, (int)operand, width, line);        \
  }
EMULATOR_SHUFFLE(__shfl_sync, Index, int)
EMULATOR_SHUFFLE(__shfl_up_sync, Up, unsigned)
EMULATOR_SHUFFLE(__shfl_down_sync, Down, unsigned)
EMULATOR_SHUFFLE(__shfl_xor_sync, Xor, int)
#undef EMULATOR_SHUFFLE

#define EMULATOR_VOTE(integer, name, kind, same) \
  inline integer name(unsigned mask, same v, int line = __builtin_LINE()) { return (integer)::emulator::vote(mask, ::emulator::Vote::kind, v, line); }
inline unsigned __ballot_sync(unsigned mask, int p, int line = __builtin_LINE()) { return (unsigned)::emulator::vote(mask, ::emulator::Vote::Ballot, !!p, line); }
inline int __any_sync(unsigned mask, int p, int line = __builtin_LINE()) { return ::emulator::vote(mask, ::emulator::Vote::Any, !!p, line) != 0; }
inline int __all_sync(unsigned mask, int p, int line = __builtin_LINE()) { return ::emulator::vote(mask, ::emulator::Vote::All, !!p, line) != 0; }
EMULATOR_VOTE(unsigned, __reduce_add_sync, Add, unsigned)
EMULATOR_VOTE(unsigned, __reduce_min_sync, Min, unsigned)
EMULATOR_VOTE(unsigned, __reduce_max_sync, Max, unsigned)
EMULATOR_VOTE(unsigned, __reduce_and_sync, And, unsigned)
EMULATOR_VOTE(unsigned, __reduce_or_sync, Or, unsigned)
EMULATOR_VOTE(unsigned, __reduce_xor_sync, Xor, unsigned)
EMULATOR_VOTE(int, __reduce_add_sync, Add, int)
EMULATOR_VOTE(int, __reduce_min_sync, MinSigned, int)
EMULATOR_VOTE(int, __reduce_max_sync, MaxSigned, int)
#undef EMULATOR_VOTE

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  return (unsigned)::emulator::vote(mask, ::emulator::Vote::MatchAny, ::emulator::bits_of(value), line);
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* equal, int line = __builtin_LINE()) {
  const unsigned long long answer = ::emulator::vote(mask, ::emulator::Vote::MatchAll, ::emulator::bits_of(value), line);
  *equal = (int)(answer >> 32);
  return (unsigned)answer;
}
inline unsigned __activemask(int line = __builtin_LINE()) { return ::emulator::active_mask(line); }
inline unsigned __lanemask_lt() { return (1u << ::emulator::lane()) - 1; }
inline unsigned __lanemask_le() { return 0xffffffffu >> (31 - ::emulator::lane()); }
inline unsigned __lanemask_eq() { return 1u << ::emulator::lane(); }
