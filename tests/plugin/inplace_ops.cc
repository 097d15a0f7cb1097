// SPDX-License-Identifier: Apache-2.0
// Operators that write their outputs over inputs, some of which may be absent.
#include <vector>

#include "paddle/extension.h"

namespace {

void AddTo(const paddle::Tensor& y, paddle::Tensor* x) {
  PD_DISPATCH_FLOATING_TYPES(y.dtype(), "AddTo", ([&] {
                               const data_t* from = y.data<data_t>();
                               data_t* to = x->data<data_t>();
                               for (int64_t i = 0; i < y.numel(); ++i)
                                 to[i] += from[i];
                             }));
}

}  // namespace

void Add(paddle::Tensor& x, const paddle::Tensor& y) { AddTo(y, &x); }
std::vector<paddle::Tensor> AddGrad(paddle::Tensor& out_grad) {
  return {out_grad.copy_to(paddle::CPUPlace(), true)};
}
std::vector<std::vector<int64_t>> LikeGradient(std::vector<int64_t> out_grad) {
  return {out_grad};
}
PD_BUILD_OP(custom_add)
    .Inputs({"X", "Y"})
    .Outputs({"Out"})
    .SetInplaceMap({{"X", "Out"}})
    .SetKernelFn(PD_KERNEL(Add));
PD_BUILD_GRAD_OP(custom_add)
    .Inputs({paddle::Grad("Out")})
    .Outputs({paddle::Grad("X"), paddle::Grad("Y")})
    .SetInplaceMap({{paddle::Grad("Out"), paddle::Grad("X")}})
    .SetKernelFn(PD_KERNEL(AddGrad))
    .SetInferShapeFn(PD_INFER_SHAPE(LikeGradient));

void AddVec(std::vector<paddle::Tensor>& x, const paddle::Tensor& y) {
  for (paddle::Tensor& one : x) AddTo(y, &one);
}
PD_BUILD_OP(custom_add_vec)
    .Inputs({paddle::Vec("X"), "Y"})
    .Outputs({paddle::Vec("Out")})
    .SetInplaceMap({{paddle::Vec("X"), paddle::Vec("Out")}})
    .SetKernelFn(PD_KERNEL(AddVec));

void AddTwice(paddle::Tensor& x, const paddle::Tensor& y, paddle::Tensor& a,
              const paddle::Tensor& b) {
  AddTo(y, &x);
  AddTo(b, &a);
}
PD_BUILD_OP(custom_multi_inplace)
    .Inputs({"X", "Y", "A", "B"})
    .Outputs({"OutXY", "OutAB"})
    .SetInplaceMap({{"X", "OutXY"}, {"A", "OutAB"}})
    .SetKernelFn(PD_KERNEL(AddTwice));

void ReluHere(paddle::Tensor& x) {
  PD_DISPATCH_FLOATING_TYPES(x.dtype(), "ReluHere", ([&] {
                               data_t* at = x.data<data_t>();
                               for (int64_t i = 0; i < x.numel(); ++i)
                                 if (at[i] < data_t(0)) at[i] = 0;
                             }));
}
PD_BUILD_OP(custom_relu_inplace)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetInplaceMap({{"X", "Out"}})
    .SetKernelFn(PD_KERNEL(ReluHere));
