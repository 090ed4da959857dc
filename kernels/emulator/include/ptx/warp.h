// Warp instructions and barriers on the runtime's own operations.
#pragma once
#include "memory.h"

namespace ptx {

enum class Shuffle { Up, Down, Bfly, Idx };
// PTX ISA, "shfl.sync": c holds the clamp value in bits 0-4 and the segment mask in bits 8-12. `there`: the source is in range.
template <Shuffle How>
PTX_INLINE uint32_t shuffled(uint32_t value, uint32_t b, uint32_t c, uint32_t mask, bool& there, int line) {
  const uint32_t lane = ::emulator::lane(), segments = c >> 8 & 31, clamp = c & 31, by = b & 31;
  const uint32_t last = (lane & segments) | (clamp & ~segments), first = lane & segments;
  int from = 0;
  switch (How) {
    case Shuffle::Up: from = (int)lane - (int)by, there = from >= (int)last; break;
    case Shuffle::Down: from = (int)(lane + by), there = from <= (int)last; break;
    case Shuffle::Bfly: from = (int)(lane ^ by), there = from <= (int)last; break;
    case Shuffle::Idx: from = (int)(first | (by & ~segments)), there = from <= (int)last; break;
  }
  if (!there) from = (int)lane;
  return (uint32_t)::emulator::shuffle_word(mask, value, ::emulator::Source::Index, from, 32, line);
}

PTX_INLINE bool& anywhere() {
  static __thread bool there;
  return there;
}

template <class T, class Both, unsigned... Steps>
EMULATOR_UNCHECKED void fold_lanes(unsigned long long* words, void* given) {
  const Both& both = *static_cast<Both*>(given);
  T now[32], other[32];
  for (unsigned lane = 0; lane < 32; ++lane) now[lane] = as<T>((uint32_t)words[lane]);
  for (const unsigned step : {Steps...}) {
    for (unsigned lane = 0; lane < 32; ++lane) other[lane] = now[lane ^ step];
    for (unsigned lane = 0; lane < 32; ++lane) now[lane] = both(now[lane], other[lane]);
  }
  for (unsigned lane = 0; lane < 32; ++lane) words[lane] = as<uint32_t>(now[lane]);
}
// A chain of butterfly shuffles over a whole warp, each followed by the same operation.
template <class T, unsigned First, unsigned... Rest, class Both>
PTX_INLINE T butterfly(T value, Both both, int line) {
  unsigned long long word = as<uint32_t>(value);
  if (::emulator::butterfly(word, &fold_lanes<T, Both, First, Rest...>, &both, First, line)) return as<T>((uint32_t)word);
  value = both(value, as<T>((uint32_t)word));
  for (const unsigned step : {Rest...}) {
    const int from = (int)(::emulator::lane() ^ step);
    value = both(value, as<T>((uint32_t)::emulator::shuffle_word(0xffffffffu, as<uint32_t>(value), ::emulator::Source::Index, from, 32, line)));
  }
  return value;
}

template <class T>
PTX_INLINE T reduced(uint32_t mask, T value, ::emulator::Vote kind, int line) {
  return (T)::emulator::vote(mask, kind, (uint32_t)value, line);
}
PTX_INLINE bool uniform(uint32_t mask, bool value, int line) {
  const uint32_t votes = (uint32_t)::emulator::vote(mask, ::emulator::Vote::Ballot, value, line);
  return votes == 0 || (votes & mask) == mask;
}
PTX_INLINE uint32_t matching(uint32_t mask, uint64_t value, bool& equal, int line) {
  const uint64_t answer = ::emulator::vote(mask, ::emulator::Vote::MatchAll, value, line);
  equal = answer >> 32 & 1;
  return (uint32_t)answer;
}
PTX_INLINE bool elected(uint32_t mask, uint32_t& leader, int line) {
  ::emulator::warp_operation(mask, ::emulator::WarpKind::Sync, nullptr, nullptr, line);
  leader = (uint32_t)__builtin_ctz(mask);
  return ::emulator::lane() == leader;
}

void named_barrier(uint32_t number, uint32_t threads, bool waits, int line);
PTX_INLINE void block_barrier(uint32_t number, int line, unsigned site) {
  if (number == 0) ::emulator::barrier(line, ::emulator::Barrier::Plain, 0, site);
  else named_barrier(number, blockDim.x * blockDim.y * blockDim.z, true, line);
}

}  // namespace ptx
