// SPDX-License-Identifier: Apache-2.0
// An operator of a name that pdkit has.
#include "paddle/extension.h"

std::vector<paddle::Tensor> Same(const paddle::Tensor& x) { return {x}; }
PD_BUILD_OP(softmax).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(
    PD_KERNEL(Same));
