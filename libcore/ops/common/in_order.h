// SPDX-License-Identifier: Apache-2.0
// One step out of several.
#ifndef PD_LIBCORE_OPS_COMMON_IN_ORDER_H_
#define PD_LIBCORE_OPS_COMMON_IN_ORDER_H_

#include <vector>

#include "libcore/ops/bind_context.h"

namespace pd {

/// Runs the steps one after the other, up to the first error; null ones are
/// left out. Null where there is none: no step is needed.
Step InOrder(std::vector<Step> steps);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_IN_ORDER_H_
