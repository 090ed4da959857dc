// Math functions and intrinsics. Fast-math intrinsics are exact here: a GPU's are off by a few units in the last place.
#pragma once

#define EMULATOR_MINMAX(type)                                    \
  inline type min(type a, type b) { return b < a ? b : a; }      \
  inline type max(type a, type b) { return a < b ? b : a; }
EMULATOR_MINMAX(int)
EMULATOR_MINMAX(unsigned)
EMULATOR_MINMAX(long)
EMULATOR_MINMAX(unsigned long)
EMULATOR_MINMAX(long long)
EMULATOR_MINMAX(unsigned long long)
#undef EMULATOR_MINMAX
#define EMULATOR_MINMAX(a_type, b_type, type)                                                  \
  inline type min(a_type a, b_type b) { return min((type)a, (type)b); }                        \
  inline type max(a_type a, b_type b) { return max((type)a, (type)b); }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
EMULATOR_MINMAX(int, unsigned, unsigned)
EMULATOR_MINMAX(unsigned, int, unsigned)
EMULATOR_MINMAX(long long, unsigned long long, unsigned long long)
EMULATOR_MINMAX(unsigned long long, long long, unsigned long long)
EMULATOR_MINMAX(long, unsigned long, unsigned long)
EMULATOR_MINMAX(unsigned long, long, unsigned long)
EMULATOR_MINMAX(float, double, double)
EMULATOR_MINMAX(double, float, double)
#undef EMULATOR_MINMAX

