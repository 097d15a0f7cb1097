// SPDX-License-Identifier: Apache-2.0
// Inputs lists one input more than the kernel takes.
#include "paddle/extension.h"

std::vector<paddle::Tensor> Same(const paddle::Tensor& x) { return {x}; }
PD_BUILD_OP(custom_same)
    .Inputs({"X", "Y"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Same));
