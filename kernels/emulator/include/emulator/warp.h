// Warp-level functions (CUDA C++ Programming Guide, "Warp Shuffle", "Warp Vote", "Warp Match", "Warp Reduce").
#pragma once

namespace emulator {

template <class T>
struct ShuffleSlot {
  T value, result;
  unsigned source, lane;
  int line;
};
template <class T>
EMULATOR_UNCHECKED void complete_shuffle(void** deposits, unsigned mask) {
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    auto* slot = static_cast<ShuffleSlot<T>*>(deposits[__builtin_ctz(rest)]);
    if (mask >> slot->source & 1)
      slot->result = static_cast<ShuffleSlot<T>*>(deposits[slot->source])->value;
    else  // undefined on a GPU; the lane keeps its own value here
      shuffle_outside_mask(slot->lane, slot->source, mask, slot->line);
  }
}
template <class T>
T shuffle(unsigned mask, T value, unsigned source, int line) {
  static_assert(std::is_trivially_copyable<T>::value, "a shuffled value must be trivially copyable");
  ShuffleSlot<T> slot{value, value, source, lane(), line};
  warp_operation(mask, WarpKind::Shuffle, &slot, &complete_shuffle<T>, line);
  return slot.result;
}

enum class Vote { Ballot, Any, All, MatchAny, MatchAll, Add, Min, Max, MinSigned, MaxSigned, And, Or, Xor };
struct VoteSlot {
  Vote kind;
  unsigned long long value;
  unsigned result;
  int all_equal;
};
void complete_vote(void** deposits, unsigned mask);
inline VoteSlot vote(unsigned mask, Vote kind, unsigned long long value, int line) {
  VoteSlot slot{kind, value, 0, 0};
  warp_operation(mask, WarpKind::Vote, &slot, &complete_vote, line);
  return slot;
}

}  // namespace emulator

inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  ::emulator::warp_operation(mask, ::emulator::WarpKind::Sync, nullptr, nullptr, line);
}
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
  const unsigned lane = ::emulator::lane();
  return ::emulator::shuffle(mask, value, (lane & ~(width - 1u)) | (source & (width - 1u)), line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  const unsigned lane = ::emulator::lane(), first = lane & ~(width - 1u);
  return ::emulator::shuffle(mask, value, lane >= first + delta ? lane - delta : lane, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  const unsigned lane = ::emulator::lane(), end = (lane & ~(width - 1u)) + width;
  return ::emulator::shuffle(mask, value, lane + delta < end ? lane + delta : lane, line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, int line = __builtin_LINE()) {
  const unsigned lane = ::emulator::lane(), source = lane ^ bits, end = (lane & ~(width - 1u)) + width;
  return ::emulator::shuffle(mask, value, source < end ? source : lane, line);
}

#define EMULATOR_VOTE(integer, name, kind, same) \
  inline integer name(unsigned mask, same v, int line = __builtin_LINE()) { return (integer)::emulator::vote(mask, ::emulator::Vote::kind, v, line).result; }
inline unsigned __ballot_sync(unsigned mask, int p, int line = __builtin_LINE()) { return ::emulator::vote(mask, ::emulator::Vote::Ballot, !!p, line).result; }
inline int __any_sync(unsigned mask, int p, int line = __builtin_LINE()) { return ::emulator::vote(mask, ::emulator::Vote::Any, !!p, line).result; }
inline int __all_sync(unsigned mask, int p, int line = __builtin_LINE()) { return ::emulator::vote(mask, ::emulator::Vote::All, !!p, line).result; }
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

namespace emulator {
template <class T>
unsigned long long bits_of(T value) {
  static_assert(sizeof(T) <= 8, "at most 8 bytes can be matched");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
}  // namespace emulator
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  return ::emulator::vote(mask, ::emulator::Vote::MatchAny, ::emulator::bits_of(value), line).result;
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* equal, int line = __builtin_LINE()) {
  const auto slot = ::emulator::vote(mask, ::emulator::Vote::MatchAll, ::emulator::bits_of(value), line);
  *equal = slot.all_equal;
  return slot.result;
}
inline unsigned __activemask(int line = __builtin_LINE()) { return ::emulator::active_mask(line); }
inline unsigned __lanemask_lt() { return (1u << ::emulator::lane()) - 1; }
inline unsigned __lanemask_le() { return 0xffffffffu >> (31 - ::emulator::lane()); }
inline unsigned __lanemask_eq() { return 1u << ::emulator::lane(); }