inline int umin(unsigned a, unsigned b) { return b < a ? b : a; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float exp10f(float x, int) { return powf(10.0f, x); }
inline float sinpif(float x) { return (float)sin(3.14159265358979323846 * x); }
inline float cospif(float x) { return (float)cos(3.14159265358979323846 * x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752440f); }
inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
inline float fdividef(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float a, float b) { return powf(a, b); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline float __saturatef(float x) { return !(x > 0.0f) ? 0.0f : x > 1.0f ? 1.0f : x; }

// Rounding-mode variants: to nearest is exact; the directed modes are one step from the double result.
namespace emulator {
inline float toward_zero(double x) { const float f = (float)x; return std::fabs((double)f) > std::fabs(x) ? std::nextafter(f, 0.0f) : f; }
inline float down(double x) { const float f = (float)x; return f > x ? std::nextafter(f, -INFINITY) : f; }
inline float up(double x) { const float f = (float)x; return f < x ? std::nextafter(f, INFINITY) : f; }
}  // namespace emulator
// A multiplication that must not be fused with the addition around it.
inline float __fmul_rn(float a, float b) { volatile float product = a * b; return product; }
inline float __fadd_rn(float a, float b) { volatile float sum = a + b; return sum; }
inline float __fsub_rn(float a, float b) { volatile float difference = a - b; return difference; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frsqrt_rn(float a) { return 1.0f / sqrtf(a); }
inline float __fadd_rz(float a, float b) { return emulator::toward_zero((double)a + b); }
inline float __fadd_rd(float a, float b) { return emulator::down((double)a + b); }
inline float __fadd_ru(float a, float b) { return emulator::up((double)a + b); }
inline float __fmul_rz(float a, float b) { return emulator::toward_zero((double)a * b); }
inline float __fmul_rd(float a, float b) { return emulator::down((double)a * b); }
inline float __fmul_ru(float a, float b) { return emulator::up((double)a * b); }
inline double __dadd_rn(double a, double b) { volatile double sum = a + b; return sum; }
inline double __dmul_rn(double a, double b) { volatile double product = a * b; return product; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

namespace emulator {
template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
template <class Integer, class Real>
inline Integer saturate(Real x) {  // CUDA's conversions clamp, and turn NaN into 0
  if (x != x) return 0;
  if (x >= -(Real)std::numeric_limits<Integer>::min() && std::is_signed<Integer>::value) return std::numeric_limits<Integer>::max();
  if (!std::is_signed<Integer>::value && x >= 2 * (Real)(std::numeric_limits<Integer>::max() / 2 + 1)) return std::numeric_limits<Integer>::max();
  if (x <= (Real)std::numeric_limits<Integer>::min()) return std::numeric_limits<Integer>::min();
  return (Integer)x;
}
}  // namespace emulator
inline int __float_as_int(float f) { return emulator::bit_cast<int>(f); }
inline unsigned __float_as_uint(float f) { return emulator::bit_cast<unsigned>(f); }
inline float __int_as_float(int i) { return emulator::bit_cast<float>(i); }
inline float __uint_as_float(unsigned u) { return emulator::bit_cast<float>(u); }
inline long long __double_as_longlong(double d) { return emulator::bit_cast<long long>(d); }
inline double __longlong_as_double(long long l) { return emulator::bit_cast<double>(l); }
inline int __double2hiint(double d) { return (int)(emulator::bit_cast<long long>(d) >> 32); }
inline int __double2loint(double d) { return (int)emulator::bit_cast<long long>(d); }
inline double __hiloint2double(int high, int low) { return emulator::bit_cast<double>((long long)high << 32 | (unsigned)low); }

#define EMULATOR_CONVERT(prefix, real, suffix, integer)                                                        \
  inline integer __##prefix##2##suffix##_rn(real x) { return emulator::saturate<integer>(std::nearbyint(x)); } \
  inline integer __##prefix##2##suffix##_rz(real x) { return emulator::saturate<integer>(std::trunc(x)); }     \
  inline integer __##prefix##2##suffix##_rd(real x) { return emulator::saturate<integer>(std::floor(x)); }     \
  inline integer __##prefix##2##suffix##_ru(real x) { return emulator::saturate<integer>(std::ceil(x)); }
EMULATOR_CONVERT(float, float, int, int)
EMULATOR_CONVERT(float, float, uint, unsigned)
EMULATOR_CONVERT(float, float, ll, long long)
EMULATOR_CONVERT(float, float, ull, unsigned long long)
EMULATOR_CONVERT(double, double, int, int)
EMULATOR_CONVERT(double, double, uint, unsigned)
EMULATOR_CONVERT(double, double, ll, long long)
#undef EMULATOR_CONVERT
inline float __int2float_rn(int i) { return (float)i; }
inline float __int2float_rz(int i) { return emulator::toward_zero(i); }
inline float __uint2float_rn(unsigned i) { return (float)i; }
inline float __ll2float_rn(long long i) { return (float)i; }
inline double __int2double_rn(int i) { return i; }
inline float __double2float_rn(double d) { return (float)d; }
inline float __double2float_rz(double d) { return emulator::toward_zero(d); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
inline unsigned long long __brevll(unsigned long long x) { return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32)); }
inline int __mul24(int a, int b) { return (int)((unsigned)(a << 8 >> 8) * (unsigned)(b << 8 >> 8)); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)(((unsigned __int128)a * b) >> 64); }
inline int __sad(int a, int b, unsigned c) { return (int)((a > b ? (unsigned)a - b : (unsigned)b - a) + c); }
inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) { shift &= 31; return shift ? high << shift | low >> (32 - shift) : high; }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) { shift &= 31; return shift ? high << (32 - shift) | low >> shift : low; }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned byte = (unsigned)(bytes >> (8 * (selector >> 4 * i & 7))) & 255u;
    if (selector >> (4 * i + 3) & 1) byte = byte & 0x80 ? 255u : 0u;  // sign replication
    result |= byte << 8 * i;
  }
  return result;
}
inline int __dp4a(int a, int b, int c) { for (int i = 0; i < 4; ++i) c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i); return c; }
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) { for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 255u) * (b >> 8 * i & 255u); return c; }
inline unsigned __vadd4(unsigned a, unsigned b) { return ((a & 0x7f7f7f7fu) + (b & 0x7f7f7f7fu)) ^ ((a ^ b) & 0x80808080u); }
inline unsigned __vabsdiffu4(unsigned a, unsigned b) {
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= (unsigned)abs((int)(a >> 8 * i & 255) - (int)(b >> 8 * i & 255)) << 8 * i;
  return result;
}

#define CUDART_INF_F __builtin_inff()
#define CUDART_INF __builtin_inf()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_NAN __builtin_nan("")
#define CUDART_MAX_NORMAL_F FLT_MAX
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_L2E_F 1.442695041f
#define CUDART_LN2_F 0.693147181f
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
