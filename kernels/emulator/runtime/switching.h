// Whose turn it is: the ready lanes of a block, and the jump from one fibre's stack to the next one's.
#pragma once
#include "scheduler.h"

extern "C" void emulator_switch(void** save, void* to);

#define EMULATOR_HOT inline __attribute__((always_inline))

namespace emulator {

void make_all_ready(Block& block, State state);
Fibre& calling(const char* what, int line);           // the fibre that called; found() when it was none
void give_way_slowly(Worker& w, Fibre& me);
void drop_bulk_copies(const Block& block);            // those that a block has never waited for
void leave_warp(Block& block, Fibre& fibre);          // a fibre ends: an operation may have waited for it alone

EMULATOR_HOT void make_ready(Block& block, unsigned warp, unsigned lanes) {
  block.warps[warp].ready |= lanes;
  block.ready_warps |= 1u << warp;
}

inline uint64_t random_number(Block& block) {
  block.random ^= block.random << 13;
  block.random ^= block.random >> 7;
  block.random ^= block.random << 17;
  return block.random;
}

inline unsigned nth_bit(unsigned set, unsigned n) {
  while (n--) set &= set - 1;
  return (unsigned)__builtin_ctz(set);
}

// The next fibre of the block, taken out of the ready ones: of the warp that ran last as long as it has any.
EMULATOR_HOT Fibre* take_ready(Worker& w, Block& block, unsigned warp) {
  if (!block.ready_warps) return nullptr;
  unsigned lane;
  if (__builtin_expect(w.order == Order::Random, 0)) {
    warp = nth_bit(block.ready_warps, (unsigned)(random_number(block) % (unsigned)__builtin_popcount(block.ready_warps)));
    lane = nth_bit(block.warps[warp].ready, (unsigned)(random_number(block) % (unsigned)__builtin_popcount(block.warps[warp].ready)));
  } else {
    const bool forward = w.order == Order::Forward;
    if (!block.warps[warp].ready) warp = (unsigned)(forward ? __builtin_ctz(block.ready_warps) : 31 - __builtin_clz(block.ready_warps));
    lane = (unsigned)(forward ? __builtin_ctz(block.warps[warp].ready) : 31 - __builtin_clz(block.warps[warp].ready));
  }
  if (!(block.warps[warp].ready &= ~(1u << lane))) block.ready_warps &= ~(1u << warp);
  return &block.fibres[warp * 32 + lane];
}

EMULATOR_HOT void enter(Worker& w, Fibre& fibre) {
  w.fibre = &fibre;
  fibre.state = State::Running;
  threadIdx = fibre.index;
  ++w.switches;
}

// Goes from one stack to another; a null fibre is the worker's own stack.
EMULATOR_HOT void jump(Worker& w, Fibre* from, Fibre* to) {
  if (to) enter(w, *to); else w.fibre = nullptr;
  emulator_switch(from ? &from->stack_pointer : &w.scheduler_pointer, to ? to->stack_pointer : w.scheduler_pointer);
}

// Hands the processor to another fibre of the block.
EMULATOR_HOT void give_way(Worker& w, Fibre& me) {
  Block& block = *w.block;
  Fibre* next = take_ready(w, block, me.warp);
  if (__builtin_expect(!next || next == &me, 0)) {
    if (next) make_ready(block, me.warp, 1u << me.lane);
    return give_way_slowly(w, me);
  }
  jump(w, &me, next);
}

}  // namespace emulator
