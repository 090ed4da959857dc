// Warp operations: every lane leaves a word and waits; the last to arrive computes for all and goes on at once.
#include "check.h"
#include "findings.h"
#include "switching.h"

namespace emulator {

static EMULATOR_HOT Fibre& in_kernel(const char* what, int line) {
  Fibre* me = current_fibre();
  return __builtin_expect(me != nullptr, 1) ? *me : calling(what, line);
}

unsigned lane() { return in_kernel("a warp function", 0).lane; }

// ------------------------------------------------------------------------------------------------------- arriving

// Whether all lanes that `fibre` waits for stand at an operation with the same mask. A different operation is an error.
static bool agreed(Block& block, const Fibre& fibre, unsigned mask) {
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    const Fibre& other = block.fibres[fibre.warp * 32u + __builtin_ctz(rest)];
    if ((other.mask & block.warps[fibre.warp].live) != mask) return false;
    const auto same = [](WarpKind kind) { return kind == WarpKind::Butterfly ? WarpKind::Shuffle : kind; };
    if (same(other.kind) != same(fibre.kind))
      found("warp_divergence", here(nullptr, fibre.line), format("lanes of one warp meet in different warp operations: line %d and line %d (mask %08x)", other.line, fibre.line, mask));
  }
  return true;
}

static unsigned checked_mask(const Warp& warp, const Fibre& me, unsigned mask, int line) {
  if (!(mask >> me.lane & 1))
    found("warp_mask", here(nullptr, line), format("lane %u calls a warp operation with mask %08x, in which it is not named", me.lane, mask));
  if (mask & ~warp.existing)
    found("warp_mask", here(nullptr, line), format("mask %08x names lanes that this warp of %d threads does not have", mask, __builtin_popcount(warp.existing)));
  if (mask & ~warp.live && configuration().strict)
    found("warp_mask", here(nullptr, line), format("mask %08x names lanes that have left the kernel (alive: %08x)", mask, warp.live));
  return mask & warp.live;
}

// `me` now stands at an operation. Returns the lanes that take part once all of them do, else 0.
static EMULATOR_HOT unsigned arrive(Block& block, Warp& warp, Fibre& me, unsigned mask, WarpKind kind, int line) {
  settle_pending();
  if (mask == kFullMask) mask = warp.existing;
  if (__builtin_expect((mask & ~warp.live) || !(mask >> me.lane & 1), 0)) mask = checked_mask(warp, me, mask, line);
  if (!warp.arrived) warp.common_mask = mask, warp.common_kind = kind, warp.uniform = true;
  else if (__builtin_expect(mask != warp.common_mask || kind != warp.common_kind, 0)) warp.uniform = false;
  warp.arrived |= 1u << me.lane;
  me.mask = mask;
  me.kind = kind;
  me.line = line;
  me.state = State::AtWarp;
  if ((warp.arrived & mask) != mask) return 0;
  return __builtin_expect(warp.uniform, 1) || agreed(block, me, mask) ? mask : 0;
}

// ---------------------------------------------------------------------------------------------------- what they do

static void exchange(Warp& warp, const Fibre* lanes, unsigned mask) {
  if (__builtin_expect(mask == kFullMask, 1)) {
    for (unsigned lane = 0; lane < 32; ++lane) warp.result[lane] = warp.value[warp.source[lane]];
    return;
  }
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    const unsigned lane = (unsigned)__builtin_ctz(rest), source = warp.source[lane];
    const bool there = mask >> source & 1;
    if (!there && configuration().strict)
      found("warp_mask", here(nullptr, lanes[lane].line), format("lane %u reads lane %u, which takes no part (mask %08x): the value is undefined on a GPU", lane, source, mask));
    warp.result[lane] = warp.value[there ? source : lane];  // undefined on a GPU; the lane keeps its own value here
  }
}

