// SPDX-License-Identifier: Apache-2.0
// Operators written the ways that PaddlePaddle's manual shows: further element
// types, functions of the inner namespace, methods of tensors in the forms of
// 2.0 and later, lists with inputs that may be absent, second gradients,
// results of several outputs whose shapes follow from attributes.
#include <vector>

#include "paddle/extension.h"

namespace {

template <typename T>
void AddUp(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + x[i];
}

std::vector<paddle::Tensor> Twice(const paddle::Tensor& x) {
  auto out = paddle::empty_like(x);
  PD_DISPATCH_FLOATING_AND_COMPLEX_AND_2_TYPES(
      paddle::DataType::FLOAT16, paddle::DataType::BFLOAT16, x.type(), "Twice",
      ([&] {
        AddUp<data_t>(x.data<data_t>(), out.mutable_data<data_t>(x.place()),
                      x.size());
      }));
  return {out};
}

// Rows of X and of a list through a layer.
std::vector<paddle::Tensor> Layer(const paddle::Tensor& x,
                                  const paddle::Tensor& w,
                                  const paddle::optional<paddle::Tensor>& bias,
                                  const std::vector<paddle::Tensor>& more) {
  namespace exp = paddle::experimental;
  std::vector<paddle::Tensor> all = {x};
  all.insert(all.end(), more.begin(), more.end());
  paddle::Tensor y = exp::matmul(exp::concat(all, 0), w, false, true);
  if (bias) y = exp::add(y, bias.get());
  const paddle::Tensor zeros = exp::full_like(y, 0.0);
  const paddle::Tensor kept =
      exp::where(exp::greater_than(y, zeros), y, exp::zeros_like(y));
  const std::vector<paddle::Tensor> parts = exp::split(kept, {1, 1}, 1);
  return {exp::subtract(parts[0], parts[1]),
          exp::sum(exp::multiply(kept, kept), {1}, kept.dtype(), true)};
}
std::vector<std::vector<int64_t>> LayerShape(
    const std::vector<int64_t>& x, const std::vector<int64_t>&,
    const paddle::optional<std::vector<int64_t>>&,
    const std::vector<std::vector<int64_t>>& more) {
  int64_t rows = x[0];
  for (const auto& one : more) rows += one[0];
  return {{rows, 1}, {rows, 1}};
}
std::vector<paddle::DataType> LayerType(
    paddle::DataType x, paddle::DataType,
    const paddle::optional<paddle::DataType>&,
    const std::vector<paddle::DataType>&) {
  return {x, x};
}

// y = x^3, with both gradients.
std::vector<paddle::Tensor> Cube(const paddle::Tensor& x) {
  return {paddle::multiply(paddle::multiply(x, x), x)};
}
std::vector<paddle::Tensor> CubeGrad(const paddle::Tensor& x,
                                     const paddle::Tensor& dy) {
  return {paddle::scale(paddle::multiply(paddle::multiply(x, x), dy), 3.0, 0.0,
                        true)};
}
std::vector<paddle::Tensor> CubeSecond(const paddle::Tensor& x,
                                       const paddle::Tensor& dy,
                                       const paddle::Tensor& ddx) {
  return {6 * x * dy * ddx, 3 * x * x * ddx};
}

std::vector<paddle::Tensor> Methods(const paddle::Tensor& x) {
  paddle::Tensor y(paddle::PlaceType::kCPU);
  y.reshape(x.shape());
  const float* from = x.data<float>();
  float* to = y.mutable_data<float>(x.place());
  for (int64_t i = 0; i < x.size(); ++i) to[i] = from[x.size() - 1 - i];
  const paddle::Tensor copy = y.copy_to(paddle::CPUPlace(), true),
                       old = y.copy_to<float>(paddle::PlaceType::kCPU),
                       wide = x.cast(paddle::DataType::FLOAT64),
                       first = x.slice(0, 1);
  PD_CHECK(x.place() == paddle::PlaceType::kCPU && x.is_cpu() && !x.is_gpu());
  PD_CHECK(x.is_initialized() && x.initialized() && x.defined());
  PD_CHECK(wide.dtype() == paddle::DataType::FLOAT64 &&
           wide.data<double>()[0] == static_cast<double>(from[0]));
  PD_CHECK(first.shape()[0] == 1 && first.data<float>() == from, "a slice");
  PD_CHECK(copy.data<float>() != to && copy.data<float>()[0] == to[0]);
  PD_CHECK(old.data<float>()[0] == to[0] && x.is_dense_tensor());
  PD_CHECK(x.dims().size() == 2 && x.dims()[1] == x.shape()[1]);
  paddle::Tensor same = y;
  PD_CHECK(same.data<float>() == to, "copies of a handle share memory");
  same.reset();
  PD_CHECK(!same.defined());
  y.set_name("y");
  PD_CHECK(y.name() == "y");
  return {y};
}

std::vector<paddle::Tensor> Moments(const paddle::Tensor& x,
                                    const std::vector<int>& axes, bool keep) {
  namespace exp = paddle::experimental;
  const paddle::Tensor distance = x - exp::mean(x, axes, true);
  return {exp::mean(x, axes, keep), exp::mean(distance * distance, axes, keep)};
}
std::vector<std::vector<int64_t>> MomentsShape(const std::vector<int64_t>& x,
                                               const std::vector<int>& axes,
                                               bool keep) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < x.size(); ++i) {
    bool reduced = false;
    for (const int axis : axes)
      reduced = reduced || axis == static_cast<int64_t>(i);
    if (!reduced || keep) shape.push_back(reduced ? 1 : x[i]);
  }
  return {shape, shape};
}
std::vector<paddle::DataType> MomentsType(const paddle::DataType& x) {
  return {x, x};
}

}  // namespace

PD_BUILD_OP(manual_twice)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Twice));
PD_BUILD_OP(manual_layer)
    .Inputs({"X", "W", paddle::Optional("Bias"), paddle::Vec("More")})
    .Outputs({"Out", "Norm"})
    .SetKernelFn(PD_KERNEL(Layer))
    .SetInferShapeFn(PD_INFER_SHAPE(LayerShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(LayerType));
PD_BUILD_OP(manual_cube)
    .Inputs({"X"})
    .Outputs({"Y"})
    .SetKernelFn(PD_KERNEL(Cube));
PD_BUILD_GRAD_OP(manual_cube)
    .Inputs({"X", paddle::Grad("Y")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(CubeGrad));
PD_BUILD_DOUBLE_GRAD_OP(manual_cube)
    .Inputs({"X", paddle::Grad("Y"), paddle::Grad(paddle::Grad("X"))})
    .Outputs({paddle::New(paddle::Grad("X")), paddle::Grad(paddle::Grad("Y"))})
    .SetKernelFn(PD_KERNEL(CubeSecond));
PD_BUILD_OP(manual_methods)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Methods));
PD_BUILD_OP(manual_moments)
    .Inputs({"X"})
    .Outputs({"Mean", "Variance"})
    .Attrs({"axes: std::vector<int>", "keep: bool"})
    .SetKernelFn(PD_KERNEL(Moments))
    .SetInferShapeFn(PD_INFER_SHAPE(MomentsShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(MomentsType));
