// SPDX-License-Identifier: Apache-2.0
// Attributes of all nine types, an input that may be absent, a kernel that
// keeps a tensor, and an InferShape that is wrong.
#include <string>
#include <vector>

#include "paddle/extension.h"

// Adds numbers, and the length of a text.
std::vector<paddle::Tensor> AddNumbers(const paddle::Tensor& x, bool a, int b,
                                       float c, int64_t d, std::string e) {
  return {x + ((a ? 1 : 0) + b + c + static_cast<double>(d) +
               static_cast<double>(e.size()))};
}
std::vector<std::vector<int64_t>> SameShape(const std::vector<int64_t>& x,
                                            const bool&, int, float, int64_t,
                                            const std::string&) {
  return {x};
}
PD_BUILD_OP(add_numbers)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"a: bool", "b: int", "c: float", "d: int64_t", "e: std::string"})
    .SetKernelFn(PD_KERNEL(AddNumbers))
    .SetInferShapeFn(PD_INFER_SHAPE(SameShape));

// Adds the elements of lists, and the lengths of texts.
std::vector<paddle::Tensor> AddLists(const paddle::Tensor& x,
                                     const std::vector<int>& f,
                                     std::vector<float> g,
                                     const std::vector<int64_t>& h,
                                     const std::vector<std::string>& i) {
  double sum = 0;
  for (const int v : f) sum += v;
  for (const float v : g) sum += v;
  for (const int64_t v : h) sum += static_cast<double>(v);
  for (const std::string& v : i) sum += static_cast<double>(v.size());
  return {x + sum};
}
PD_BUILD_OP(add_lists)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"f: std::vector<int>", "g: std::vector<float>",
            "h: std::vector<int64_t>", "i: std::vector<std::string>"})
    .SetKernelFn(PD_KERNEL(AddLists));

std::vector<paddle::Tensor> AddIfThere(
    const paddle::Tensor& x, const paddle::optional<paddle::Tensor>& y) {
  return {y ? x + *y : x};
}
std::vector<std::vector<int64_t>> ShapeOfX(
    const std::vector<int64_t>& x,
    const paddle::optional<std::vector<int64_t>>&) {
  return {x};
}
std::vector<paddle::DataType> TypeOfX(
    const paddle::DataType& x, const paddle::optional<paddle::DataType>&) {
  return {x};
}
PD_BUILD_OP(add_if_there)
    .Inputs({"X", paddle::Optional("Y")})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(AddIfThere))
    .SetInferShapeFn(PD_INFER_SHAPE(ShapeOfX))
    .SetInferDtypeFn(PD_INFER_DTYPE(TypeOfX));

// Gives what it was given the time before; zeros the first time.
std::vector<paddle::Tensor> Before(const paddle::Tensor& x) {
  static paddle::Tensor* const kept = new paddle::Tensor;
  paddle::Tensor now = paddle::empty_like(x);
  const paddle::Tensor zeros = paddle::full_like(x, 0);
  const paddle::Tensor& from = kept->initialized() ? *kept : zeros;
  std::copy_n(from.data<float>(), x.numel(), now.data<float>());
  *kept = x;
  return {now};
}
PD_BUILD_OP(before).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(
    PD_KERNEL(Before));

std::vector<paddle::Tensor> FirstRow(const paddle::Tensor& x) {
  return {x.slice(0, 1)};
}
std::vector<std::vector<int64_t>> AllRows(std::vector<int64_t> x) {
  return {x};
}
PD_BUILD_OP(first_row)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(FirstRow))
    .SetInferShapeFn(PD_INFER_SHAPE(AllRows));
