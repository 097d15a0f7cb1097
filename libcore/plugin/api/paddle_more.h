// SPDX-License-Identifier: Apache-2.0
// Further tensor functions of paddle::experimental, with the arguments of
// PaddlePaddle 2.6.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_MORE_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_MORE_H_

#include <cstdint>
#include <vector>

#include "paddle_create.h"
#include "paddle_math.h"
#include "paddle_op_call.h"

namespace paddle {
namespace experimental {
namespace detail_more {

inline Tensor Reduced(const char* type, const Tensor& x, const IntArray& axis,
                      bool keepdim) {
  paddle::detail::Op op(type);
  op.In("X", x).Attr("keep_dim", keepdim);
  if (axis.size() == 0)
    op.Attr("reduce_all", true);
  else
    op.Attr("dim", axis);
  return op.Out("Out").One();
}
inline Tensor OfOne(const char* type, const Tensor& x) {
  return paddle::detail::Op(type).In("X", x).Out("Out").One();
}

}  // namespace detail_more

inline Tensor amax(const Tensor& x, const std::vector<int64_t>& axis = {},
                   bool keepdim = false) {
  return detail_more::Reduced("reduce_amax", x, axis, keepdim);
}
inline Tensor amin(const Tensor& x, const std::vector<int64_t>& axis = {},
                   bool keepdim = false) {
  return detail_more::Reduced("reduce_amin", x, axis, keepdim);
}
inline Tensor prod(const Tensor& x, const IntArray& dims, bool keep_dim,
                   bool reduce_all) {
  return detail_more::Reduced("reduce_prod", x, reduce_all ? IntArray() : dims,
                              keep_dim);
}
inline Tensor logsumexp(const Tensor& x, const std::vector<int64_t>& axis,
                        bool keepdim, bool reduce_all) {
  paddle::detail::Op op("logsumexp");
  op.In("X", x).Attr("keepdim", keepdim).Attr("reduce_all", reduce_all);
  return op.Attr("axis", IntArray(axis)).Out("Out").One();
}
inline Tensor logsigmoid(const Tensor& x) {
  return detail_more::OfOne("logsigmoid", x);
}
inline Tensor softsign(const Tensor& x) {
  return detail_more::OfOne("softsign", x);
}
inline Tensor trunc(const Tensor& x) { return detail_more::OfOne("trunc", x); }
inline Tensor mean_all(const Tensor& x) {
  return detail_more::OfOne("mean", x);
}
/// The places of all elements that are not 0, a row each.
inline Tensor nonzero(const Tensor& condition) {
  return paddle::detail::Op("where_index")
      .In("Condition", condition)
      .Out("Out")
      .One();
}
inline Tensor inverse(const Tensor& x) {
  return paddle::detail::Op("inverse").In("Input", x).Out("Output").One();
}
inline Tensor argmin(const Tensor& x, const Scalar& axis, bool keepdims = false,
                     bool flatten = false, DataType dtype = DataType::INT64) {
  const Tensor places = paddle::detail::Op("arg_min")
                            .In("X", x)
                            .Attr("axis", axis)
                            .Attr("keepdims", keepdims)
                            .Attr("flatten", flatten)
                            .Out("Out")
                            .One();
  return dtype == DataType::INT64 ? places : cast(places, dtype);
}
inline Tensor arange(const Tensor& start, const Tensor& end, const Tensor& step,
                     DataType dtype, const Place& = {}) {
  return paddle::detail::Op("range")
      .In("Start", cast(start, dtype))
      .In("End", cast(end, dtype))
      .In("Step", cast(step, dtype))
      .Out("Out")
      .One();
}
inline Tensor eye(const Scalar& num_rows, const Scalar& num_columns,
                  DataType dtype = DataType::FLOAT32, const Place& = {}) {
  return cast(paddle::detail::Op("eye")
                  .Attr("num_rows", num_rows)
                  .Attr("num_columns", num_columns)
                  .Out("Out")
                  .One(),
              dtype);
}
inline Tensor expand_as(const Tensor& x, const optional<Tensor>& y,
                        const std::vector<int>& target_shape = {}) {
  paddle::detail::Op op("expand_as_v2");
  op.In("X", x).In("Y", y);
  const IntArray shape(
      y ? y->shape()
        : std::vector<int64_t>(target_shape.begin(), target_shape.end()));
  return op.Attr("target_shape", shape).Out("Out").One();
}
inline std::vector<Tensor> split_with_num(const Tensor& x, int num,
                                          const Scalar& axis) {
  return paddle::detail::Op("split")
      .In("X", x)
      .Attr("axis", axis)
      .Attr("num", Scalar(num))
      .Out("Out", static_cast<size_t>(num))
      .Many();
}
inline std::vector<Tensor> unstack(const Tensor& x, int axis = 0, int num = 0) {
  const int rank = static_cast<int>(x.shape().size());
  PD_CHECK(axis >= -rank && axis < rank, "axis is ", axis, " of ", rank,
           " axes");
  const int64_t parts =
      x.shape()[static_cast<size_t>(axis + rank) % static_cast<size_t>(rank)];
  return paddle::detail::Op("unstack")
      .In("X", x)
      .Attr("axis", axis)
      .Attr("num", num)
      .Out("Y", static_cast<size_t>(parts))
      .Many();
}

}  // namespace experimental
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_MORE_H_