static unsigned combined(Vote kind, unsigned a, unsigned b) {
  switch (kind) {
    case Vote::Add: return a + b;
    case Vote::Min: return std::min(a, b);
    case Vote::Max: return std::max(a, b);
    case Vote::MinSigned: return (unsigned)std::min((int)a, (int)b);
    case Vote::MaxSigned: return (unsigned)std::max((int)a, (int)b);
    case Vote::And: return a & b;
    case Vote::Or: return a | b;
    case Vote::Xor: return a ^ b;
    default: return 0;
  }
}

static void count_votes(Warp& warp, unsigned mask) {
  const unsigned first = (unsigned)__builtin_ctz(mask);
  const Vote kind = (Vote)warp.source[first];
  unsigned ballot = 0, result = (unsigned)warp.value[first];
  bool equal = true;
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    const unsigned lane = (unsigned)__builtin_ctz(rest);
    ballot |= (unsigned)warp.value[lane] ? 1u << lane : 0;
    equal &= warp.value[lane] == warp.value[first];
    if (lane != first) result = combined(kind, result, (unsigned)warp.value[lane]);
  }
  switch (kind) {
    case Vote::Ballot: result = ballot; break;
    case Vote::Any: result = ballot != 0; break;
    case Vote::All: result = ballot == mask; break;
    default: break;
  }
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    const unsigned lane = (unsigned)__builtin_ctz(rest);
    if (kind == Vote::MatchAll) {
      warp.result[lane] = equal ? 1ull << 32 | mask : 0;
    } else if (kind == Vote::MatchAny) {
      warp.result[lane] = 0;
      for (unsigned others = mask; others; others &= others - 1)
        if (warp.value[__builtin_ctz(others)] == warp.value[lane]) warp.result[lane] |= others & -others;
    } else {
      warp.result[lane] = result;
    }
  }
}

static void compute(Worker& w, Fibre* lanes, const Fibre& last, unsigned mask) {
  if (!last.complete) return;
  void* deposits[32];
  for (unsigned rest = mask; rest; rest &= rest - 1) deposits[__builtin_ctz(rest)] = lanes[__builtin_ctz(rest)].deposit;
  w.collective = true;
  last.complete(deposits, mask);
  w.collective = false;
}

static void fold(Worker& w, Warp& warp, const Fibre* lanes, const Fibre& last, unsigned mask) {
  if (!warp.uniform || mask != kFullMask) {
    warp.fused &= ~mask;
    return exchange(warp, lanes, mask);
  }
  warp.fused = kFullMask;
  memcpy(warp.result, warp.value, sizeof warp.result);
  w.collective = true;
  warp.chain(warp.result, last.deposit);
  w.collective = false;
}

// All lanes of `mask` have arrived, `last` among them.
static void finish(Worker& w, Warp& warp, Fibre& last, unsigned mask) {
  Fibre* lanes = &last - last.lane;
  switch (last.kind) {
    case WarpKind::Shuffle: exchange(warp, lanes, mask); break;
    case WarpKind::Vote: count_votes(warp, mask); break;
    case WarpKind::Butterfly: fold(w, warp, lanes, last, mask); break;
    default: compute(w, lanes, last, mask);
  }
  if (!warp.uniform && last.kind == WarpKind::Shuffle) warp.fused &= ~mask;  // some may stand in a chain
  warp.arrived &= ~mask;
  w.block->idle_rounds = 0;
  if (last.kind == WarpKind::Sync || last.kind == WarpKind::Matrix) {  // shuffles and votes order no memory
    uint16_t phase = 0;
    for (unsigned rest = mask; rest; rest &= rest - 1) phase = std::max(phase, lanes[__builtin_ctz(rest)].warp_phase);
    for (unsigned rest = mask; rest; rest &= rest - 1) lanes[__builtin_ctz(rest)].warp_phase = (uint16_t)(phase + 1);
  }
}

