// SPDX-License-Identifier: Apache-2.0
// Functions of one and of two tensors, element by element, their gradients, and
// reductions: one core for each shape of work, and tables of functions. The
// formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/walk.h"

namespace pd::cuda {
namespace {

PD_DEVICE float SigmoidOf(float x) { return 1.0f / (1.0f + expf(-x)); }
PD_DEVICE float SoftplusOf(float x) {
  return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}

// X(name, F of x, D of v): v is what the gradient op reads, x or out. p: the
// arguments, with the attributes a, b, c.
#define PD_UNARY_FUNCTIONS(X)                                                 \
  X(relu, x<0 ? 0.0f : x, v> 0 ? 1.0f : 0.0f)                                 \
  X(sigmoid, SigmoidOf(x), v*(1 - v))                                         \
  X(tanh, tanhf(x), 1 - v * v)                                                \
  X(silu, x / (1 + expf(-x)), SiluGrad(v))                                    \
  X(gelu, x* Cdf(x), Cdf(v) + v * expf(-0.5f * v * v) * 0.3989422804f)        \
  X(gelu_tanh, GeluTanh(x), GeluTanhGrad(v))                                  \
  X(elu, x > 0 ? x : p.a * expm1f(x), v > 0 ? 1.0f : p.a * expf(v))           \
  X(relu6, x<0 ? 0.0f : (x > p.a ? p.a : x), v> 0 && v < p.a ? 1.0f : 0.0f)   \
  X(leaky_relu, x < 0 ? p.a * x : x, v < 0 ? p.a : 1.0f)                      \
  X(hard_sigmoid, Between(p.a* x + p.b, 1), v > 0 && v < 1 ? p.a : 0.0f)      \
  X(hard_swish, x* Between(x + p.c, p.a) / p.b,                               \
    v + p.c >= p.a ? 1.0f : (v + p.c > 0 ? (v + v + p.c) / p.b : 0.0f))       \
  X(softplus, x* p.a > p.b ? x : SoftplusOf(x * p.a) / p.a,                   \
    v * p.a > p.b ? 1.0f : SigmoidOf(v * p.a))                                \
  X(softsign, x / (1 + fabsf(x)), 1 / ((1 + fabsf(v)) * (1 + fabsf(v))))      \
  X(exp, expf(x), v)                                                          \
  X(log, logf(x), 1 / v)                                                      \
  X(sqrt, sqrtf(x), 0.5f / v)                                                 \
  X(rsqrt, 1 / sqrtf(x), -0.5f * v * v * v)                                   \
  X(square, x* x, 2 * v)                                                      \
  X(abs, fabsf(x), v > 0 ? 1.0f : (v < 0 ? -1.0f : 0.0f))                     \
  X(reciprocal, 1 / x, -v * v)                                                \
  X(scale, x* p.a + p.b, p.a)                                                 \
  X(scale_after, (x + p.b) * p.a, p.a)                                        \
  X(clip, x < p.a ? p.a : (x > p.b ? p.b : x),                                \
    v >= p.a && v <= p.b ? 1.0f : 0.0f)                                       \
  X(sin, sinf(x), cosf(v))                                                    \
  X(cos, cosf(x), -sinf(v))                                                   \
  X(erf, erff(x), 1.1283791671f * expf(-v * v))                               \
  X(mish, x* tanhf(SoftAbove(x, p.a)), MishGrad(v, p.a))                      \
  X(celu, x > 0 ? x : p.a * expm1f(x / p.a), v > 0 ? 1.0f : expf(v / p.a))    \
  X(selu, p.a*(x > 0 ? x : p.b * expm1f(x)), v > 0 ? p.a : v + p.a * p.b)     \
  X(brelu, x<p.a ? p.a : (x > p.b ? p.b : x), v> p.a&& v < p.b ? 1.0f : 0.0f) \
  X(thresholded_relu, x <= p.a ? 0.0f : x, v > p.a ? 1.0f : 0.0f)             \
  X(hard_shrink, x >= -p.a && x <= p.a ? 0.0f : x, Beyond(v, p.a))            \
  X(softshrink, x > p.a ? x - p.a : (x < -p.a ? x + p.a : x - x),             \
    Beyond(v, p.a))                                                           \
  X(logsigmoid, -SoftplusOf(-x), SigmoidOf(-v))                               \
  X(tanh_shrink, x - tanhf(x), tanhf(v) * tanhf(v))                           \
  X(pow, PowerOf(x, p.a), p.a* PowerOf(v, p.a - 1))                           \
  X(expm1, expm1f(x), v + 1)                                                  \
  X(log2, log2f(x), 1 / (v * 0.6931471806f))                                  \
  X(log10, log10f(x), 1 / (v * 2.302585093f))                                 \
  X(tan, tanf(x), 1 + tanf(v) * tanf(v))                                      \
  X(asin, asinf(x), 1 / sqrtf(1 - v * v))                                     \
  X(acos, acosf(x), -1 / sqrtf(1 - v * v))                                    \
  X(atan, atanf(x), 1 / (1 + v * v))                                          \
  X(sinh, sinhf(x), coshf(v))                                                 \
  X(cosh, coshf(x), sinhf(v))                                                 \
  X(asinh, asinhf(x), 1 / sqrtf(v * v + 1))                                   \
  X(acosh, acoshf(x), 1 / (sqrtf(v - 1) * sqrtf(v + 1)))                      \
  X(atanh, atanhf(x), 1 / (1 - v * v))                                        \
  X(stanh, p.b* tanhf(p.a* x), StanhGrad(p.a, p.b, v))                        \
  X(soft_relu, SoftplusOf(Within(x, p.a)),                                    \
    v > -p.a && v < p.a ? -expm1f(-v) : 0.0f)                                 \
  X(logit, LogitOf(x, p.a), LogitGrad(v, p.a))                                \
  X(trunc, truncf(x), 0.0f)                                                   \
  X(floor, floorf(x), 0.0f)                                                   \
  X(ceil, ceilf(x), 0.0f)                                                     \
  X(round, roundf(x), 0.0f)                                                   \
  X(sign, x > 0 ? 1.0f : (x < 0 ? -1.0f : x), 0.0f)                           \
  X(log1p, log1pf(x), 1 / (1 + v))

// Whole powers that products give exactly, as on the CPU.
PD_DEVICE float PowerOf(float x, float by) {
  if (by == 0) return 1.0f;
  if (by == 1) return x;
  return by == 2 ? x * x : powf(x, by);
}
PD_DEVICE float Between(float x, float top) {
  return x < 0 ? 0.0f : (x > top ? top : x);
}
PD_DEVICE float Beyond(float x, float bound) {
  return x < -bound || x > bound ? 1.0f : 0.0f;
}
PD_DEVICE float Within(float x, float bound) {
  return x < -bound ? -bound : (x > bound ? bound : x);
}
PD_DEVICE float StanhGrad(float a, float b, float x) {
  const float t = tanhf(a * x);
  return a * b * (1 - t * t);
}
// Without eps there is no logit outside [0, 1].
PD_DEVICE float LogitOf(float x, float eps) {
  if (eps == 0 && (x < 0 || x > 1)) return NAN;
  x = x < eps ? eps : (x > 1 - eps ? 1 - eps : x);
  return logf(x / (1 - x));
}
PD_DEVICE float LogitGrad(float x, float eps) {
  if (x < eps || x > 1 - eps) return eps == 0 ? NAN : 0.0f;
  return 1 / (x * (1 - x));
}
PD_DEVICE float SoftAbove(float x, float threshold) {
  return x > threshold ? x : SoftplusOf(x);
}
PD_DEVICE float MishGrad(float x, float threshold) {
  const float t = tanhf(SoftAbove(x, threshold));
  return t + x * (1 - t * t) * SigmoidOf(x);
}
PD_DEVICE float SiluGrad(float x) {
  const float s = SigmoidOf(x);
  return s * (1 + x * (1 - s));
}
PD_DEVICE float Cdf(float x) {
  return 0.5f * (1 + erff(x * 0.70710678118654752f));
}
PD_DEVICE float GeluInner(float x) {
  return tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x));
}
PD_DEVICE float GeluTanh(float x) { return 0.5f * x * (1 + GeluInner(x)); }
PD_DEVICE float GeluTanhGrad(float x) {
  const float t = GeluInner(x);
  const float inner = 0.7978845608028654f * (1 + 3 * 0.044715f * x * x);
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
}

