// SPDX-License-Identifier: Apache-2.0
// Repeating a tensor along some axes, and summing the repetitions up again:
// what expand, tile, broadcast_tensors and meshgrid have in common.
#ifndef PD_LIBCORE_OPS_MANIPULATION_REPEAT_H_
#define PD_LIBCORE_OPS_MANIPULATION_REPEAT_H_

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// `shape` with ones put before it up to `rank`.
Shape PaddedShape(const Shape& shape, size_t rank);

/// Out = x, seen in `shape`, repeated along each axis as often as its extent
/// goes into that of out; aligned at the right. InvalidArgument when one does
/// not.
absl::StatusOr<Step> RepeatStep(BindContext* context, Tensor* x,
                                const Shape& shape, Tensor* out);

/// dx, seen in `shape`, = dout summed over the repetitions.
absl::StatusOr<Step> SumRepeatsStep(BindContext* context, Tensor* dout,
                                    Tensor* dx, const Shape& shape);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_MANIPULATION_REPEAT_H_
