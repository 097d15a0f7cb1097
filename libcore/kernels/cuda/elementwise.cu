// SPDX-License-Identifier: Apache-2.0
// Functions of one and of two tensors, element by element, their gradients, and
// reductions: one core for each shape of work, and tables of functions. The
// formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/element_packs.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/kernels/cuda/strided_index.h"

namespace pd::cuda {
namespace {

PD_REAL T SigmoidOf(T x) { return 1 / (1 + Exp(-x)); }
PD_REAL T SoftplusOf(T x) { return Max(x, T(0)) + Log1p(Exp(-Abs(x))); }

// X(name, F of x, D of v): v is what the gradient op reads, x or out. p: the
// arguments, with the attributes a, b, c. T: the type of all of them.
#define PD_UNARY_FUNCTIONS(X)                                                 \
  X(relu, x<0 ? T(0) : x, v> 0 ? T(1) : T(0))                                 \
  X(sigmoid, SigmoidOf(x), v*(1 - v))                                         \
  X(tanh, Tanh(x), 1 - v * v)                                                 \
  X(silu, x / (1 + Exp(-x)), SiluGrad(v))                                     \
  X(gelu, x* Cdf(x),                                                          \
    Cdf(v) + v * Exp(T(-0.5) * v * v) * T(0.3989422804014327))                \
  X(gelu_tanh, GeluTanh(x), GeluTanhGrad(v))                                  \
  X(elu, x > 0 ? x : p.a * Expm1(x), v > 0 ? T(1) : p.a * Exp(v))             \
  X(relu6, x<0 ? T(0) : (x > p.a ? p.a : x), v> 0 && v < p.a ? T(1) : T(0))   \
  X(leaky_relu, x < 0 ? p.a * x : x, v < 0 ? p.a : T(1))                      \
  X(hard_sigmoid, Between(p.a* x + p.b, T(1)), v > 0 && v < 1 ? p.a : T(0))   \
  X(hard_swish, x* Between(x + p.c, p.a) / p.b,                               \
    v + p.c >= p.a ? T(1) : (v + p.c > 0 ? (v + v + p.c) / p.b : T(0)))       \
  X(softplus, x* p.a > p.b ? x : SoftplusOf(x * p.a) / p.a,                   \
    v * p.a > p.b ? T(1) : SigmoidOf(v * p.a))                                \
  X(softsign, x / (1 + Abs(x)), 1 / ((1 + Abs(v)) * (1 + Abs(v))))            \
  X(exp, Exp(x), v)                                                           \
  X(log, Log(x), 1 / v)                                                       \
  X(sqrt, Sqrt(x), T(0.5) / v)                                                \
  X(rsqrt, 1 / Sqrt(x), T(-0.5) * v * v * v)                                  \
  X(square, x* x, 2 * v)                                                      \
  X(abs, Abs(x), v > 0 ? T(1) : (v < 0 ? -T(1) : T(0)))                       \
  X(reciprocal, 1 / x, -v * v)                                                \
  X(scale, x* p.a + p.b, p.a)                                                 \
  X(scale_after, (x + p.b) * p.a, p.a)                                        \
  X(clip, x<p.a ? p.a : (x > p.b ? p.b : x), v> p.a&& v < p.b ? T(1) : T(0))  \
  X(sin, Sin(x), Cos(v))                                                      \
  X(cos, Cos(x), -Sin(v))                                                     \
  X(erf, Erf(x), T(1.1283791670955126) * Exp(-v * v))                         \
  X(mish, x* Tanh(SoftAbove(x, p.a)), MishGrad(v, p.a))                       \
  X(celu, x > 0 ? x : p.a * Expm1(x / p.a), v > 0 ? T(1) : Exp(v / p.a))      \
  X(selu, p.a*(x > 0 ? x : p.b * Expm1(x)), v > 0 ? p.a : v + p.a * p.b)      \
  X(brelu, x<p.a ? p.a : (x > p.b ? p.b : x), v> p.a&& v < p.b ? T(1) : T(0)) \
  X(thresholded_relu, x <= p.a ? T(0) : x, v > p.a ? T(1) : T(0))             \
  X(hard_shrink, x >= -p.a && x <= p.a ? T(0) : x, Beyond(v, p.a))            \
  X(softshrink, x > p.a ? x - p.a : (x < -p.a ? x + p.a : x - x),             \
    Beyond(v, p.a))                                                           \
  X(logsigmoid, -SoftplusOf(-x), SigmoidOf(-v))                               \
  X(tanh_shrink, x - Tanh(x), Tanh(v) * Tanh(v))                              \
  X(pow, PowerOf(x, p.a), p.a* PowerOf(v, p.a - 1))                           \
  X(expm1, Expm1(x), v + 1)                                                   \
  X(log2, Log2(x), 1 / (v * T(0.6931471805599453)))                           \
  X(log10, Log10(x), 1 / (v * T(2.302585092994046)))                          \
  X(tan, Tan(x), 1 + Tan(v) * Tan(v))                                         \
  X(asin, Asin(x), 1 / Sqrt(1 - v * v))                                       \
  X(acos, Acos(x), -1 / Sqrt(1 - v * v))                                      \
  X(atan, Atan(x), 1 / (1 + v * v))                                           \
  X(sinh, Sinh(x), Cosh(v))                                                   \
  X(cosh, Cosh(x), Sinh(v))                                                   \
  X(asinh, Asinh(x), 1 / Sqrt(v * v + 1))                                     \
  X(acosh, Acosh(x), 1 / (Sqrt(v - 1) * Sqrt(v + 1)))                         \
  X(atanh, Atanh(x), 1 / (1 - v * v))                                         \
  X(stanh, p.b* Tanh(p.a* x), StanhGrad(p.a, p.b, v))                         \
  X(soft_relu, SoftplusOf(Within(x, p.a)),                                    \
    v > -p.a && v < p.a ? -Expm1(-v) : T(0))                                  \
  X(logit, LogitOf(x, p.a), LogitGrad(v, p.a))                                \
  X(trunc, Trunc(x), T(0))                                                    \
  X(floor, Floor(x), T(0))                                                    \
  X(ceil, Ceil(x), T(0))                                                      \
  X(round, Round(x), T(0))                                                    \
  X(sign, x > 0 ? T(1) : (x < 0 ? -T(1) : x), T(0))                           \
  X(log1p, Log1p(x), 1 / (1 + v))

// Whole powers that products give exactly, as on the CPU.
PD_REAL T PowerOf(T x, T by) {
  if (by == 0) return 1;
  if (by == 1) return x;
  return by == 2 ? x * x : Pow(x, by);
}
PD_REAL T Between(T x, T top) { return x < 0 ? T(0) : (x > top ? top : x); }
PD_REAL T Beyond(T x, T bound) { return x < -bound || x > bound ? T(1) : T(0); }
PD_REAL T Within(T x, T bound) {
  return x < -bound ? -bound : (x > bound ? bound : x);
}
PD_REAL T StanhGrad(T a, T b, T x) {
  const T t = Tanh(a * x);
  return a * b * (1 - t * t);
}
// Without eps there is no logit outside [0, 1].
PD_REAL T LogitOf(T x, T eps) {
  if (eps == 0 && (x < 0 || x > 1)) return NAN;
  x = x < eps ? eps : (x > 1 - eps ? 1 - eps : x);
  return Log(x / (1 - x));
}
PD_REAL T LogitGrad(T x, T eps) {
  if (x < eps || x > 1 - eps) return eps == 0 ? T(NAN) : T(0);
  return 1 / (x * (1 - x));
}
PD_REAL T SoftAbove(T x, T threshold) {
  return x > threshold ? x : SoftplusOf(x);
}
PD_REAL T MishGrad(T x, T threshold) {
  const T t = Tanh(SoftAbove(x, threshold));
  return t + x * (1 - t * t) * SigmoidOf(x);
}
PD_REAL T SiluGrad(T x) {
  const T s = SigmoidOf(x);
  return s * (1 + x * (1 - s));
}
PD_REAL T Cdf(T x) { return T(0.5) * (1 + Erf(x * T(0.70710678118654752))); }
PD_REAL T GeluInner(T x) {
  return Tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x));
}
PD_REAL T GeluTanh(T x) { return T(0.5) * x * (1 + GeluInner(x)); }
PD_REAL T GeluTanhGrad(T x) {
  const T t = GeluInner(x);
  const T inner = T(0.7978845608028654) * (1 + 3 * T(0.044715) * x * x);
  return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * inner;
}

