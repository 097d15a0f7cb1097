// SPDX-License-Identifier: Apache-2.0
// Relu with a gradient and a second gradient, in three forms: that of today,
// one whose gradient does not read X, and one that writes through pointers.
#include <vector>

#include "paddle/extension.h"

namespace {

template <typename T>
void Mask(const paddle::Tensor& out, const paddle::Tensor& in,
          paddle::Tensor* result) {
  const T *y = out.data<T>(), *x = in.data<T>();
  T* to = result->mutable_data<T>(out.place());
  for (int64_t i = 0; i < out.numel(); ++i) to[i] = y[i] > T(0) ? x[i] : T(0);
}

paddle::Tensor Masked(const paddle::Tensor& out, const paddle::Tensor& in) {
  paddle::Tensor result = paddle::empty_like(out);
  PD_DISPATCH_FLOATING_TYPES(out.dtype(), "Masked",
                             [&] { Mask<data_t>(out, in, &result); });
  return result;
}

using Extents = std::vector<int64_t>;

}  // namespace

// Of a source that is left out, as those for GPUs are: nothing is amiss until
// it is called.
std::vector<paddle::Tensor> ReluOfAnotherSource(const paddle::Tensor& x);

std::vector<paddle::Tensor> Relu(const paddle::Tensor& x) {
  if (x.numel() < 0) return ReluOfAnotherSource(x);  // never
  paddle::Tensor out = paddle::empty_like(x);
  PD_DISPATCH_FLOATING_TYPES(x.type(), "Relu", ([&] {
                               const int64_t n = x.size();
                               const data_t* from = x.data<data_t>();
                               data_t* to = out.data<data_t>();
                               for (int64_t i = 0; i < n; ++i)
                                 to[i] =
                                     from[i] > data_t(0) ? from[i] : data_t(0);
                             }));
  return {out};
}

std::vector<paddle::Tensor> ReluGrad(const paddle::Tensor& /*x*/,
                                     const paddle::Tensor& out,
                                     const paddle::Tensor& out_grad) {
  return {Masked(out, out_grad)};
}
std::vector<paddle::Tensor> ReluGradOfOut(const paddle::Tensor& out,
                                          const paddle::Tensor& out_grad) {
  return {Masked(out, out_grad)};
}
std::vector<Extents> LikeOut(const Extents& out, const Extents& /*other*/) {
  return {out};
}

void ReluInto(const paddle::Tensor& x, paddle::Tensor* out) {
  // The forms of 2.0: a shape first, memory with the type.
  *out = paddle::Tensor(paddle::PlaceType::kCPU);
  out->reshape(x.shape());
  PD_DISPATCH_FLOATING_TYPES(
      x.type(), "ReluInto", ([&] {
        const int64_t n = x.size();
        const data_t* from = x.data<data_t>();
        data_t* to = out->mutable_data<data_t>(x.place());
        for (int64_t i = 0; i < n; ++i)
          to[i] = from[i] > data_t(0) ? from[i] : data_t(0);
      }));
}
void ReluGradInto(const paddle::Tensor& /*x*/, const paddle::Tensor& out,
                  const paddle::Tensor& out_grad, paddle::Tensor* x_grad) {
  *x_grad = Masked(out, out_grad);
}

PD_BUILD_OP(custom_relu)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Relu));
PD_BUILD_GRAD_OP(custom_relu)
    .Inputs({"X", "Out", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(ReluGrad));
PD_BUILD_DOUBLE_GRAD_OP(custom_relu)
    .Inputs({"Out", paddle::Grad(paddle::Grad("X"))})
    .Outputs({paddle::Grad(paddle::Grad("Out"))})
    .SetKernelFn(PD_KERNEL(ReluGradOfOut))
    .SetInferShapeFn(PD_INFER_SHAPE(LikeOut));

PD_BUILD_OP(custom_relu_no_x_in_backward)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Relu));
PD_BUILD_GRAD_OP(custom_relu_no_x_in_backward)
    .Inputs({"Out", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(ReluGradOfOut))
    .SetInferShapeFn(PD_INFER_SHAPE(LikeOut));

PD_BUILD_OP(custom_relu_out)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(ReluInto));
PD_BUILD_GRAD_OP(custom_relu_out)
    .Inputs({"X", "Out", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(ReluGradInto));