#define PD_FUNCTION(name, f, d)                             \
  struct Unary_##name {                                     \
    PD_DEVICE static float F(float x, const UnaryArgs& p) { \
      (void)p;                                              \
      return f;                                             \
    }                                                       \
    PD_DEVICE static float D(float v, const UnaryArgs& p) { \
      (void)p, (void)v;                                     \
      return d;                                             \
    }                                                       \
  };
PD_UNARY_FUNCTIONS(PD_FUNCTION)
#undef PD_FUNCTION

template <typename Function>
struct UnaryForward {
  PD_DEVICE static void Run(const Block& block, const UnaryArgs& p) {
    block.Spread(p.n, [&](int64_t i) { p.out[i] = Function::F(p.v[i], p); });
  }
};
template <typename Function>
struct UnaryBackward {
  PD_DEVICE static void Run(const Block& block, const UnaryArgs& p) {
    block.Spread(
        p.n, [&](int64_t i) { p.out[i] = p.dout[i] * Function::D(p.v[i], p); });
  }
};

// X(name, F of x and y, DX, DY of x, y, z and d): z is out, d its gradient.
#define PD_BINARY_FUNCTIONS(X)                               \
  X(add, x + y, d, d)                                        \
  X(sub, x - y, d, -d)                                       \
  X(mul, x* y, d* y, d* x)                                   \
  X(div, x / y, d / y, -d * (z / y))                         \
  X(max, x > y ? x : y, x > y ? d : 0.0f, x <= y ? d : 0.0f) \
  X(min, x < y ? x : y, x < y ? d : 0.0f, x >= y ? d : 0.0f) \
  X(pow, powf(x, y), d* y* powf(x, y - 1), d* logf(x) * powf(x, y))

