// SPDX-License-Identifier: Apache-2.0
// Operators that are declared together with their kernels, in the C form
// (api/paddle_capi_meta.h). Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_KERNEL_OPERATORS_H_
#define PD_LIBCORE_PLUGIN_KERNEL_OPERATORS_H_

#include <vector>

#include "libcore/ops/op_def.h"

namespace pd {

/// Descriptions of those that were declared so far; their kernels are found by
/// their signatures.
std::vector<OpDef> KernelOperators();

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_KERNEL_OPERATORS_H_
