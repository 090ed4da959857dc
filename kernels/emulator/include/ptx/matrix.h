// Matrix products of a warp (PTX ISA, "Warp-Level Matrix Instructions"): each lane leaves the registers of its fragments, the last
// one multiplies. The products of a step are exact, their sum is rounded once; f64 goes by fused steps, in the order of k.
#pragma once
#include "memory.h"

namespace ptx {

enum class Element { f64, f32, s32, tf32, f16, bf16, s8, u8, e4m3, e5m2, s4, u4, b1 };
enum class Joined { Times, And, Xor };

constexpr int bits_of_element(Element kind) {
  return kind == Element::f64 ? 64 : kind <= Element::tf32 ? 32 : kind <= Element::bf16 ? 16 : kind <= Element::e5m2 ? 8 : kind <= Element::u4 ? 4 : 1;
}
constexpr bool is_whole(Element kind) { return kind == Element::s32 || kind == Element::s8 || kind == Element::u8 || kind >= Element::s4; }
template <Element Kind> struct Held { typedef std::conditional_t<Kind == Element::f64, uint64_t, uint32_t> word; typedef std::conditional_t<is_whole(Kind), int64_t, double> value; };

PTX_INLINE float half_value(uint16_t bits) {
#ifdef __F16C__
  typedef short Eight __attribute__((vector_size(16)));
  return __builtin_ia32_vcvtph2ps(Eight{(short)bits, 0, 0, 0, 0, 0, 0, 0})[0];
#else
  return ::emulator::HalfFormat::decode(bits);
#endif
}

// Element `at` of a register; the tensor cores read the upper 19 bits of a tf32.
template <Element Kind>
PTX_INLINE typename Held<Kind>::value element(typename Held<Kind>::word word, int at) {
  constexpr int width = bits_of_element(Kind);
  if constexpr (Kind == Element::f64) return as<double>(word);
  else if constexpr (Kind == Element::f32) return as<float>(word);
  else if constexpr (Kind == Element::tf32) return as<float>(word & 0xffffe000u);
  else if constexpr (Kind == Element::s32) return (int32_t)word;
  else if constexpr (Kind == Element::f16) return half_value((uint16_t)(word >> 16 * at));
  else if constexpr (Kind == Element::bf16) return as<float>((uint32_t)(word >> 16 * at) << 16);
  else if constexpr (Kind == Element::e4m3) return eight_bits<false>((uint8_t)(word >> 8 * at));
  else if constexpr (Kind == Element::e5m2) return eight_bits<true>((uint8_t)(word >> 8 * at));
  else if constexpr (Kind == Element::s8 || Kind == Element::s4) return (int32_t)(word << (32 - width * (at + 1))) >> (32 - width);
  else return (int64_t)(word >> width * at & ((1u << width) - 1));
}

// Where a lane's elements lie. Registers: as mma.sync states it. Fragments: of wmma, where sums lie as a GPU puts them and a
// factor lies by rows; f16 factors fill eight registers, so that some elements are held more than once.
struct Registers {
  template <int, int, int E>
  static int left(int lane, int r, int e, int columns) {
    return (lane / 4 + 8 * (r & 1)) * columns + lane % 4 * E + e + r / 2 * 4 * E;
  }
  template <int, int, int E>
  static int right(int lane, int r, int e, int columns) { return (lane % 4 * E + e + r * 4 * E) * columns + lane / 4; }
  template <int, int N>
  static int sum(int lane, int i) { return (lane / 4 + 8 * (i / 2)) * N + lane % 4 * 2 + i % 2; }
};
struct Fragments {
  template <int Count, int Size, int E>
  static int left(int lane, int r, int e, int) { return (lane * Count * E + r * E + e) % Size; }
  template <int Count, int Size, int E>
  static int right(int lane, int r, int e, int columns) { return left<Count, Size, E>(lane, r, e, columns); }
  // Tiles of 16 by 8, each as mma.sync has it: down the rows first, then across.
  template <int M, int N>
  static int sum(int lane, int i) {
    constexpr int tall = M < 16 ? 8 : 16, per = tall * 8 / 32, down = M / tall;
    const int tile = i / per, at = i % per;
    return (tile % down * tall + lane / 4 + 8 * (at / 2)) * N + tile / down * 8 + lane % 4 * 2 + at % 2;
  }
};

struct Factors { const void *a, *b, *c; void* d; };

template <int M, int N, int K, Joined How, class T>
__attribute__((no_sanitize("address"))) inline void add_products(const T* a, const T* b, T* sums) {
  if constexpr (How == Joined::Times) {
    for (int i = 0; i < M; ++i)
      for (int k = 0; k < K; ++k)
        for (int j = 0; j < N; ++j) {
          if constexpr (std::is_same<T, double>::value) sums[i * N + j] = __builtin_fma(a[i * K + k], b[k * N + j], sums[i * N + j]);
          else sums[i * N + j] += a[i * K + k] * b[k * N + j];
        }
  } else {
    for (int i = 0; i < M; ++i)
      for (int k = 0; k < K; ++k)
        for (int j = 0; j < N; ++j) sums[i * N + j] += How == Joined::And ? a[i * K + k] & b[k * N + j] : a[i * K + k] ^ b[k * N + j];
  }
}

template <Element Kind, bool Limited>
PTX_INLINE typename Held<Kind>::word encoded(typename Held<Kind>::value sum) {
  if constexpr (Kind == Element::f64) return as<uint64_t>(sum);
  else if constexpr (Kind == Element::f32) return as<uint32_t>((float)sum);
  else if constexpr (Kind == Element::f16) return Half(sum).bits;
  else return Limited ? (uint32_t)saturated(sum) : (uint32_t)sum;
}

// One step for the whole warp. The sanitizers need not look: registers and the last lane's own stack are all it touches.
template <class Layout, int M, int N, int K, Element D, Element A, Element B, Element C, Joined How, bool Limited>
EMULATOR_UNCHECKED void multiply_all(void** deposits, unsigned) {
  typedef typename Held<C>::value Sum;
  static_assert(sizeof(Sum) == sizeof(typename Held<A>::value), "");
  constexpr int ea = bits_of_element(A) > 32 ? 1 : 32 / bits_of_element(A), eb = bits_of_element(B) > 32 ? 1 : 32 / bits_of_element(B);
  constexpr int ec = C == Element::f16 ? 2 : 1, ed = D == Element::f16 ? 2 : 1, per = M * N / 32;
  constexpr bool doubled = std::is_same<Layout, Fragments>::value && A == Element::f16;
  constexpr int ra = doubled ? 8 : M * K / 32 / ea, rb = doubled ? 8 : K * N / 32 / eb;
  Sum a[M * K], b[K * N], sums[M * N];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const Factors*>(deposits[lane]);
    for (int r = 0; r < ra; ++r)
      for (int e = 0; e < ea; ++e) a[Layout::template left<ra, M * K, ea>(lane, r, e, K)] = element<A>(static_cast<const typename Held<A>::word*>(own.a)[r], e);
    for (int r = 0; r < rb; ++r)
      for (int e = 0; e < eb; ++e) b[Layout::template right<rb, K * N, eb>(lane, r, e, N)] = element<B>(static_cast<const typename Held<B>::word*>(own.b)[r], e);
    for (int i = 0; i < per; ++i) sums[Layout::template sum<M, N>(lane, i)] = element<C>(static_cast<const typename Held<C>::word*>(own.c)[i / ec], i % ec);
  }
  add_products<M, N, K, How>(a, b, sums);
  for (int lane = 0; lane < 32; ++lane) {
    auto* d = static_cast<typename Held<D>::word*>(static_cast<const Factors*>(deposits[lane])->d);
    for (int i = 0; i < per; ++i) {
      const auto word = encoded<D, Limited>(sums[Layout::template sum<M, N>(lane, i)]);
      if (ed == 1 || i % 2 == 0) d[i / ed] = word;
      else d[i / ed] |= word << 16 * (ed - 1);
    }
  }
}