#define PD_FUNCTION(name, f, dx, dy)                                \
  struct Binary_##name {                                            \
    PD_DEVICE static float F(float x, float y) { return f; }        \
  };                                                                \
  struct Binary_##name##_dx {                                       \
    PD_DEVICE static float At(float x, float y, float z, float d) { \
      (void)x, (void)y, (void)z;                                    \
      return dx;                                                    \
    }                                                               \
  };                                                                \
  struct Binary_##name##_dy {                                       \
    PD_DEVICE static float At(float x, float y, float z, float d) { \
      (void)x, (void)y, (void)z;                                    \
      return dy;                                                    \
    }                                                               \
  };
PD_BINARY_FUNCTIONS(PD_FUNCTION)
#undef PD_FUNCTION

// kTo: the argument that is written.
template <typename Function, auto kTo>
struct BinaryForward {
  PD_DEVICE static void Run(const Block& block, const BinaryArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t at[2] = {i, i};
      if (!p.same) Place(p.walk, i, at);
      (p.*kTo)[i] = Function::F(p.x[at[0]], p.y[at[1]]);
    });
  }
};

#define PD_COMPARISONS(X) \
  X(equal, ==)            \
  X(not_equal, !=)        \
  X(less_than, <) X(less_equal, <=) X(greater_than, >) X(greater_equal, >=)
#define PD_FUNCTION(name, sign)                                    \
  struct Compare_##name {                                          \
    PD_DEVICE static bool F(float x, float y) { return x sign y; } \
  };
PD_COMPARISONS(PD_FUNCTION)
#undef PD_FUNCTION