#define PD_FUNCTION(name, f, d)                        \
  struct Unary_##name {                                \
    PD_REAL static T F(T x, const UnaryArgsOf<T>& p) { \
      (void)p;                                         \
      return f;                                        \
    }                                                  \
    PD_REAL static T D(T v, const UnaryArgsOf<T>& p) { \
      (void)p, (void)v;                                \
      return d;                                        \
    }                                                  \
  };
PD_UNARY_FUNCTIONS(PD_FUNCTION)
#undef PD_FUNCTION

template <typename Function, typename T>
struct UnaryForward {
  PD_DEVICE static void Run(const Block& block, const UnaryArgsOf<T>& p) {
    ForEach<T>(
        block, p.n, p.out, [&](T v) { return Function::F(v, p); }, p.v);
  }
};
template <typename Function, typename T>
struct UnaryBackward {
  PD_DEVICE static void Run(const Block& block, const UnaryArgsOf<T>& p) {
    ForEach<T>(
        block, p.n, p.out,
        [&](T v, T dout) { return dout * Function::D(v, p); }, p.v, p.dout);
  }
};

// X(name, F of x and y, DX, DY of x, y, z and d): z is out, d its gradient.
#define PD_BINARY_FUNCTIONS(X)                               \
  X(add, x + y, d, d)                                        \
  X(sub, x - y, d, -d)                                       \
  X(mul, x* y, d* y, d* x)                                   \
  X(div, x / y, d / y, -d * (z / y))                         \
  X(max, x > y ? x : y, x > y ? d : T(0), x <= y ? d : T(0)) \
  X(min, x < y ? x : y, x < y ? d : T(0), x >= y ? d : T(0)) \
  X(pow, Pow(x, y), d* y* Pow(x, y - 1), d* Log(x) * Pow(x, y))

