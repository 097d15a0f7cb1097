// SPDX-License-Identifier: Apache-2.0
// Tensor functions that came with PaddlePaddle 2.4 to 2.6, and those of
// paddle::experimental that sources call most.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_NEWER_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_NEWER_H_

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "paddle_math.h"
#include "paddle_op_call.h"

namespace paddle {
namespace experimental {

inline Tensor add_n(const std::vector<Tensor>& inputs) {
  return detail::Op("sum").In("X", inputs).Out("Out").One();
}
inline Tensor argmax(const Tensor& x, const Scalar& axis, bool keepdims = false,
                     bool flatten = false, DataType dtype = DataType::INT64) {
  const Tensor places = detail::Op("arg_max")
                            .In("X", x)
                            .Attr("axis", axis)
                            .Attr("keepdims", keepdims)
                            .Attr("flatten", flatten)
                            .Out("Out")
                            .One();
  return dtype == DataType::INT64 ? places : cast(places, dtype);
}
inline Tensor bmm(const Tensor& x, const Tensor& y) {
  return detail::Op("bmm").In("X", x).In("Y", y).Out("Out").One();
}
inline Tensor cumsum(const Tensor& x, const Scalar& axis = -1,
                     bool flatten = false, bool exclusive = false,
                     bool reverse = false) {
  return detail::Op("cumsum")
      .In("X", x)
      .Attr("axis", axis)
      .Attr("flatten", flatten)
      .Attr("exclusive", exclusive)
      .Attr("reverse", reverse)
      .Out("Out")
      .One();
}
inline Tensor embedding(const Tensor& x, const Tensor& weight,
                        int64_t padding_idx = -1, bool /*sparse*/ = false) {
  return detail::Op("lookup_table_v2")
      .In("Ids", x)
      .In("W", weight)
      .Attr("padding_idx", padding_idx)
      .Out("Out")
      .One();
}
inline Tensor frame(const Tensor& x, int frame_length, int hop_length,
                    int axis = -1) {
  return detail::Op("frame")
      .In("X", x)
      .Attr("frame_length", frame_length)
      .Attr("hop_length", hop_length)
      .Attr("axis", axis)
      .Out("Out")
      .One();
}
inline Tensor hardswish(const Tensor& x) {
  return detail::Op("hard_swish").In("X", x).Out("Out").One();
}
inline Tensor hardtanh(const Tensor& x, float t_min = 0, float t_max = 24) {
  return detail::Op("brelu")
      .In("X", x)
      .Attr("t_min", t_min)
      .Attr("t_max", t_max)
      .Out("Out")
      .One();
}
inline Tensor index_select(const Tensor& x, const Tensor& index, int axis = 0) {
  return detail::Op("index_select")
      .In("X", x)
      .In("Index", index)
      .Attr("dim", axis)
      .Out("Out")
      .One();
}
inline Tensor layer_norm(const Tensor& x, const optional<Tensor>& scale,
                         const optional<Tensor>& bias, float epsilon = 1e-5f,
                         int begin_norm_axis = 1) {
  return detail::Op("layer_norm")
      .In("X", x)
      .In("Scale", scale)
      .In("Bias", bias)
      .Attr("epsilon", epsilon)
      .Attr("begin_norm_axis", begin_norm_axis)
      .Out("Y")
      .One();
}
inline Tensor leaky_relu(const Tensor& x, float negative_slope = 0.02f) {
  return detail::Op("leaky_relu")
      .In("X", x)
      .Attr("alpha", negative_slope)
      .Out("Out")
      .One();
}
inline Tensor log_softmax(const Tensor& x, int axis = -1) {
  return detail::Op("log_softmax")
      .In("X", x)
      .Attr("axis", axis)
      .Out("Out")
      .One();
}
inline std::vector<Tensor> meshgrid(const std::vector<Tensor>& inputs) {
  return detail::Op("meshgrid")
      .In("X", inputs)
      .Out("Out", inputs.size())
      .Many();
}
/// The tensor itself: there is no such format here.
inline Tensor npu_identity(const Tensor& x, int /*format*/ = -1) { return x; }
inline Tensor overlap_add(const Tensor& x, int hop_length, int axis = -1) {
  return detail::Op("overlap_add")
      .In("X", x)
      .Attr("hop_length", hop_length)
      .Attr("axis", axis)
      .Out("Out")
      .One();
}
inline Tensor p_norm(const Tensor& x, float porder = 2, int axis = -1,
                     float epsilon = 1.0e-12f, bool keepdim = false,
                     bool asvector = false) {
  return detail::Op("p_norm")
      .In("X", x)
      .Attr("porder", porder)
      .Attr("axis", axis)
      .Attr("epsilon", epsilon)
      .Attr("keepdim", keepdim)
      .Attr("asvector", asvector)
      .Out("Out")
      .One();
}
inline Tensor put_along_axis(const Tensor& arr, const Tensor& indices,
                             const Tensor& values, int axis,
                             const std::string& reduce = "assign") {
  return detail::Op("put_along_axis")
      .In("Input", arr)
      .In("Index", indices)
      .In("Value", values)
      .Attr("Axis", axis)
      .Attr("Reduce", reduce)
      .Out("Result")
      .One();
}
inline Tensor send_u_recv(const Tensor& x, const Tensor& src_index,
                          const Tensor& dst_index,
                          const std::string& reduce_op = "SUM") {
  return detail::Op("graph_send_recv")
      .In("X", x)
      .In("Src_index", src_index)
      .In("Dst_index", dst_index)
      .Attr("reduce_op", reduce_op)
      .Out("Out")
      .One();
}
inline Tensor send_ue_recv(const Tensor& x, const Tensor& y,
                           const Tensor& src_index, const Tensor& dst_index,
                           const std::string& message_op = "ADD",
                           const std::string& reduce_op = "SUM") {
  return detail::Op("graph_send_ue_recv")
      .In("X", x)
      .In("Y", y)
      .In("Src_index", src_index)
      .In("Dst_index", dst_index)
      .Attr("message_op", message_op)
      .Attr("reduce_op", reduce_op)
      .Out("Out")
      .One();
}
inline Tensor send_uv(const Tensor& x, const Tensor& y, const Tensor& src_index,
                      const Tensor& dst_index,
                      const std::string& message_op = "ADD") {
  return detail::Op("graph_send_uv")
      .In("x", x)
      .In("y", y)
      .In("src_index", src_index)
      .In("dst_index", dst_index)
      .Attr("message_op", message_op)
      .Out("out")
      .One();
}
inline Tensor slice(const Tensor& input, const std::vector<int64_t>& axes,
                    const IntArray& starts, const IntArray& ends,
                    const std::vector<int64_t>& /*infer_flags*/ = {},
                    const std::vector<int64_t>& decrease_axis = {}) {
  return detail::Op("slice")
      .In("Input", input)
      .Attr("axes", axes)
      .Attr("starts", starts)
      .Attr("ends", ends)
      .Attr("decrease_axis", decrease_axis)
      .Out("Out")
      .One();
}
inline Tensor softplus(const Tensor& x, float beta = 1.0f,
                       float threshold = 20.0f) {
  return detail::Op("softplus")
      .In("X", x)
      .Attr("beta", beta)
      .Attr("threshold", threshold)
      .Out("Out")
      .One();
}
inline Tensor squeeze(const Tensor& x, const IntArray& axis = {}) {
  return detail::Op("squeeze2").In("X", x).Attr("axes", axis).Out("Out").One();
}
inline Tensor swish(const Tensor& x) {
  return detail::Op("swish").In("X", x).Out("Out").One();
}
inline Tensor take_along_axis(const Tensor& arr, const Tensor& indices,
                              int axis) {
  return detail::Op("take_along_axis")
      .In("Input", arr)
      .In("Index", indices)
      .Attr("Axis", axis)
      .Out("Result")
      .One();
}
inline std::tuple<Tensor, Tensor> topk(const Tensor& x, const Scalar& k = 1,
                                       int axis = -1, bool largest = true,
                                       bool sorted = true) {
  auto results = detail::Op("top_k_v2")
                     .In("X", x)
                     .Attr("k", k)
                     .Attr("axis", axis)
                     .Attr("largest", largest)
                     .Attr("sorted", sorted)
                     .Out("Out")
                     .Out("Indices")
                     .All();
  return std::make_tuple(results[0][0], results[1][0]);
}
inline Tensor tril(const Tensor& x, int diagonal = 0) {
  return detail::Op("tril_triu")
      .In("X", x)
      .Attr("diagonal", diagonal)
      .Attr("lower", true)
      .Out("Out")
      .One();
}
inline Tensor triu(const Tensor& x, int diagonal = 0) {
  return detail::Op("tril_triu")
      .In("X", x)
      .Attr("diagonal", diagonal)
      .Attr("lower", false)
      .Out("Out")
      .One();
}

}  // namespace experimental

using experimental::frame;
using experimental::hardswish;
using experimental::hardtanh;
using experimental::meshgrid;
using experimental::npu_identity;
using experimental::overlap_add;
using experimental::put_along_axis;
using experimental::send_u_recv;
using experimental::send_ue_recv;
using experimental::send_uv;
using experimental::swish;
using experimental::tril;

}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_NEWER_H_