template <class Layout, int M, int N, int K, Element D, Element A, Element B, Element C, Joined How, bool Limited>
PTX_INLINE void multiply(void* d, const void* a, const void* b, const void* c, int line) {
  Factors own = {a, b, c, d};
  ::emulator::warp_operation(0xffffffffu, ::emulator::WarpKind::Matrix, &own, multiply_all<Layout, M, N, K, D, A, B, C, How, Limited>, line);
}

// ------------------------------------------------------------------------------------------------------ wmma.load, wmma.store

template <int Rows, int Columns, Element Kind, int Count, bool Across, bool Sums>
PTX_INLINE char* place_of(char* base, uint32_t stride, int r, int e) {
  constexpr int width = bits_of_element(Kind), per = width > 32 ? 1 : 32 / width;
  const int lane = (int)::emulator::lane();
  const int at = Sums ? Fragments::sum<Rows, Columns>(lane, r * per + e) : Fragments::left<Count, Rows * Columns, per>(lane, r, e, Columns);
  const uint32_t row = (uint32_t)at / Columns, column = (uint32_t)at % Columns;
  return base + ((size_t)(Across ? row : column) * stride + (Across ? column : row)) * (width / 8);
}
template <int Rows, int Columns, Element Kind, int Count, bool Across, bool Sums, class W>
PTX_INLINE void load_fragment(W* words, char* base, uint32_t stride) {
  constexpr int width = bits_of_element(Kind), per = width > 32 ? 1 : 32 / width;
  for (int r = 0; r < Count; ++r) {
    words[r] = 0;
    for (int e = 0; e < per; ++e)
      words[r] |= (W)load<typename Word<width / 8>::type>(place_of<Rows, Columns, Kind, Count, Across, Sums>(base, stride, r, e)) << (per > 1 ? width * e : 0);
  }
}
template <int Rows, int Columns, Element Kind, int Count, bool Across, bool Sums, class W>
PTX_INLINE void store_fragment(const W* words, char* base, uint32_t stride) {
  constexpr int width = bits_of_element(Kind), per = width > 32 ? 1 : 32 / width;
  for (int r = 0; r < Count; ++r)
    for (int e = 0; e < per; ++e)
      store(place_of<Rows, Columns, Kind, Count, Across, Sums>(base, stride, r, e), (typename Word<width / 8>::type)(words[r] >> (per > 1 ? width * e : 0)));
}

