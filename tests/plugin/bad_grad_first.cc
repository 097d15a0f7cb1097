// SPDX-License-Identifier: Apache-2.0
// A gradient without its operator.
#include "paddle/extension.h"

std::vector<paddle::Tensor> Same(const paddle::Tensor& x) { return {x}; }
PD_BUILD_GRAD_OP(custom_same)
    .Inputs({paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(Same));
