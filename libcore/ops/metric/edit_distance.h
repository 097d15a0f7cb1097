// SPDX-License-Identifier: Apache-2.0
// Inputs of edit_distance (edit_distance.cc), read for every kernel.
#ifndef PD_LIBCORE_OPS_METRIC_EDIT_DISTANCE_H_
#define PD_LIBCORE_OPS_METRIC_EDIT_DISTANCE_H_

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/sequence/sequence_spans.h"

namespace pd {

/// The sequences of Hyps or Refs. InvalidArgument for lengths or a LoD that do
/// not fit.
absl::StatusOr<SequenceSpans> EditDistanceSpans(const BindContext& context,
                                                const char* slot,
                                                const char* length_slot);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_METRIC_EDIT_DISTANCE_H_
