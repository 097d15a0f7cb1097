// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_OPS_RESIZING_H_
#define PD_LIBCORE_OPS_RESIZING_H_

#include "libcore/ops/op_def.h"

namespace pd {

/// The step calls Tensor::Resize on outputs, as with ShapeFromData, where
/// inference leaves extents open though all inputs are known. Where no other op
/// reads the outputs, their shapes may differ from the inferred ones as well.
constexpr Trait kMayResizeOutputs = static_cast<Trait>(1u << 9);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RESIZING_H_
