// SPDX-License-Identifier: Apache-2.0
// paddle.nn.functional.edit_distance, its mean and the share of sequences with
// errors (PaddlePaddle's EditDistance metric); and the character error rate,
// which divides the sum of edits by that of lengths.
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/ops/metric/levenshtein.h"
#include "libcore/train/metrics/exact_sum.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/sequences.h"

namespace pd {
namespace {

class EditDistanceMetric : public Metric {
 public:
  // `rate`: edits by tokens of the labels.
  EditDistanceMetric(bool rate, bool normalized, SequenceForm form,
                     ResultNames names)
      : Metric(std::move(names)),
        rate_(rate),
        normalized_(normalized),
        form_(std::move(form)),
        label_form_(form_) {
    label_form_.ctc_blank.reset();
    label_form_.time_major = false;
  }

  absl::Status Check(const MetricSpecs& specs) const override {
    PD_RETURN_IF_ERROR(CheckSequences(specs, MetricSlot::kInput));
    PD_RETURN_IF_ERROR(CheckSequences(specs, MetricSlot::kLabel));
    PD_RETURN_IF_ERROR(CheckLengths(specs, MetricSlot::kLength));
    return CheckLengths(specs, MetricSlot::kInputLength);
  }

  void Reset() override {
    sequences_ = wrong_ = edits_ = tokens_ = 0;
    distances_ = ExactSum();
  }

 private:
  absl::Status Count(const MetricBatch& batch) override {
    PD_ASSIGN_OR_RETURN(const Sequences found,
                        Sequences::Of(*batch[MetricSlot::kInput],
                                      batch[MetricSlot::kInputLength], form_));
    PD_ASSIGN_OR_RETURN(const Sequences wanted,
                        Sequences::Of(*batch[MetricSlot::kLabel],
                                      batch[MetricSlot::kLength], label_form_));
    if (found.count() != wanted.count())
      return InvalidArgument("there are %d predictions and %d labels",
                             found.count(), wanted.count());
    std::vector<int64_t> a, b, scratch;
    for (int64_t n = 0; n < found.count(); ++n) {
      PD_RETURN_IF_ERROR(found.Get(n, &a));
      PD_RETURN_IF_ERROR(wanted.Get(n, &b));
      const int64_t edits = Levenshtein(a, b, &scratch);
      if (normalized_ && !rate_ && b.empty())
        return InvalidArgument(
            "the label of record %d is empty; its length is the divisor, "
            "'normalized: false' needs none",
            n);
      ++sequences_;
      wrong_ += edits > 0;
      edits_ += edits;
      tokens_ += static_cast<int64_t>(b.size());
      distances_.Add(
          static_cast<double>(edits) /
          (normalized_ && !rate_ ? static_cast<double>(b.size()) : 1));
    }
    return absl::OkStatus();
  }

  std::vector<double> Values() const override {
    const auto by = [](double part, int64_t whole) {
      return whole > 0 ? part / static_cast<double>(whole)
                       : std::numeric_limits<double>::quiet_NaN();
    };
    if (rate_) return {by(static_cast<double>(edits_), tokens_)};
    return {by(distances_.Value(), sequences_),
            by(static_cast<double>(wrong_), sequences_)};
  }

  const bool rate_, normalized_;
  const SequenceForm form_;
  SequenceForm label_form_;
  int64_t sequences_ = 0, wrong_ = 0, edits_ = 0, tokens_ = 0;
  ExactSum distances_;
};

}  // namespace

MetricPtr MakeEditDistance(const job::Metric& metric, ResultNames names) {
  const job::SequenceError& p =
      metric.has_cer() ? metric.cer() : metric.edit_distance().sequence();
  SequenceForm form;
  if (p.has_ctc_blank()) form.ctc_blank = p.ctc_blank();
  if (p.has_end_id()) form.end_id = p.end_id();
  form.time_major = p.time_major();
  form.ignored.assign(p.ignored_tokens().begin(), p.ignored_tokens().end());
  return std::make_unique<EditDistanceMetric>(
      metric.has_cer(), metric.edit_distance().normalized(), std::move(form),
      std::move(names));
}

}  // namespace pd
