// SPDX-License-Identifier: Apache-2.0
// Functions of tensors, element by element, and their comparisons and sums:
// each computes with the operator of the library. They record no gradients.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_MATH_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_MATH_H_

#include <string>
#include <tuple>

#include "paddle_op_call.h"

namespace paddle {
namespace experimental {

// Functions of one tensor: the name, the operator's.
#define PD_ONE(name, type)                                \
  inline Tensor name(const Tensor& x) {                   \
    return detail::Op(#type).In("X", x).Out("Out").One(); \
  }                                                       \
  static_assert(true, "")
PD_ONE(abs, abs);
PD_ONE(acos, acos);
PD_ONE(acosh, acosh);
PD_ONE(asin, asin);
PD_ONE(asinh, asinh);
PD_ONE(assign, assign);
PD_ONE(atan, atan);
PD_ONE(atanh, atanh);
PD_ONE(bernoulli, bernoulli);
PD_ONE(bitwise_not, bitwise_not);
PD_ONE(ceil, ceil);
PD_ONE(conj, conj);
PD_ONE(cos, cos);
PD_ONE(cosh, cosh);
PD_ONE(digamma, digamma);
PD_ONE(erf, erf);
PD_ONE(erfinv, erfinv);
PD_ONE(exp, exp);
PD_ONE(expm1, expm1);
PD_ONE(floor, floor);
PD_ONE(imag, imag);
PD_ONE(is_empty, is_empty);
PD_ONE(isfinite, isfinite_v2);
PD_ONE(isinf, isinf_v2);
PD_ONE(isnan, isnan_v2);
PD_ONE(lgamma, lgamma);
PD_ONE(log, log);
PD_ONE(log10, log10);
PD_ONE(log1p, log1p);
PD_ONE(log2, log2);
PD_ONE(logical_not, logical_not);
PD_ONE(poisson, poisson);
PD_ONE(real, real);
PD_ONE(reciprocal, reciprocal);
PD_ONE(relu, relu);
PD_ONE(relu6, relu6);
PD_ONE(round, round);
PD_ONE(rsqrt, rsqrt);
PD_ONE(sigmoid, sigmoid);
PD_ONE(sign, sign);
PD_ONE(silu, silu);
PD_ONE(sin, sin);
PD_ONE(sinh, sinh);
PD_ONE(sqrt, sqrt);
PD_ONE(square, square);
PD_ONE(tan, tan);
PD_ONE(tanh, tanh);
#undef PD_ONE

// A function of two tensors: its name, the operator's, and the slots.
#define PD_TWO(name, type, X, Y)                                   \
  inline Tensor name(const Tensor& x, const Tensor& y) {           \
    return detail::Op(#type).In(#X, x).In(#Y, y).Out("Out").One(); \
  }                                                                \
  static_assert(true, "")
PD_TWO(add, elementwise_add, X, Y);
PD_TWO(atan2, atan2, X1, X2);
PD_TWO(bitwise_and, bitwise_and, X, Y);
PD_TWO(bitwise_or, bitwise_or, X, Y);
PD_TWO(bitwise_xor, bitwise_xor, X, Y);
PD_TWO(divide, elementwise_div, X, Y);
PD_TWO(dot, dot, X, Y);
PD_TWO(elementwise_pow, elementwise_pow, X, Y);
PD_TWO(equal_all, equal_all, X, Y);
PD_TWO(floor_divide, elementwise_floordiv, X, Y);
PD_TWO(fmax, elementwise_fmax, X, Y);
PD_TWO(fmin, elementwise_fmin, X, Y);
PD_TWO(gather_nd, gather_nd, X, Index);
PD_TWO(index_sample, index_sample, X, Index);
PD_TWO(kron, kron, X, Y);
PD_TWO(logical_and, logical_and, X, Y);
PD_TWO(logical_or, logical_or, X, Y);
PD_TWO(logical_xor, logical_xor, X, Y);
PD_TWO(maximum, elementwise_max, X, Y);
PD_TWO(minimum, elementwise_min, X, Y);
PD_TWO(multiply, elementwise_mul, X, Y);
PD_TWO(mv, mv, X, Vec);
PD_TWO(remainder, elementwise_mod, X, Y);
PD_TWO(subtract, elementwise_sub, X, Y);
#undef PD_TWO
// Comparisons; programs for 2.3 give an axis, which shapes that fit do not
// need.
#define PD_COMPARISON(name)                                                 \
  inline Tensor name(const Tensor& x, const Tensor& y, int /*axis*/ = -1) { \
    return detail::Op(#name).In("X", x).In("Y", y).Out("Out").One();        \
  }                                                                         \
  static_assert(true, "")
PD_COMPARISON(equal);
PD_COMPARISON(greater_equal);
PD_COMPARISON(greater_than);
PD_COMPARISON(less_equal);
PD_COMPARISON(less_than);
PD_COMPARISON(not_equal);
#undef PD_COMPARISON
inline Tensor allclose(const Tensor& x, const Tensor& y, const Scalar& rtol,
                       const Scalar& atol, bool equal_nan) {
  return detail::Op("allclose")
      .In("Input", x)
      .In("Other", y)
      .Attr("rtol", rtol)
      .Attr("atol", atol)
      .Attr("equal_nan", equal_nan)
      .Out("Out")
      .One();
}
inline Tensor isclose(const Tensor& x, const Tensor& y, const Scalar& rtol,
                      const Scalar& atol, bool equal_nan) {
  return detail::Op("isclose")
      .In("Input", x)
      .In("Other", y)
      .Attr("rtol", rtol)
      .Attr("atol", atol)
      .Attr("equal_nan", equal_nan)
      .Out("Out")
      .One();
}
inline Tensor clip(const Tensor& x, const Scalar& min, const Scalar& max) {
  return detail::Op("clip")
      .In("X", x)
      .Attr("min", min)
      .Attr("max", max)
      .Out("Out")
      .One();
}
inline Tensor cross(const Tensor& x, const Tensor& y, int axis = 9) {
  return detail::Op("cross")
      .In("X", x)
      .In("Y", y)
      .Attr("dim", axis)
      .Out("Out")
      .One();
}
inline Tensor dist(const Tensor& x, const Tensor& y, float p) {
  return detail::Op("dist").In("X", x).In("Y", y).Attr("p", p).Out("Out").One();
}
inline Tensor elu(const Tensor& x, float alpha) {
  return detail::Op("elu").In("X", x).Attr("alpha", alpha).Out("Out").One();
}
inline Tensor gelu(const Tensor& x, bool approximate) {
  return detail::Op("gelu")
      .In("X", x)
      .Attr("approximate", approximate)
      .Out("Out")
      .One();
}
inline Tensor gumbel_softmax(const Tensor& x, float temperature, bool hard,
                             int axis) {
  return detail::Op("gumbel_softmax")
      .In("X", x)
      .Attr("temperature", temperature)
      .Attr("hard", hard)
      .Attr("axis", axis)
      .Out("Out")
      .One();
}
inline Tensor increment(const Tensor& x, float value) {
  return detail::Op("increment")
      .In("X", x)
      .Attr("step", value)
      .Out("Out")
      .One();
}
inline Tensor label_smooth(const Tensor& label,
                           const optional<Tensor>& prior_dist, float epsilon) {
  return detail::Op("label_smooth")
      .In("X", label)
      .In("PriorDist", prior_dist)
      .Attr("epsilon", epsilon)
      .Out("Out")
      .One();
}
inline Tensor lerp(const Tensor& x, const Tensor& y, const Tensor& weight) {
  return detail::Op("lerp")
      .In("X", x)
      .In("Y", y)
      .In("Weight", weight)
      .Out("Out")
      .One();
}
inline Tensor logit(const Tensor& x, float eps = 1e-6f) {
  return detail::Op("logit").In("X", x).Attr("eps", eps).Out("Out").One();
}
inline Tensor maxout(const Tensor& x, int groups, int axis) {
  return detail::Op("maxout")
      .In("X", x)
      .Attr("groups", groups)
      .Attr("axis", axis)
      .Out("Out")
      .One();
}
inline Tensor multinomial(const Tensor& x, int num_samples, bool replacement) {
  return detail::Op("multinomial")
      .In("X", x)
      .Attr("num_samples", num_samples)
      .Attr("replacement", replacement)
      .Out("Out")
      .One();
}
inline std::tuple<Tensor, Tensor> nll_loss(const Tensor& input,
                                           const Tensor& label,
                                           const optional<Tensor>& weight,
                                           int64_t ignore_index,
                                           const std::string& reduction) {
  const auto all = detail::Op("nll_loss")
                       .In("X", input)
                       .In("Label", label)
                       .In("Weight", weight)
                       .Attr("ignore_index", ignore_index)
                       .Attr("reduction", reduction)
                       .Out("Out")
                       .Out("Total_weight")
                       .All();
  return std::make_tuple(all[0][0], all[1][0]);
}
inline Tensor pow(const Tensor& x, const Scalar& y) {
  return detail::Op("pow").In("X", x).Attr("factor", y).Out("Out").One();
}
inline Tensor scale(const Tensor& x, const Scalar& scale = 1.0f,
                    float bias = 0.0f, bool bias_after_scale = true) {
  return detail::Op("scale")
      .In("X", x)
      .Attr("scale", scale)
      .Attr("bias", bias)
      .Attr("bias_after_scale", bias_after_scale)
      .Out("Out")
      .One();
}
inline Tensor selu(const Tensor& x, float scale, float alpha) {
  return detail::Op("selu")
      .In("X", x)
      .Attr("scale", scale)
      .Attr("alpha", alpha)
      .Out("Out")
      .One();
}
inline Tensor softmax(const Tensor& x, int axis = -1) {
  return detail::Op("softmax").In("X", x).Attr("axis", axis).Out("Out").One();
}
inline Tensor thresholded_relu(const Tensor& x, float threshold) {
  return detail::Op("thresholded_relu")
      .In("X", x)
      .Attr("threshold", threshold)
      .Out("Out")
      .One();
}

// Reductions; no axis: all of them.
#define PD_REDUCTION(name, type)                                 \
  inline Tensor name(const Tensor& x, const IntArray& axis = {}, \
                     bool keepdim = false) {                     \
    detail::Op op(#type);                                        \
    op.In("X", x).Attr("keep_dim", keepdim);                     \
    if (axis.size() == 0)                                        \
      op.Attr("reduce_all", true);                               \
    else                                                         \
      op.Attr("dim", axis);                                      \
    return op.Out("Out").One();                                  \
  }                                                              \
  static_assert(true, "")
PD_REDUCTION(max, reduce_max);
PD_REDUCTION(mean, reduce_mean);
PD_REDUCTION(min, reduce_min);
#undef PD_REDUCTION
Tensor cast(const Tensor& x, DataType dtype);
inline Tensor sum(const Tensor& x, const IntArray& axis = {},
                  DataType dtype = DataType::UNDEFINED, bool keepdim = false) {
  detail::Op op("reduce_sum");
  op.In("X", dtype == DataType::UNDEFINED ? x : cast(x, dtype));
  op.Attr("keep_dim", keepdim);
  if (axis.size() == 0)
    op.Attr("reduce_all", true);
  else
    op.Attr("dim", axis);
  return op.Out("Out").One();
}

}  // namespace experimental
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_MATH_H_