#define PD_FUNCTION(name, f, dx, dy)           \
  struct Binary_##name {                       \
    PD_REAL static T F(T x, T y) { return f; } \
  };                                           \
  struct Binary_##name##_dx {                  \
    PD_REAL static T At(T x, T y, T z, T d) {  \
      (void)x, (void)y, (void)z;               \
      return dx;                               \
    }                                          \
  };                                           \
  struct Binary_##name##_dy {                  \
    PD_REAL static T At(T x, T y, T z, T d) {  \
      (void)x, (void)y, (void)z;               \
      return dy;                               \
    }                                          \
  };
PD_BINARY_FUNCTIONS(PD_FUNCTION)
#undef PD_FUNCTION

// An operand along a pack: its elements, or one of them.
PD_DEVICE Pack<float, kPack> Operand(const FloatsIn& from, int64_t at,
                                     bool one) {
  if (!one) return LoadPack<kPack>(from, at);
  Pack<float, kPack> pack;
  const float value = from[at];
  PD_UNROLL
  for (int j = 0; j < kPack; ++j) pack[j] = value;
  return pack;
}

template <typename Function, typename T>
PD_DEVICE T ResultAt(const BinaryArgsOf<T>& p, int64_t i) {
  int64_t at[2] = {i, i};
  if (!p.same) Place(p.walk, i, at);
  return Function::F(T(p.x[at[0]]), T(p.y[at[1]]));
}

template <typename Function, typename T>
struct BinaryForward {
  PD_DEVICE static void Run(const Block& block, const BinaryArgsOf<T>& p) {
    if (p.same) {
      ForEach<T>(
          block, p.n, p.out, [](T x, T y) { return Function::F(x, y); }, p.x,
          p.y);
      return;
    }
    int64_t packs = 0;
    if constexpr (!std::is_same_v<T, double>) {
      if (p.packs) packs = PacksOf(p.n, p.x, p.y, p.out);
      const int64_t* const inner = p.walk.strides[p.walk.dims - 1];
      block.Spread(packs, [&](int64_t i) {
        int64_t at[2];
        Place(p.walk, i * kPack, at);
        const auto x = Operand(p.x, at[0], inner[0] == 0),
                   y = Operand(p.y, at[1], inner[1] == 0);
        Pack<T, kPack> to;
        PD_UNROLL
        for (int j = 0; j < kPack; ++j) to[j] = Function::F(x[j], y[j]);
        StorePack(p.out, i * kPack, to);
      });
    }
    const int64_t first = packs * kPack;
    block.Spread(p.n - first, [&](int64_t i) {
      p.out[first + i] = ResultAt<Function>(p, first + i);
    });
  }
};

