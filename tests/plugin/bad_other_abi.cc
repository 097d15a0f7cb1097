// SPDX-License-Identifier: Apache-2.0
// Built with headers of another number.
#include "paddle_plugin_abi.h"
#undef PD_PLUGIN_ABI
#define PD_PLUGIN_ABI 999
#include "paddle/extension.h"

std::vector<paddle::Tensor> Same(const paddle::Tensor& x) { return {x}; }
PD_BUILD_OP(custom_same)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Same));
