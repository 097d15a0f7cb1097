// SPDX-License-Identifier: Apache-2.0
// The way back of a broadcast: a gradient of the result's shape is summed over
// the axes along which an operand was repeated.
#ifndef PD_LIBCORE_OPS_ELEMENTWISE_BROADCAST_SUM_H_
#define PD_LIBCORE_OPS_ELEMENTWISE_BROADCAST_SUM_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// The step that sums `from`, elements of the dtype of `to` with extents
/// `full`, to `to`, with extents `part` (ones where it was broadcast), with
/// the sign. Unimplemented for a dtype that has no gradients.
absl::StatusOr<Step> BroadcastSumStep(const Shape& full, const Shape& part,
                                      Tensor* from, Tensor* to,
                                      bool negative = false);

/// The step of an operand's gradient `to`, with extents `part`: the step of
/// `compute(whole)` fills `whole`, with extents `full`, which is `to` itself or
/// is summed to it.
absl::StatusOr<Step> SummedStep(BindContext* context, const Shape& full,
                                const Shape& part, Tensor* to,
                                absl::FunctionRef<Step(Tensor* whole)> compute);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_ELEMENTWISE_BROADCAST_SUM_H_