template <typename Function, typename T>
struct Comparison {
  PD_DEVICE static void Run(const Block& block, const BinaryArgsOf<T>& p) {
    block.Spread(p.n,
                 [&](int64_t i) { p.answers[i] = ResultAt<Function>(p, i); });
  }
};

#define PD_COMPARISONS(X) \
  X(equal, ==)            \
  X(not_equal, !=)        \
  X(less_than, <) X(less_equal, <=) X(greater_than, >) X(greater_equal, >=)
#define PD_FUNCTION(name, sign)                          \
  struct Compare_##name {                                \
    PD_REAL static bool F(T x, T y) { return x sign y; } \
  };
PD_COMPARISONS(PD_FUNCTION)
#undef PD_FUNCTION

struct Sum {
  static constexpr float kNothing = 0.0f;
  PD_REAL T operator()(T a, T b) const { return a + b; }
};
struct Maximum {
  static constexpr float kNothing = -HUGE_VALF;
  PD_REAL T operator()(T a, T b) const { return b > a || b != b ? b : a; }
};
struct Minimum {
  static constexpr float kNothing = HUGE_VALF;
  PD_REAL T operator()(T a, T b) const { return b < a || b != b ? b : a; }
};
struct Product {
  static constexpr float kNothing = 1.0f;
  PD_REAL T operator()(T a, T b) const { return a * b; }
};

// The reduced values, of x and of y; y is constant along the reduced axes.
struct OfX {
  PD_REAL static T At(T x, T, T, T) { return x; }
};
struct SquareOfX {
  PD_REAL static T At(T x, T, T, T) { return x * x; }
};
struct NonZero {
  PD_REAL static T At(T x, T, T, T) { return x == 0 ? T(1) : x; }
};
struct IsZero {
  PD_REAL static T At(T x, T, T, T) { return x == 0 ? T(1) : T(0); }
};
struct IsEqual {
  PD_REAL static T At(T x, T y, T, T) { return x == y ? T(1) : T(0); }
};
struct ExpBelow {
  PD_REAL static T At(T x, T y, T, T) {
    return x == y ? T(1) : Exp(x - y);  // infinite ones too
  }
};
struct LogPlus {
  PD_REAL static T At(T x, T y, T, T) { return Log(x) + y; }
};

// Slopes. Of a sum of exponentials with the logarithm y.
struct OfLogSum {
  PD_REAL static T At(T x, T y, T, T d) { return d * Exp(x - y); }
};
// Of a maximum or minimum y that z elements share.
struct OfShared {
  PD_REAL static T At(T x, T y, T z, T d) { return x == y ? d / z : T(0); }
};
// Of a product: y is that of the elements other than 0, of which there are z.
struct OfProduct {
  PD_REAL static T At(T x, T y, T z, T d) {
    if (x == 0) return z == 1 ? d * y : T(0);
    return z == 0 ? d * y / x : T(0);
  }
};
// Of a maximum or minimum y: d where x is one.
struct OfEqual {
  PD_REAL static T At(T x, T y, T, T d) { return x == y ? d : T(0); }
};

template <typename Function, typename T>
PD_DEVICE T ElementAt(const ReduceArgsOf<T>& p, const int64_t* outer,
                      int64_t j) {
  int64_t at[3];
  Place(p.inner, j, at);
  for (int k = 0; k < 3; ++k) at[k] += outer[k];
  return Function::At(
      p.x != nullptr ? p.x[at[0]] : T(0), p.y != nullptr ? p.y[at[1]] : T(0),
      p.z != nullptr ? p.z[at[2]] : T(0), p.dz != nullptr ? p.dz[at[2]] : T(0));
}

// One thread for each result: there are many, or few elements each.
template <typename Function, typename Op, typename T>
struct ReduceByThread {
  PD_DEVICE static void Run(const Block& block, const ReduceArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t outer[3];
      Place(p.outer, i, outer);
      T result = Op::kNothing;
      for (int64_t j = 0; j < p.m; ++j)
        result = Op()(result, ElementAt<Function>(p, outer, j));
      p.out[i] = result * static_cast<T>(p.factor);
    });
  }
};