struct Sum {
  static constexpr float kNothing = 0.0f;
  PD_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct Maximum {
  static constexpr float kNothing = -HUGE_VALF;
  PD_DEVICE float operator()(float a, float b) const {
    return b > a || b != b ? b : a;
  }
};
struct Minimum {
  static constexpr float kNothing = HUGE_VALF;
  PD_DEVICE float operator()(float a, float b) const {
    return b < a || b != b ? b : a;
  }
};
struct Product {
  static constexpr float kNothing = 1.0f;
  PD_DEVICE float operator()(float a, float b) const { return a * b; }
};

// What is reduced, of x and of y, which does not change along what is reduced.
struct OfX {
  PD_DEVICE static float At(float x, float, float, float) { return x; }
};

struct SquareOfX {
  PD_DEVICE static float At(float x, float, float, float) { return x * x; }
};
struct NonZero {
  PD_DEVICE static float At(float x, float, float, float) {
    return x == 0 ? 1.0f : x;
  }
};
struct IsZero {
  PD_DEVICE static float At(float x, float, float, float) {
    return x == 0 ? 1.0f : 0.0f;
  }
};
struct IsEqual {
  PD_DEVICE static float At(float x, float y, float, float) {
    return x == y ? 1.0f : 0.0f;
  }
};
struct ExpBelow {
  PD_DEVICE static float At(float x, float y, float, float) {
    return x == y ? 1.0f : expf(x - y);  // infinite ones too
  }
};
struct LogPlus {
  PD_DEVICE static float At(float x, float y, float, float) {
    return logf(x) + y;
  }
};

// Slopes. Of a sum of exponentials with the logarithm y.
struct OfLogSum {
  PD_DEVICE static float At(float x, float y, float, float d) {
    return d * expf(x - y);
  }
};
// Of a maximum or minimum y that z elements share.
struct OfShared {
  PD_DEVICE static float At(float x, float y, float z, float d) {
    return x == y ? d / z : 0.0f;
  }
};
// Of a product: y is that of the elements other than 0, of which there are z.
struct OfProduct {
  PD_DEVICE static float At(float x, float y, float z, float d) {
    if (x == 0) return z == 1 ? d * y : 0.0f;
    return z == 0 ? d * y / x : 0.0f;
  }
};
// Of a maximum or minimum y: d where x is one.
struct OfEqual {
  PD_DEVICE static float At(float x, float y, float, float d) {
    return x == y ? d : 0.0f;
  }
};

template <typename Function>
PD_DEVICE float ElementAt(const ReduceArgs& p, const int64_t* outer,
                          int64_t j) {
  int64_t at[3];
  Place(p.inner, j, at);
  for (int k = 0; k < 3; ++k) at[k] += outer[k];
  return Function::At(
      p.x != nullptr ? p.x[at[0]] : 0.0f, p.y != nullptr ? p.y[at[1]] : 0.0f,
      p.z != nullptr ? p.z[at[2]] : 0.0f, p.dz != nullptr ? p.dz[at[2]] : 0.0f);
}

// One thread for each result: there are many, or few elements each.
template <typename Function, typename Op>
struct ReduceByThread {
  PD_DEVICE static void Run(const Block& block, const ReduceArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t outer[3];
      Place(p.outer, i, outer);
      float result = Op::kNothing;
      for (int64_t j = 0; j < p.m; ++j)
        result = Op()(result, ElementAt<Function>(p, outer, j));
      p.out[i] = result * p.factor;
    });
  }
};

// Of a norm y of order `factor`.
struct NormGrad {
  PD_DEVICE static float Slope(float x, float norm, float order) {
    const float sign = x > 0 ? 1.0f : (x < 0 ? -1.0f : 0.0f);
    if (order == 0) return 0;
    if (fabsf(order) == HUGE_VALF) return fabsf(x) == norm ? sign : 0.0f;
    if (order == 1) return sign;
    if (norm == 0) return 0;
    if (order == 2) return x / norm;
    return x == 0 ? 0.0f : sign * powf(fabsf(x) / norm, order - 1);
  }
  PD_DEVICE static void Run(const Block& block, const ReduceArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t at[3];
      Place(p.outer, i, at);
      p.out[i] = p.dz[at[2]] * Slope(p.x[at[0]], p.y[at[1]], p.factor);
    });
  }
};

