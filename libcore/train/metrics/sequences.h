// SPDX-License-Identifier: Apache-2.0
// Predictions and labels as sequences of tokens. Internal to the metrics.
#ifndef PD_LIBCORE_TRAIN_METRICS_SEQUENCES_H_
#define PD_LIBCORE_TRAIN_METRICS_SEQUENCES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/train/metrics.h"
#include "libcore/train/metrics/values.h"

namespace pd {

struct SequenceForm {
  std::optional<int64_t> ctc_blank;  ///< repeated tokens are one; this is none
  bool time_major = false;           ///< scores are [T, N, classes]
  std::optional<int64_t> end_id;     ///< ends a sequence, outside of it
  std::vector<int64_t> ignored;      ///< tokens that are taken out
};

/// OK for token numbers [N, T] or [N, T, beams] and, for predictions, scores
/// [N, T, classes].
absl::Status CheckSequences(const MetricSpecs& specs, MetricSlot slot);

/// The sequences of one tensor of a batch.
class Sequences {
 public:
  static absl::StatusOr<Sequences> Of(const Tensor& tokens,
                                      const Tensor* lengths,
                                      const SequenceForm& form);
  int64_t count() const { return count_; }
  /// The best class of each position, or the first beam, cut and cleaned.
  absl::Status Get(int64_t n, std::vector<int64_t>* sequence) const;

 private:
  absl::StatusOr<int64_t> TokenAt(int64_t n, int64_t t) const;

  const Tensor* tokens_ = nullptr;
  const SequenceForm* form_ = nullptr;
  int64_t count_ = 0, width_ = 0, classes_ = 1;
  RowLengths rows_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_METRICS_SEQUENCES_H_