// Waits for the other lanes; the last of them does the work and, in the ordinary order, goes on first.
static EMULATOR_HOT void together(Worker& w, Block& block, Warp& warp, Fibre& me, unsigned mask, WarpKind kind, int line) {
  mask = arrive(block, warp, me, mask, kind, line);
  if (!mask) return give_way(w, me);
  finish(w, warp, me, mask);
  if (__builtin_expect(w.order == Order::Forward, 1)) {
    me.state = State::Running;
    if (mask &= ~(1u << me.lane)) make_ready(block, me.warp, mask);
    return;
  }
  make_ready(block, me.warp, mask);
  give_way(w, me);
}

void leave_warp(Block& block, Fibre& fibre) {
  Warp& warp = block.warps[fibre.warp];
  for (unsigned rest = warp.arrived; rest; rest &= rest - 1) {
    Fibre& waiting = block.fibres[fibre.warp * 32u + __builtin_ctz(rest)];
    if (!(waiting.mask >> fibre.lane & 1)) continue;
    if (configuration().strict)
      found("warp_mask", here(nullptr, waiting.line), format("lane %u waits for lane %u, which has left the kernel", waiting.lane, fibre.lane));
    const unsigned mask = waiting.mask & warp.live;
    if ((warp.arrived & mask) != mask || !agreed(block, waiting, mask)) continue;
    finish(*worker, warp, waiting, mask);
    make_ready(block, fibre.warp, mask);
    break;
  }
}

// ---------------------------------------------------------------------------------------------- what kernels call

static EMULATOR_HOT unsigned source_lane(unsigned lane, Source how, unsigned operand, unsigned width) {
  const unsigned first = lane & ~(width - 1u), end = first + width;
  switch (how) {
    case Source::Index: return (first | (operand & (width - 1u))) & 31u;
    case Source::Up: return operand <= lane - first ? lane - operand : lane;
    case Source::Down: return operand < end - lane ? lane + operand : lane;
    case Source::Xor: return ((lane ^ operand) < end ? lane ^ operand : lane) & 31u;
  }
  return lane;
}

void warp_operation(unsigned mask, WarpKind kind, void* deposit, Complete complete, int line) {
  Fibre& me = in_kernel("a warp function", line);
  Block& block = *worker->block;
  me.deposit = deposit;
  me.complete = complete;
  together(*worker, block, block.warps[me.warp], me, mask, kind, line);
}

unsigned long long shuffle_word(unsigned mask, unsigned long long value, Source how, int operand, int width, int line) {
  Fibre& me = in_kernel("a warp function", line);
  Block& block = *worker->block;
  Warp& warp = block.warps[me.warp];
  const unsigned lane = me.lane;
  warp.value[lane] = value;
  warp.source[lane] = (uint8_t)source_lane(lane, how, (unsigned)operand, (unsigned)width);
  together(*worker, block, warp, me, mask, WarpKind::Shuffle, line);
  return warp.result[lane];
}

bool butterfly(unsigned long long& word, Butterfly chain, void* both, unsigned first_step, int line) {
  Fibre& me = in_kernel("a warp function", line);
  Block& block = *worker->block;
  Warp& warp = block.warps[me.warp];
  const unsigned lane = me.lane;
  if (!warp.arrived) warp.chain = chain;
  else if (warp.chain != chain) warp.uniform = false;
  warp.value[lane] = word;
  warp.source[lane] = (uint8_t)(lane ^ first_step);
  me.deposit = both;
  together(*worker, block, warp, me, kFullMask, WarpKind::Butterfly, line);
  word = warp.result[lane];
  return warp.fused >> lane & 1;
}

unsigned long long vote(unsigned mask, Vote kind, unsigned long long value, int line) {
  Fibre& me = in_kernel("a warp function", line);
  Block& block = *worker->block;
  Warp& warp = block.warps[me.warp];
  const unsigned lane = me.lane;
  warp.value[lane] = value;
  warp.source[lane] = (uint8_t)kind;
  together(*worker, block, warp, me, mask, WarpKind::Vote, line);
  return warp.result[lane];
}

}  // namespace emulator
