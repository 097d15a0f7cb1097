// SPDX-License-Identifier: Apache-2.0
// Functions that arrange and select elements of tensors. The notes of
// paddle_math.h hold here too.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_ARRANGE_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_ARRANGE_H_

#include <string>
#include <tuple>
#include <vector>

#include "paddle_op_call.h"

namespace paddle {
namespace experimental {

inline std::tuple<Tensor, Tensor> argsort(const Tensor& x, int axis,
                                          bool descending) {
  const auto all = detail::Op("argsort")
                       .In("X", x)
                       .Attr("axis", axis)
                       .Attr("descending", descending)
                       .Out("Out")
                       .Out("Indices")
                       .All();
  return std::make_tuple(all[0][0], all[1][0]);
}
inline Tensor concat(const std::vector<Tensor>& x, const Scalar& axis) {
  return detail::Op("concat").In("X", x).Attr("axis", axis).Out("Out").One();
}
inline Tensor diag(const Tensor& x, int offset, float padding_value) {
  return detail::Op("diag_v2")
      .In("X", x)
      .Attr("offset", offset)
      .Attr("padding_value", padding_value)
      .Out("Out")
      .One();
}
inline Tensor diagonal(const Tensor& x, int offset, int axis1, int axis2) {
  return detail::Op("diagonal")
      .In("Input", x)
      .Attr("offset", offset)
      .Attr("axis1", axis1)
      .Attr("axis2", axis2)
      .Out("Out")
      .One();
}
inline Tensor expand(const Tensor& x, const IntArray& shape) {
  return detail::Op("expand_v2")
      .In("X", x)
      .Attr("shape", shape)
      .Out("Out")
      .One();
}
inline TensorAndShape flatten(const Tensor& x, int start_axis = 1,
                              int stop_axis = 1) {
  const auto all = detail::Op("flatten_contiguous_range")
                       .In("X", x)
                       .Attr("start_axis", start_axis)
                       .Attr("stop_axis", stop_axis)
                       .Out("Out")
                       .Out("XShape")
                       .All();
  return TensorAndShape(all[0][0], all[1][0]);
}
inline Tensor flip(const Tensor& x, const std::vector<int>& axis) {
  return detail::Op("flip").In("X", x).Attr("axis", axis).Out("Out").One();
}
inline Tensor gather(const Tensor& x, const Tensor& index,
                     const Scalar& axis = 0) {
  return detail::Op("gather")
      .In("X", x)
      .In("Index", index)
      .Attr("axis", axis)
      .Out("Out")
      .One();
}
inline std::tuple<Tensor, Tensor> kthvalue(const Tensor& x, int k, int axis,
                                           bool keepdim) {
  const auto all = detail::Op("kthvalue")
                       .In("X", x)
                       .Attr("k", k)
                       .Attr("axis", axis)
                       .Attr("keepdim", keepdim)
                       .Out("Out")
                       .Out("Indices")
                       .All();
  return std::make_tuple(all[0][0], all[1][0]);
}
inline Tensor masked_select(const Tensor& x, const Tensor& mask) {
  return detail::Op("masked_select").In("X", x).In("Mask", mask).Out("Y").One();
}
inline std::tuple<Tensor, Tensor> mode(const Tensor& x, int axis,
                                       bool keepdim) {
  const auto all = detail::Op("mode")
                       .In("X", x)
                       .Attr("axis", axis)
                       .Attr("keepdim", keepdim)
                       .Out("Out")
                       .Out("Indices")
                       .All();
  return std::make_tuple(all[0][0], all[1][0]);
}
inline Tensor one_hot(const Tensor& x, const Scalar& num_classes) {
  return detail::Op("one_hot_v2")
      .In("X", x)
      .Attr("depth", num_classes)
      .Attr("dtype", DataType::FLOAT32)
      .Out("Out")
      .One();
}
inline Tensor pixel_shuffle(const Tensor& x, int upscale_factor,
                            const std::string& data_format) {
  return detail::Op("pixel_shuffle")
      .In("X", x)
      .Attr("upscale_factor", upscale_factor)
      .Attr("data_format", data_format)
      .Out("Out")
      .One();
}
inline Tensor reshape(const Tensor& x, const IntArray& shape) {
  return detail::Op("reshape2")
      .In("X", x)
      .Attr("shape", shape)
      .Out("Out")
      .Out("XShape")
      .One();
}
inline Tensor roll(const Tensor& x, const IntArray& shifts,
                   const std::vector<int64_t>& axis = {}) {
  return detail::Op("roll")
      .In("X", x)
      .Attr("shifts", shifts)
      .Attr("axis", axis)
      .Out("Out")
      .One();
}
inline Tensor scatter(const Tensor& x, const Tensor& index,
                      const Tensor& updates, bool overwrite = true) {
  return detail::Op("scatter")
      .In("X", x)
      .In("Ids", index)
      .In("Updates", updates)
      .Attr("overwrite", overwrite)
      .Out("Out")
      .One();
}
inline Tensor scatter_nd_add(const Tensor& x, const Tensor& index,
                             const Tensor& updates) {
  return detail::Op("scatter_nd_add")
      .In("X", x)
      .In("Index", index)
      .In("Updates", updates)
      .Out("Out")
      .One();
}
/// One number: equal parts; several: their extents.
inline std::vector<Tensor> split(const Tensor& x,
                                 const IntArray& num_or_sections,
                                 const Scalar& axis) {
  detail::Op op("split");
  op.In("X", x).Attr("axis", axis);
  if (num_or_sections.size() == 1)
    return op.Attr("num", Scalar(num_or_sections[0]))
        .Out("Out", static_cast<size_t>(num_or_sections[0]))
        .Many();
  return op.Attr("sections", num_or_sections)
      .Out("Out", num_or_sections.size())
      .Many();
}
inline Tensor stack(const std::vector<Tensor>& x, int axis) {
  return detail::Op("stack").In("X", x).Attr("axis", axis).Out("Y").One();
}
inline Tensor strided_slice(const Tensor& x, const std::vector<int>& axes,
                            const IntArray& starts, const IntArray& ends,
                            const IntArray& strides) {
  return detail::Op("strided_slice")
      .In("Input", x)
      .Attr("axes", axes)
      .Attr("starts", starts)
      .Attr("ends", ends)
      .Attr("strides", strides)
      .Attr("infer_flags", std::vector<int>(axes.size(), 1))
      .Out("Out")
      .One();
}
inline Tensor tile(const Tensor& x, const IntArray& repeat_times) {
  return detail::Op("tile")
      .In("X", x)
      .Attr("repeat_times", repeat_times)
      .Out("Out")
      .One();
}
inline Tensor transpose(const Tensor& x, const std::vector<int>& perm) {
  return detail::Op("transpose2")
      .In("X", x)
      .Attr("axis", perm)
      .Out("Out")
      .Out("XShape")
      .One();
}
inline Tensor tril_triu(const Tensor& x, int diagonal, bool lower) {
  return detail::Op("tril_triu")
      .In("X", x)
      .Attr("diagonal", diagonal)
      .Attr("lower", lower)
      .Out("Out")
      .One();
}
inline std::vector<Tensor> unbind(const Tensor& x, int axis) {
  const int64_t rank = x.dims().size(), at = axis < 0 ? axis + rank : axis;
  const int64_t parts =
      at >= 0 && at < rank ? x.shape()[static_cast<size_t>(at)] : 0;
  return detail::Op("unbind")
      .In("X", x)
      .Attr("axis", axis)
      .Out("Out", static_cast<size_t>(parts))
      .Many();
}
/// The distinct elements, and what was asked for of: the first index of each,
/// the number of each element among them, how often each occurs. In 2.3 the
/// tuple has no place for the first; so it is here.
inline std::tuple<Tensor, Tensor, Tensor> unique(
    const Tensor& x, bool return_index, bool return_inverse, bool return_counts,
    const std::vector<int>& axis, DataType dtype = DataType::INT64) {
  const auto all = detail::Op("unique")
                       .In("X", x)
                       .Attr("return_index", return_index)
                       .Attr("return_inverse", return_inverse)
                       .Attr("return_counts", return_counts)
                       .Attr("axis", axis)
                       .Attr("dtype", dtype)
                       .Attr("is_sorted", true)
                       .Out("Out")
                       .Out("Indices")
                       .Out("Index")
                       .Out("Counts")
                       .All();
  return std::make_tuple(all[0][0], all[2][0], all[3][0]);
}
inline TensorAndShape unsqueeze(const Tensor& x, const IntArray& axis = {}) {
  const auto all = detail::Op("unsqueeze2")
                       .In("X", x)
                       .Attr("axes", axis)
                       .Out("Out")
                       .Out("XShape")
                       .All();
  return TensorAndShape(all[0][0], all[1][0]);
}
inline Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  return detail::Op("where")
      .In("Condition", condition)
      .In("X", x)
      .In("Y", y)
      .Out("Out")
      .One();
}

}  // namespace experimental
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_ARRANGE_H_