// One block for each result.
template <typename Function, typename Op>
struct ReduceByBlock {
  PD_DEVICE static void Run(const Block& block, const ReduceArgs& p) {
    for (int64_t i = block.index(); i < p.n; i += block.blocks()) {
      int64_t outer[3];
      Place(p.outer, i, outer);
      PerThread<float> part(Op::kNothing);
      block.Each([&](int thread) {
        for (int64_t j = thread; j < p.m; j += block.threads())
          part[thread] = Op()(part[thread], ElementAt<Function>(p, outer, j));
      });
      const float result = block.Reduce(&part, Op());
      block.Each([&](int thread) {
        if (thread == 0) p.out[i] = result * p.factor;
      });
    }
  }
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

#define PD_FUNCTION(name, f, d)                                  \
  PD_KERNEL(unary_##name, UnaryForward<Unary_##name>, UnaryArgs) \
  PD_KERNEL(unary_##name##_grad, UnaryBackward<Unary_##name>, UnaryArgs)
PD_UNARY_FUNCTIONS(PD_FUNCTION)
#undef PD_FUNCTION

// A template's comma would end the macro's argument.
#define PD_FUNCTION(name, f, dx, dy)                                     \
  using Forward_##name = BinaryForward<Binary_##name, &BinaryArgs::out>; \
  using ThreadX_##name = ReduceByThread<Binary_##name##_dx, Sum>;        \
  using ThreadY_##name = ReduceByThread<Binary_##name##_dy, Sum>;        \
  using BlockX_##name = ReduceByBlock<Binary_##name##_dx, Sum>;          \
  using BlockY_##name = ReduceByBlock<Binary_##name##_dy, Sum>;          \
  PD_KERNEL(binary_##name, Forward_##name, BinaryArgs)                   \
  PD_KERNEL(binary_##name##_dx_by_thread, ThreadX_##name, ReduceArgs)    \
  PD_KERNEL(binary_##name##_dy_by_thread, ThreadY_##name, ReduceArgs)    \
  PD_KERNEL(binary_##name##_dx_by_block, BlockX_##name, ReduceArgs)      \
  PD_KERNEL(binary_##name##_dy_by_block, BlockY_##name, ReduceArgs)
PD_BINARY_FUNCTIONS(PD_FUNCTION)
#undef PD_FUNCTION

#define PD_FUNCTION(name, sign)                                              \
  using Answer_##name = BinaryForward<Compare_##name, &BinaryArgs::answers>; \
  PD_KERNEL(compare_##name, Answer_##name, BinaryArgs)
PD_COMPARISONS(PD_FUNCTION)
#undef PD_FUNCTION

#define PD_REDUCTION(name, Function, Op)                          \
  using Thread_##name = ReduceByThread<Function, Op>;             \
  using Block_##name = ReduceByBlock<Function, Op>;               \
  PD_KERNEL(reduce_##name##_by_thread, Thread_##name, ReduceArgs) \
  PD_KERNEL(reduce_##name##_by_block, Block_##name, ReduceArgs)
PD_REDUCTION(sum, OfX, Sum)
PD_REDUCTION(max, OfX, Maximum)
PD_REDUCTION(min, OfX, Minimum)
PD_REDUCTION(prod, OfX, Product)
PD_REDUCTION(squares, SquareOfX, Sum)
PD_REDUCTION(nonzero, NonZero, Product)
PD_REDUCTION(zeros, IsZero, Sum)
PD_REDUCTION(equal, IsEqual, Sum)
PD_REDUCTION(exp, ExpBelow, Sum)
#undef PD_REDUCTION
using LogPlusEach = ReduceByThread<LogPlus, Sum>;
PD_KERNEL(log_plus, LogPlusEach, ReduceArgs)
using LogSumGrad = ReduceByThread<OfLogSum, Sum>;
PD_KERNEL(logsumexp_grad, LogSumGrad, ReduceArgs)
using SharedGrad = ReduceByThread<OfShared, Sum>;
PD_KERNEL(shared_grad, SharedGrad, ReduceArgs)
using ProductGrad = ReduceByThread<OfProduct, Sum>;
PD_KERNEL(prod_grad, ProductGrad, ReduceArgs)
PD_KERNEL(norm_grad, NormGrad, ReduceArgs)
using ExtremumGrad = ReduceByThread<OfEqual, Sum>;
PD_KERNEL(extremum_grad, ExtremumGrad, ReduceArgs)

PD_KERNEL(copy_1, CopyStrided<uint8_t>, CopyArgs)
PD_KERNEL(copy_2, CopyStrided<uint16_t>, CopyArgs)
PD_KERNEL(copy_4, CopyStrided<uint32_t>, CopyArgs)
PD_KERNEL(copy_8, CopyStrided<uint64_t>, CopyArgs)
PD_KERNEL(fill_1, Fill<uint8_t>, FillArgs)
PD_KERNEL(fill_2, Fill<uint16_t>, FillArgs)
PD_KERNEL(fill_4, Fill<uint32_t>, FillArgs)
PD_KERNEL(fill_8, Fill<uint64_t>, FillArgs)