// ------------------------------------------------------------------------------------------------------- ldmatrix, stmatrix

typedef Several<uint32_t, 4>::type Row;
struct Moved { Row row; uint32_t* words; };  // the row whose address a lane gave, and the registers of its fragments

// Lane l of a matrix holds elements 2l % 8 and 2l % 8 + 1 of row l / 4; turned, of that column.
template <int Count, bool Turned>
EMULATOR_UNCHECKED void hand_out(void** deposits, unsigned) {
  const auto half = [&](int row, int column) { return static_cast<const Moved*>(deposits[row])->row[column / 2] >> 16 * (column % 2) & 0xffffu; };
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < Count; ++i) {
      const int first = 8 * i, a = lane / 4, b = lane % 4 * 2;
      static_cast<Moved*>(deposits[lane])->words[i] = Turned ? half(first + b, a) | half(first + b + 1, a) << 16 : half(first + a, b) | half(first + a, b + 1) << 16;
    }
}
template <int Count, bool Turned>
EMULATOR_UNCHECKED void gather(void** deposits, unsigned) {
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < Count; ++i)
      for (int e = 0; e < 2; ++e) {
        const uint32_t value = static_cast<const Moved*>(deposits[lane])->words[i] >> 16 * e & 0xffffu;
        const int row = Turned ? lane % 4 * 2 + e : lane / 4, column = Turned ? lane / 4 : lane % 4 * 2 + e;
        Row& whole = static_cast<Moved*>(deposits[8 * i + row])->row;
        whole[column / 2] = column % 2 ? (whole[column / 2] & 0xffffu) | value << 16 : (whole[column / 2] & 0xffff0000u) | value;
      }
}
template <int Count, bool Turned>
PTX_INLINE void load_matrices(uint32_t* words, const char* from, int line) {
  Moved own = {Row{}, words};
  if (::emulator::lane() < 8 * Count) own.row = load<Row>(from);
  ::emulator::warp_operation(0xffffffffu, ::emulator::WarpKind::Matrix, &own, hand_out<Count, Turned>, line);
}
template <int Count, bool Turned>
PTX_INLINE void store_matrices(const uint32_t* words, char* to, int line) {
  Moved own = {Row{}, const_cast<uint32_t*>(words)};
  ::emulator::warp_operation(0xffffffffu, ::emulator::WarpKind::Matrix, &own, gather<Count, Turned>, line);
  if (::emulator::lane() < 8 * Count) store<Row>(to, own.row);
}

}  // namespace ptx
