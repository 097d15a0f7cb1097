// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_OPS_RESIZING_H_
#define PD_LIBCORE_OPS_RESIZING_H_

#include "libcore/ops/op_def.h"

namespace pd {

/// Inference may leave extents open though all inputs are known: then the step
/// calls Tensor::Resize on the outputs, as with ShapeFromData.
constexpr Trait kMayResizeOutputs = static_cast<Trait>(1u << 9);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RESIZING_H_