// One block for each part of kWarp neighbouring results, whose elements lie
// beside each other: a warp reads a row of them, the warps take the rows in
// turn.
template <typename Function, typename Op, typename T>
struct ReduceByColumn {
  PD_DEVICE static void Run(const Block& block, const ReduceArgsOf<T>& p) {
    const int64_t tiles = (p.n + kWarp - 1) / kWarp;
    const int lanes = block.threads() / kWarp;
    for (int64_t b = block.index(); b < tiles * p.parts; b += block.blocks()) {
      const int64_t part = b / tiles, column = b % tiles * kWarp;
      const int64_t first = part * p.part_size;
      const int64_t last =
          first + p.part_size < p.m ? first + p.part_size : p.m;
      PD_SHARED(T, results, kMostThreads);
      block.Each([&](int thread) {
        const int64_t i = column + thread % kWarp;
        T result = Op::kNothing;
        if (i < p.n) {
          int64_t outer[3];
          Place(p.outer, i, outer);
          for (int64_t j = first + thread / kWarp; j < last; j += lanes)
            result = Op()(result, ElementAt<Function>(p, outer, j));
        }
        results[thread] = result;
      });
      block.Each([&](int thread) {
        const int64_t i = column + thread;
        if (thread >= kWarp || i >= p.n) return;
        T result = results[thread];
        for (int lane = 1; lane < lanes; ++lane)
          result = Op()(result, results[lane * kWarp + thread]);
        p.out[part * p.n + i] = result * static_cast<T>(p.factor);
      });
    }
  }
};

// Of a norm y of order `factor`.
template <typename T>
struct NormGrad {
  PD_DEVICE static T Slope(T x, T norm, T order) {
    const T sign = x > 0 ? T(1) : (x < 0 ? T(-1) : T(0));
    if (order == 0) return 0;
    if (Abs(order) == HUGE_VALF) return Abs(x) == norm ? sign : T(0);
    if (order == 1) return sign;
    if (norm == 0) return 0;
    if (order == 2) return x / norm;
    return x == 0 ? T(0) : sign * Pow(Abs(x) / norm, order - 1);
  }
  PD_DEVICE static void Run(const Block& block, const ReduceArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t at[3];
      Place(p.outer, i, at);
      p.out[i] =
          p.dz[at[2]] * Slope(p.x[at[0]], p.y[at[1]], static_cast<T>(p.factor));
    });
  }
};

// One block for each part of a result.
template <typename Function, typename Op, typename T>
struct ReduceByBlock {
  PD_DEVICE static void Run(const Block& block, const ReduceArgsOf<T>& p) {
    for (int64_t b = block.index(); b < p.n * p.parts; b += block.blocks()) {
      const int64_t part = b / p.n, i = b % p.n;
      const int64_t first = part * p.part_size;
      const int64_t last =
          first + p.part_size < p.m ? first + p.part_size : p.m;
      int64_t outer[3];
      Place(p.outer, i, outer);
      PerThread<T> sum(Op::kNothing);
      block.Each([&](int thread) {
        for (int64_t j = first + thread; j < last; j += block.threads())
          sum[thread] = Op()(sum[thread], ElementAt<Function>(p, outer, j));
      });
      const T result = block.Reduce(&sum, Op());
      block.Each([&](int thread) {
        if (thread == 0) p.out[b] = result * static_cast<T>(p.factor);
      });
    }
  }
};

struct alignas(16) SixteenBytes {
  uint64_t words[2];
};
template <typename T>
struct CopyStrided {
  PD_DEVICE static void Run(const Block& block, const CopyArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t at[2];
      Place(p.walk, i, at);
      static_cast<T*>(p.to)[at[1]] = static_cast<const T*>(p.from)[at[0]];
    });
  }
};

