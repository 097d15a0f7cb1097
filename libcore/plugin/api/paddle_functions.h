// SPDX-License-Identifier: Apache-2.0
// The tensor functions in namespace paddle, as methods, and as operators.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_FUNCTIONS_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_FUNCTIONS_H_

#include "paddle_arrange.h"
#include "paddle_create.h"
#include "paddle_linalg.h"
#include "paddle_math.h"
#include "paddle_more.h"
#include "paddle_newer.h"

namespace paddle {

using experimental::abs;
using experimental::acos;
using experimental::acosh;
using experimental::add;
using experimental::addmm;
using experimental::allclose;
using experimental::argsort;
using experimental::asin;
using experimental::asinh;
using experimental::assign;
using experimental::atan;
using experimental::atan2;
using experimental::atanh;
using experimental::bernoulli;
using experimental::bitwise_and;
using experimental::bitwise_not;
using experimental::bitwise_or;
using experimental::bitwise_xor;
using experimental::cast;
using experimental::ceil;
using experimental::cholesky;
using experimental::cholesky_solve;
using experimental::clip;
using experimental::concat;
using experimental::conj;
using experimental::cos;
using experimental::cosh;
using experimental::cross;
using experimental::det;
using experimental::diag;
using experimental::diagonal;
using experimental::digamma;
using experimental::dist;
using experimental::divide;
using experimental::dot;
using experimental::elementwise_pow;
using experimental::elu;
using experimental::empty;
using experimental::empty_like;
using experimental::equal;
using experimental::equal_all;
using experimental::erf;
using experimental::erfinv;
using experimental::exp;
using experimental::expand;
using experimental::expm1;
using experimental::fill;
using experimental::flatten;
using experimental::flip;
using experimental::floor;
using experimental::floor_divide;
using experimental::fmax;
using experimental::fmin;
using experimental::full;
using experimental::full_like;
using experimental::gather;
using experimental::gather_nd;
using experimental::gelu;
using experimental::greater_equal;
using experimental::greater_than;
using experimental::gumbel_softmax;
using experimental::imag;
using experimental::increment;
using experimental::index_sample;
using experimental::is_empty;
using experimental::isclose;
using experimental::isfinite;
using experimental::isinf;
using experimental::isnan;
using experimental::kron;
using experimental::kthvalue;
using experimental::label_smooth;
using experimental::lerp;
using experimental::less_equal;
using experimental::less_than;
using experimental::lgamma;
using experimental::log;
using experimental::log10;
using experimental::log1p;
using experimental::log2;
using experimental::logical_and;
using experimental::logical_not;
using experimental::logical_or;
using experimental::logical_xor;
using experimental::logit;
using experimental::masked_select;
using experimental::matmul;
using experimental::matrix_power;
using experimental::max;
using experimental::maximum;
using experimental::maxout;
using experimental::mean;
using experimental::min;
using experimental::minimum;
using experimental::mode;
using experimental::multi_dot;
using experimental::multinomial;
using experimental::multiply;
using experimental::mv;
using experimental::nll_loss;
using experimental::not_equal;
using experimental::one_hot;
using experimental::ones;
using experimental::ones_like;
using experimental::pixel_shuffle;
using experimental::poisson;
using experimental::pow;
using experimental::qr;
using experimental::real;
using experimental::reciprocal;
using experimental::relu;
using experimental::relu6;
using experimental::remainder;
using experimental::reshape;
using experimental::roll;
using experimental::round;
using experimental::rsqrt;
using experimental::scale;
using experimental::scatter;
using experimental::scatter_nd_add;
using experimental::selu;
using experimental::sigmoid;
using experimental::sign;
using experimental::silu;
using experimental::sin;
using experimental::sinh;
using experimental::softmax;
using experimental::split;
using experimental::sqrt;
using experimental::square;
using experimental::stack;
using experimental::strided_slice;
using experimental::subtract;
using experimental::sum;
using experimental::tan;
using experimental::tanh;
using experimental::thresholded_relu;
using experimental::tile;
using experimental::trace;
using experimental::transpose;
using experimental::triangular_solve;
using experimental::tril_triu;
using experimental::unbind;
using experimental::unique;
using experimental::unsqueeze;
using experimental::where;
using experimental::zeros;
using experimental::zeros_like;

#define PD_ONE(name) \
  inline Tensor Tensor::name() const { return experimental::name(*this); }
#define PD_TWO(name)                                  \
  inline Tensor Tensor::name(const Tensor& y) const { \
    return experimental::name(*this, y);              \
  }
PD_TENSOR_METHODS(PD_ONE, PD_TWO)
#undef PD_ONE
#undef PD_TWO
inline Tensor Tensor::cast(DataType dtype) const {
  return experimental::cast(*this, dtype);
}
inline Tensor Tensor::pow(const Scalar& y) const {
  return experimental::pow(*this, y);
}
inline Tensor Tensor::matmul(const Tensor& y, bool transpose_x,
                             bool transpose_y) const {
  return experimental::matmul(*this, y, transpose_x, transpose_y);
}
inline Tensor Tensor::sum(const IntArray& axis, DataType dtype,
                          bool keepdim) const {
  return experimental::sum(*this, axis, dtype, keepdim);
}
inline Tensor Tensor::scale(const Scalar& scale, float bias,
                            bool bias_after_scale) const {
  return experimental::scale(*this, scale, bias, bias_after_scale);
}
inline Tensor Tensor::tile(const IntArray& repeat_times) const {
  return experimental::tile(*this, repeat_times);
}
inline Tensor Tensor::expand(const IntArray& shape) const {
  return experimental::expand(*this, shape);
}
inline Tensor Tensor::assign() const { return experimental::assign(*this); }
inline Tensor Tensor::max(const IntArray& axis, bool keepdim) const {
  return experimental::max(*this, axis, keepdim);
}
inline Tensor Tensor::roll(const IntArray& shifts,
                           const std::vector<int64_t>& axis) const {
  return experimental::roll(*this, shifts, axis);
}
inline Tensor Tensor::scatter(const Tensor& index, const Tensor& updates,
                              bool overwrite) const {
  return experimental::scatter(*this, index, updates, overwrite);
}
inline Tensor Tensor::scatter_nd_add(const Tensor& index,
                                     const Tensor& updates) const {
  return experimental::scatter_nd_add(*this, index, updates);
}

// A number beside a tensor is a tensor of one element of its type.
#define PD_OPERATOR(op, function)                                            \
  inline Tensor operator op(const Tensor& x, const Tensor& y) {              \
    return experimental::function(x, y);                                     \
  }                                                                          \
  inline Tensor operator op(const Tensor& x, const Scalar& y) {              \
    return experimental::function(x, experimental::full({1}, y, x.dtype())); \
  }                                                                          \
  inline Tensor operator op(const Scalar& x, const Tensor& y) {              \
    return experimental::function(experimental::full({1}, x, y.dtype()), y); \
  }
PD_OPERATOR(+, add)
PD_OPERATOR(-, subtract)
PD_OPERATOR(*, multiply)
PD_OPERATOR(/, divide)
#undef PD_OPERATOR
#define PD_OPERATOR(op, function)                               \
  inline Tensor operator op(const Tensor& x, const Tensor& y) { \
    return experimental::function(x, y);                        \
  }
PD_OPERATOR(<, less_than)
PD_OPERATOR(<=, less_equal)
PD_OPERATOR(==, equal)
PD_OPERATOR(!=, not_equal)
PD_OPERATOR(>, greater_than)
PD_OPERATOR(>=, greater_equal)
PD_OPERATOR(&, bitwise_and)
PD_OPERATOR(|, bitwise_or)
PD_OPERATOR(^, bitwise_xor)
#undef PD_OPERATOR
inline Tensor operator~(const Tensor& x) {
  return experimental::bitwise_not(x);
}
inline Tensor operator-(const Tensor& x) { return experimental::scale(x, -1); }

}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_FUNCTIONS_H_
