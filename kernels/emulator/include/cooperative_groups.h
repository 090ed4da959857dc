// Cooperative groups: blocks, tiles, coalesced threads and the grid, on the same barriers and warp operations.
#pragma once
#include "cuda_runtime.h"

namespace cooperative_groups {

namespace detail {
inline unsigned rank_in_block() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
}  // namespace detail

struct thread_block {
  static void sync(int line = __builtin_LINE()) { ::emulator::barrier(line, ::emulator::Barrier::Plain, 0); }
  static unsigned thread_rank() { return detail::rank_in_block(); }
  static unsigned size() { return detail::block_size(); }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

struct grid_group {
  static void sync(int line = __builtin_LINE()) { ::emulator::grid_barrier(line); }
  static bool is_valid() { return ::emulator::grid_is_resident(); }
  static unsigned long long size() { return num_blocks() * detail::block_size(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() { return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }
  static unsigned long long thread_rank() { return block_rank() * detail::block_size() + detail::rank_in_block(); }
  static dim3 group_dim() { return gridDim; }
};
inline grid_group this_grid() { return {}; }

template <unsigned Size, class Parent = thread_block>
struct thread_block_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
  static unsigned first_lane() { return ::emulator::lane() & ~(Size - 1); }
  static unsigned mask() { return (Size == 32 ? 0xffffffffu : (1u << (Size & 31)) - 1) << first_lane(); }
  static unsigned thread_rank() { return ::emulator::lane() & (Size - 1); }
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned meta_group_rank() { return detail::rank_in_block() / Size; }
  static unsigned meta_group_size() { return (detail::block_size() + Size - 1) / Size; }
  static void sync(int line = __builtin_LINE()) { __syncwarp(mask(), line); }
  template <class T> static T shfl(T v, int source, int line = __builtin_LINE()) { return __shfl_sync(mask(), v, source, Size, line); }
  template <class T> static T shfl_xor(T v, unsigned bits, int line = __builtin_LINE()) { return __shfl_xor_sync(mask(), v, (int)bits, Size, line); }
  template <class T> static T shfl_down(T v, unsigned delta, int line = __builtin_LINE()) { return __shfl_down_sync(mask(), v, delta, Size, line); }
  template <class T> static T shfl_up(T v, unsigned delta, int line = __builtin_LINE()) { return __shfl_up_sync(mask(), v, delta, Size, line); }
  static int any(int p, int line = __builtin_LINE()) { return __any_sync(mask(), p, line); }
  static int all(int p, int line = __builtin_LINE()) { return __all_sync(mask(), p, line); }
  static unsigned ballot(int p, int line = __builtin_LINE()) { return __ballot_sync(mask(), p, line) >> first_lane(); }
  template <class T> static unsigned match_any(T v, int line = __builtin_LINE()) { return __match_any_sync(mask(), v, line) >> first_lane(); }
};
template <unsigned Size, class Group> inline thread_block_tile<Size, Group> tiled_partition(const Group&) { return {}; }

struct coalesced_group {
  unsigned members;
  unsigned size() const { return __popc(members); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return __popc(members & __lanemask_lt()); }
  unsigned mask() const { return members; }
  void sync(int line = __builtin_LINE()) const { __syncwarp(members, line); }
  unsigned lane_of(unsigned rank) const {
    unsigned rest = members;
    while (rank--) rest &= rest - 1;
    return __builtin_ctz(rest);
  }
  template <class T> T shfl(T v, unsigned rank, int line = __builtin_LINE()) const { return __shfl_sync(members, v, lane_of(rank), 32, line); }
  template <class T> T shfl_down(T v, unsigned d, int line = __builtin_LINE()) const { const unsigned r = thread_rank() + d; return shfl(v, r < size() ? r : thread_rank(), line); }
  template <class T> T shfl_up(T v, unsigned d, int line = __builtin_LINE()) const { const unsigned r = thread_rank(); return shfl(v, r >= d ? r - d : r, line); }
  template <class T> T shfl_xor(T v, unsigned bits, int line = __builtin_LINE()) const { const unsigned r = thread_rank() ^ bits; return shfl(v, r < size() ? r : thread_rank(), line); }
  int any(int p, int line = __builtin_LINE()) const { return __any_sync(members, p, line); }
  int all(int p, int line = __builtin_LINE()) const { return __all_sync(members, p, line); }
  unsigned ballot(int p, int line = __builtin_LINE()) const {
    const unsigned votes = __ballot_sync(members, p, line);
    unsigned packed = 0, at = 0;
    for (unsigned rest = members; rest; rest &= rest - 1) packed |= (votes >> __builtin_ctz(rest) & 1u) << at++;
    return packed;
  }
};
inline coalesced_group coalesced_threads(int line = __builtin_LINE()) { return {__activemask(line)}; }
template <unsigned Size, class Parent>
inline coalesced_group binary_partition(const thread_block_tile<Size, Parent>& tile, bool p, int line = __builtin_LINE()) {
  const unsigned votes = __ballot_sync(tile.mask(), p, line);
  return {p ? votes : tile.mask() & ~votes};
}

template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };     // the smaller, as in CUDA
template <class T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };  // the larger
template <class T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };

template <unsigned Size, class Parent, class T, class Op>
inline T reduce(const thread_block_tile<Size, Parent>& tile, T value, Op op, int line = __builtin_LINE()) {
  for (int offset = Size / 2; offset; offset >>= 1)
    if (::emulator::butterfly(tile.mask(), value, ::emulator::Source::Xor, offset, 0, (int)Size, op, line)) break;
  return value;
}
template <class T, class Op>
inline T reduce(const coalesced_group& group, T value, Op op, int line = __builtin_LINE()) {
  T total = group.shfl(value, 0, line);
  for (unsigned rank = 1; rank < group.size(); ++rank) total = op(total, group.shfl(value, rank, line));
  return total;
}
template <class Group, class T, class Op>
inline T inclusive_scan(const Group& group, T value, Op op, int line = __builtin_LINE()) {
  for (unsigned offset = 1; offset < group.size(); offset <<= 1) {
    const T below = group.shfl_up(value, offset, line);
    if (group.thread_rank() >= offset) value = op(below, value);
  }
  return value;
}
template <class Group, class T>
inline T inclusive_scan(const Group& group, T value, int line = __builtin_LINE()) { return inclusive_scan(group, value, plus<T>(), line); }
template <class Group, class T, class Op>
inline T exclusive_scan(const Group& group, T value, Op op, int line = __builtin_LINE()) {
  const T below = group.shfl_up(inclusive_scan(group, value, op, line), 1, line);
  return group.thread_rank() ? below : T();
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value, int line = __builtin_LINE()) { return exclusive_scan(group, value, plus<T>(), line); }

template <class Group> inline void sync(const Group& group, int line = __builtin_LINE()) { group.sync(line); }
template <class Group, class T>
inline void memcpy_async(const Group& group, T* to, const T* from, size_t bytes) {
  for (size_t i = group.thread_rank(); i * sizeof(T) < bytes; i += group.size()) ::emulator::copy_later(to + i, from + i, sizeof(T), 0, nullptr);
  ::emulator::close_copy_batch();
}
template <class Group> inline void wait(const Group& group, int line = __builtin_LINE()) { ::emulator::finish_copies(0); group.sync(line); }
template <unsigned Stages, class Group> inline void wait_prior(const Group& group, int line = __builtin_LINE()) { ::emulator::finish_copies(Stages); group.sync(line); }

}  // namespace cooperative_groups
