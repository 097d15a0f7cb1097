// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/metrics/sequences.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::Status CheckSequences(const MetricSpecs& specs, MetricSlot slot) {
  if (!specs[slot].has_value()) return absl::OkStatus();
  const TensorSpec& tokens = *specs[slot];
  const bool scores = slot == MetricSlot::kInput && !IsInteger(tokens.dtype);
  if (scores) {
    PD_RETURN_IF_ERROR(CheckScoreType(slot, tokens));
  } else {
    PD_RETURN_IF_ERROR(CheckIdType(slot, tokens));
  }
  const size_t rank = tokens.shape.size();
  if (scores ? rank == 3 : rank == 2 || rank == 3) return absl::OkStatus();
  return InvalidArgument(
      "the %s are %s%s; expected %s", NameOf(slot), Name(tokens.dtype),
      ToString(tokens.shape),
      scores ? "scores [N, T, classes]" : "token numbers [N, T]");
}

absl::StatusOr<Sequences> Sequences::Of(const Tensor& tokens,
                                        const Tensor* lengths,
                                        const SequenceForm& form) {
  Sequences s;
  s.tokens_ = &tokens;
  s.form_ = &form;
  const bool turned = form.time_major && !IsInteger(tokens.dtype());
  s.count_ = tokens.dim(turned ? 1 : 0);
  s.width_ = tokens.dim(turned ? 0 : 1);
  s.classes_ = tokens.rank() > 2 ? tokens.dim(2) : 1;
  PD_ASSIGN_OR_RETURN(s.rows_, RowLengths::Of(lengths, {s.count_, s.width_}));
  if (lengths != nullptr && lengths->size() != s.count_)
    return InvalidArgument("there are %d lengths; there are %d sequences",
                           lengths->size(), s.count_);
  return s;
}

absl::StatusOr<int64_t> Sequences::TokenAt(int64_t n, int64_t t) const {
  if (IsInteger(tokens_->dtype()))
    return IdAt(*tokens_, (n * width_ + t) * classes_);
  const ClassAxis axis{count_ * width_, classes_, 1};
  return BestClass(*tokens_, axis,
                   form_->time_major ? t * count_ + n : n * width_ + t);
}

absl::Status Sequences::Get(int64_t n, std::vector<int64_t>* sequence) const {
  sequence->clear();
  std::optional<int64_t> before;
  for (int64_t t = 0; t < rows_.Length(n); ++t) {
    PD_ASSIGN_OR_RETURN(const int64_t token, TokenAt(n, t));
    if (form_->ctc_blank.has_value()) {
      const bool repeated = before == token;
      before = token;
      if (repeated || token == *form_->ctc_blank) continue;
    }
    if (form_->end_id == token) break;
    if (std::find(form_->ignored.begin(), form_->ignored.end(), token) ==
        form_->ignored.end())
      sequence->push_back(token);
  }
  return absl::OkStatus();
}

}  // namespace pd
