// SPDX-License-Identifier: Apache-2.0
// Inputs of warpctc and its gradient (warpctc.cc), read for every kernel.
#ifndef PD_LIBCORE_OPS_LOSS_WARPCTC_H_
#define PD_LIBCORE_OPS_LOSS_WARPCTC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/sequence/sequence_spans.h"

namespace pd {

/// Where logits and labels of a batch lie.
struct CtcBatch {
  bool padded = false;
  SequenceSpans logits, labels;
  int64_t count = 0, classes = 0, max_steps = 0, blank = 0;

  /// The first row of sequence i, and how far its rows are apart.
  int64_t FirstRow(int64_t i, const Span& span) const {
    return padded ? i : span.start;
  }
  int64_t RowStride() const { return padded ? count : 1; }
};

/// All but `labels`. InvalidArgument for shapes that do not fit.
absl::StatusOr<CtcBatch> ReadCtcLogits(const BindContext& context);
/// `labels`, likewise.
absl::Status ReadCtcLabels(const BindContext& context, CtcBatch* batch);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LOSS_WARPCTC_H_