template <typename T>
struct Fill {
  PD_DEVICE static void Run(const Block& block, const FillArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      static_cast<T*>(p.out)[i] = static_cast<T>(p.bits);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

// Of a type: the kernels of floats have no suffix, those of doubles _64. A
// template's comma would end the macro's argument.
#define PD_UNARY(name, suffix, T)                                         \
  using Forward_##name##suffix = UnaryForward<Unary_##name, T>;           \
  using Backward_##name##suffix = UnaryBackward<Unary_##name, T>;         \
  PD_KERNEL(unary_##name##suffix, Forward_##name##suffix, UnaryArgsOf<T>) \
  PD_KERNEL(unary_##name##_grad##suffix, Backward_##name##suffix,         \
            UnaryArgsOf<T>)
#define PD_FUNCTION(name, f, d) \
  PD_UNARY(name, , float)       \
  PD_UNARY(name, _64, double)
PD_UNARY_FUNCTIONS(PD_FUNCTION)
#undef PD_FUNCTION

#define PD_REDUCTION(name, Of, Op, suffix, T)                                 \
  using Thread_##name##suffix = ReduceByThread<Of, Op, T>;                    \
  using Block_##name##suffix = ReduceByBlock<Of, Op, T>;                      \
  using Column_##name##suffix = ReduceByColumn<Of, Op, T>;                    \
  PD_KERNEL(name##_by_thread##suffix, Thread_##name##suffix, ReduceArgsOf<T>) \
  PD_KERNEL(name##_by_column##suffix, Column_##name##suffix, ReduceArgsOf<T>) \
  PD_KERNEL(name##_by_block##suffix, Block_##name##suffix, ReduceArgsOf<T>)
#define PD_BINARY(name, suffix, T)                                         \
  using Result_##name##suffix = BinaryForward<Binary_##name, T>;           \
  PD_KERNEL(binary_##name##suffix, Result_##name##suffix, BinaryArgsOf<T>) \
  PD_REDUCTION(binary_##name##_dx, Binary_##name##_dx, Sum, suffix, T)     \
  PD_REDUCTION(binary_##name##_dy, Binary_##name##_dy, Sum, suffix, T)
#define PD_FUNCTION(name, f, dx, dy) \
  PD_BINARY(name, , float)           \
  PD_BINARY(name, _64, double)
PD_BINARY_FUNCTIONS(PD_FUNCTION)
#undef PD_FUNCTION

#define PD_COMPARISON(name, suffix, T)                         \
  using Answer_##name##suffix = Comparison<Compare_##name, T>; \
  PD_KERNEL(compare_##name##suffix, Answer_##name##suffix, BinaryArgsOf<T>)
#define PD_FUNCTION(name, sign) \
  PD_COMPARISON(name, , float)  \
  PD_COMPARISON(name, _64, double)
PD_COMPARISONS(PD_FUNCTION)
#undef PD_FUNCTION

#define PD_SLOPE(name, Of, suffix, T)                     \
  using Each_##name##suffix = ReduceByThread<Of, Sum, T>; \
  PD_KERNEL(name##suffix, Each_##name##suffix, ReduceArgsOf<T>)
#define PD_REDUCTIONS(suffix, T)                            \
  PD_REDUCTION(reduce_sum, OfX, Sum, suffix, T)             \
  PD_REDUCTION(reduce_max, OfX, Maximum, suffix, T)         \
  PD_REDUCTION(reduce_min, OfX, Minimum, suffix, T)         \
  PD_REDUCTION(reduce_prod, OfX, Product, suffix, T)        \
  PD_REDUCTION(reduce_squares, SquareOfX, Sum, suffix, T)   \
  PD_REDUCTION(reduce_nonzero, NonZero, Product, suffix, T) \
  PD_REDUCTION(reduce_zeros, IsZero, Sum, suffix, T)        \
  PD_REDUCTION(reduce_equal, IsEqual, Sum, suffix, T)       \
  PD_REDUCTION(reduce_exp, ExpBelow, Sum, suffix, T)        \
  PD_SLOPE(log_plus, LogPlus, suffix, T)                    \
  PD_SLOPE(logsumexp_grad, OfLogSum, suffix, T)             \
  PD_SLOPE(shared_grad, OfShared, suffix, T)                \
  PD_SLOPE(prod_grad, OfProduct, suffix, T)                 \
  PD_SLOPE(extremum_grad, OfEqual, suffix, T)               \
  PD_KERNEL(norm_grad##suffix, NormGrad<T>, ReduceArgsOf<T>)
PD_REDUCTIONS(, float)
PD_REDUCTIONS(_64, double)

PD_KERNEL(copy_1, CopyStrided<uint8_t>, CopyArgs)
PD_KERNEL(copy_2, CopyStrided<uint16_t>, CopyArgs)
PD_KERNEL(copy_4, CopyStrided<uint32_t>, CopyArgs)
PD_KERNEL(copy_8, CopyStrided<uint64_t>, CopyArgs)
PD_KERNEL(copy_16, CopyStrided<SixteenBytes>, CopyArgs)
PD_KERNEL(fill_1, Fill<uint8_t>, FillArgs)
PD_KERNEL(fill_2, Fill<uint16_t>, FillArgs)
PD_KERNEL(fill_4, Fill<uint32_t>, FillArgs)
PD_KERNEL(fill_8, Fill<uint64_t>, FillArgs)
