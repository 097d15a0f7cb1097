// SPDX-License-Identifier: Apache-2.0
// Lists of tensors, with an axis that is a tensor (so the shape of the result
// is known when the kernel has run) and one that is an attribute.
#include <algorithm>
#include <vector>

#include "paddle/extension.h"

namespace {

using Extents = std::vector<int64_t>;

// Where a part lies in the whole: rows of `inner` bytes, one after the other.
struct Rows {
  Rows(const Extents& shape, int64_t axis, size_t element) {
    const int64_t rank = static_cast<int64_t>(shape.size());
    PD_CHECK(axis >= -rank && axis < rank, "axis ", axis, " is out of range");
    if (axis < 0) axis += rank;
    for (int64_t i = 0; i < rank; ++i)
      (i < axis ? outer : inner) *=
          static_cast<size_t>(shape[static_cast<size_t>(i)]);
    inner *= element;
  }
  size_t outer = 1, inner = 1;
};

Extents Joined(const std::vector<Extents>& shapes, int64_t axis) {
  Extents joined = shapes.at(0);
  if (axis < 0) axis += static_cast<int64_t>(joined.size());
  for (size_t i = 1; i < shapes.size(); ++i)
    joined.at(static_cast<size_t>(axis)) +=
        shapes[i].at(static_cast<size_t>(axis));
  return joined;
}

paddle::Tensor Join(const std::vector<paddle::Tensor>& parts, int64_t axis) {
  std::vector<Extents> shapes;
  for (const auto& part : parts) shapes.push_back(part.shape());
  paddle::Tensor whole =
      paddle::empty(Joined(shapes, axis), parts[0].dtype(), parts[0].place());
  const size_t element = phi::SizeOf(whole.dtype());
  const Rows to(whole.shape(), axis, element);
  size_t at = 0;
  for (const auto& part : parts) {
    const Rows from(part.shape(), axis, element);
    for (size_t row = 0; row < from.outer; ++row)
      std::copy_n(static_cast<const char*>(part.data()) + row * from.inner,
                  from.inner,
                  static_cast<char*>(whole.data()) + row * to.inner + at);
    at += from.inner;
  }
  return whole;
}

std::vector<paddle::Tensor> Part(const std::vector<paddle::Tensor>& like,
                                 const paddle::Tensor& whole, int64_t axis) {
  const size_t element = phi::SizeOf(whole.dtype());
  const Rows from(whole.shape(), axis, element);
  std::vector<paddle::Tensor> parts;
  size_t at = 0;
  for (const auto& one : like) {
    parts.push_back(paddle::empty_like(one));
    const Rows to(one.shape(), axis, element);
    for (size_t row = 0; row < to.outer; ++row)
      std::copy_n(
          static_cast<const char*>(whole.data()) + row * from.inner + at,
          to.inner, static_cast<char*>(parts.back().data()) + row * to.inner);
    at += to.inner;
  }
  return parts;
}

}  // namespace

std::vector<paddle::Tensor> Concat(const std::vector<paddle::Tensor>& x,
                                   const paddle::Tensor& axis) {
  return {Join(x, axis.data<int64_t>()[0])};
}
std::vector<paddle::Tensor> ConcatGrad(const std::vector<paddle::Tensor>& x,
                                       const paddle::Tensor& out_grad,
                                       const paddle::Tensor& axis) {
  return Part(x, out_grad, axis.data<int64_t>()[0]);
}
std::vector<Extents> OpenShape(const std::vector<Extents>& x, Extents) {
  return {Extents(x[0].size(), -1)};
}
std::vector<paddle::DataType> TypeOfFirst(
    const std::vector<paddle::DataType>& x, paddle::DataType) {
  return {x[0]};
}
PD_BUILD_OP(custom_concat)
    .Inputs({paddle::Vec("X"), "Axis"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Concat))
    .SetInferShapeFn(PD_INFER_SHAPE(OpenShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(TypeOfFirst));
PD_BUILD_GRAD_OP(custom_concat)
    .Inputs({paddle::Vec("X"), paddle::Grad("Out"), "Axis"})
    .Outputs({paddle::Grad(paddle::Vec("X"))})
    .SetKernelFn(PD_KERNEL(ConcatGrad));

std::vector<paddle::Tensor> ConcatAt(const std::vector<paddle::Tensor>& x,
                                     int64_t axis) {
  return {Join(x, axis)};
}
std::vector<paddle::Tensor> ConcatAtGrad(const std::vector<paddle::Tensor>& x,
                                         const paddle::Tensor& out_grad,
                                         int64_t axis) {
  return Part(x, out_grad, axis);
}
std::vector<Extents> ShapeAt(const std::vector<Extents>& x,
                             const int64_t& axis) {
  return {Joined(x, axis)};
}
std::vector<paddle::DataType> TypeAt(const std::vector<paddle::DataType>& x) {
  return {x[0]};
}
PD_BUILD_OP(custom_concat_with_attr)
    .Inputs({paddle::Vec("X")})
    .Outputs({"Out"})
    .Attrs({"axis: int64_t"})
    .SetKernelFn(PD_KERNEL(ConcatAt))
    .SetInferShapeFn(PD_INFER_SHAPE(ShapeAt))
    .SetInferDtypeFn(PD_INFER_DTYPE(TypeAt));
PD_BUILD_GRAD_OP(custom_concat_with_attr)
    .Inputs({paddle::Vec("X"), paddle::Grad("Out")})
    .Outputs({paddle::Grad(paddle::Vec("X"))})
    .Attrs({"axis: int64_t"})
    .SetKernelFn(PD_KERNEL(ConcatAtGrad));
