// nvcuda::wmma: warp matrix multiply. Products and sums in float (int for the 8-bit types), in the order of k.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace nvcuda {
namespace wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}

namespace detail {
template <class Use, int M, int N, int K> struct shape;
template <int M, int N, int K> struct shape<matrix_a, M, N, K> { enum { rows = M, columns = K }; };
template <int M, int N, int K> struct shape<matrix_b, M, N, K> { enum { rows = K, columns = N }; };
template <int M, int N, int K> struct shape<accumulator, M, N, K> { enum { rows = M, columns = N }; };
template <class T> struct stored { typedef T type; };
template <> struct stored<precision::tf32> { typedef float type; };
template <class T> struct summed { typedef float type; };
template <> struct summed<int> { typedef int type; };
template <> struct summed<double> { typedef double type; };
}  // namespace detail

// Lane l holds the elements l*num_elements … of the matrix in row-major order; real hardware's order is unspecified.
template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  typedef typename detail::stored<T>::type element_type;
  typedef element_type storage_element_type;
  enum { rows = detail::shape<Use, M, N, K>::rows, columns = detail::shape<Use, M, N, K>::columns, num_elements = rows * columns / 32 };
  element_type x[num_elements];
};

namespace detail {
template <class F>
inline size_t place(unsigned i, unsigned stride, bool column_major) {
  const unsigned element = ::emulator::lane() * F::num_elements + i, row = element / F::columns, column = element % F::columns;
  return column_major ? (size_t)column * stride + row : (size_t)row * stride + column;
}
template <class F, class P>
inline void load(F& f, const P* p, unsigned stride, bool column_major, int line) {
  __syncwarp(0xffffffffu, line);
  for (unsigned i = 0; i < F::num_elements; ++i) f.x[i] = p[place<F>(i, stride, column_major)];
}
template <class A, class B, class C, class D>
struct Multiply { const A* a; const B* b; const C* c; D* d; };
template <class A, class B, class C, class D, int M, int N, int K>
EMULATOR_UNCHECKED void multiply(void** deposits, unsigned) {
  typedef typename summed<typename C::element_type>::type Sum;
  Sum a[M * K], b[K * N], c[M * N];
  for (int l = 0; l < 32; ++l) {
    const auto* m = static_cast<Multiply<A, B, C, D>*>(deposits[l]);
    for (int i = 0; i < A::num_elements; ++i) a[l * A::num_elements + i] = (Sum)m->a->x[i];
    for (int i = 0; i < B::num_elements; ++i) b[l * B::num_elements + i] = (Sum)m->b->x[i];
    for (int i = 0; i < C::num_elements; ++i) c[l * C::num_elements + i] = (Sum)m->c->x[i];
  }
  for (int row = 0; row < M; ++row)
    for (int k = 0; k < K; ++k)
      for (int column = 0; column < N; ++column) c[row * N + column] += a[row * K + k] * b[k * N + column];
  for (int l = 0; l < 32; ++l) {
    auto* m = static_cast<Multiply<A, B, C, D>*>(deposits[l]);
    for (int i = 0; i < D::num_elements; ++i) m->d->x[i] = c[l * D::num_elements + i];
  }
}
}  // namespace detail

template <class Use, int M, int N, int K, class T, class L, class V>
inline void fill_fragment(fragment<Use, M, N, K, T, L>& f, V value) { for (auto& e : f.x) e = value; }
template <class Use, int M, int N, int K, class T, class L, class P>
inline void load_matrix_sync(fragment<Use, M, N, K, T, L>& f, const P* p, unsigned stride, int line = __builtin_LINE()) {
  detail::load(f, p, stride, std::is_same<L, col_major>::value, line);
}
template <int M, int N, int K, class T, class P>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T, void>& f, const P* p, unsigned stride, layout_t layout, int line = __builtin_LINE()) {
  detail::load(f, p, stride, layout == mem_col_major, line);
}
template <int M, int N, int K, class T, class P>
inline void store_matrix_sync(P* p, const fragment<accumulator, M, N, K, T, void>& f, unsigned stride, layout_t layout, int line = __builtin_LINE()) {
  __syncwarp(0xffffffffu, line);
  typedef fragment<accumulator, M, N, K, T, void> F;
  for (unsigned i = 0; i < F::num_elements; ++i) p[detail::place<F>(i, stride, layout == mem_col_major)] = f.x[i];
}
template <int M, int N, int K, class TD, class TA, class LA, class TB, class LB, class TC>
inline void mma_sync(fragment<accumulator, M, N, K, TD, void>& d, const fragment<matrix_a, M, N, K, TA, LA>& a,
                     const fragment<matrix_b, M, N, K, TB, LB>& b, const fragment<accumulator, M, N, K, TC, void>& c,
                     int line = __builtin_LINE()) {
  typedef fragment<matrix_a, M, N, K, TA, LA> A;
  typedef fragment<matrix_b, M, N, K, TB, LB> B;
  typedef fragment<accumulator, M, N, K, TC, void> C;
  typedef fragment<accumulator, M, N, K, TD, void> D;
  detail::Multiply<A, B, C, D> deposit{&a, &b, &c, &d};
  ::emulator::warp_operation(0xffffffffu, ::emulator::WarpKind::Matrix, &deposit, &detail::multiply<A, B, C, D, M, N, K>, line);
}
inline float __float_to_tf32(float f) {
  const unsigned bits = __float_as_uint(f);
  return f != f ? f : __uint_as_float((bits + 0x0fffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

}  // namespace wmma
}  // namespace nvcuda
