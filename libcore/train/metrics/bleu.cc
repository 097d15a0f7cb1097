// SPDX-License-Identifier: Apache-2.0
// BLEU over the whole evaluation set (Papineni and others, 2002): clipped
// n-gram matches, the reference length nearest to the translation's (of two the
// shorter), and sacreBLEU's ways of smoothing.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/sequences.h"

namespace pd {
namespace {

using Tokens = std::vector<int64_t>;
using NGrams = std::map<Tokens, int64_t>;  // how often each occurs

NGrams CountNGrams(const Tokens& tokens, size_t n) {
  NGrams counts;
  for (size_t i = 0; i + n <= tokens.size(); ++i) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i);
    ++counts[Tokens(begin, begin + static_cast<std::ptrdiff_t>(n))];
  }
  return counts;
}

class BleuMetric : public Metric {
 public:
  BleuMetric(const job::Bleu& p, ResultNames names)
      : Metric(std::move(names)), p_(p) {
    if (p.has_end_id()) form_.end_id = p.end_id();
    form_.ignored.assign(p.ignored_tokens().begin(), p.ignored_tokens().end());
    Reset();
  }

  absl::Status Check(const MetricSpecs& specs) const override {
    PD_RETURN_IF_ERROR(CheckSequences(specs, MetricSlot::kInput));
    PD_RETURN_IF_ERROR(CheckSequences(specs, MetricSlot::kLabel));
    const auto& lengths = specs[MetricSlot::kLength];
    if (lengths.has_value())
      PD_RETURN_IF_ERROR(CheckIdType(MetricSlot::kLength, *lengths));
    return CheckLengths(specs, MetricSlot::kInputLength);
  }

  void Reset() override {
    matches_.assign(static_cast<size_t>(p_.n_size()), 0);
    totals_ = matches_;
    length_ = reference_length_ = 0;
  }

 private:
  absl::Status Count(const MetricBatch& batch) override {
    PD_ASSIGN_OR_RETURN(const Sequences found,
                        Sequences::Of(*batch[MetricSlot::kInput],
                                      batch[MetricSlot::kInputLength], form_));
    // [N, references, T] as [N * references, T].
    Tensor flat = *batch[MetricSlot::kLabel];
    int64_t each = 1;
    if (flat.rank() == 3) {
      each = flat.dim(1);
      flat = Tensor(flat.dtype(), {flat.dim(0) * each, flat.dim(2)});
      flat.Attach(batch[MetricSlot::kLabel]->raw());
    }
    PD_ASSIGN_OR_RETURN(const Sequences wanted,
                        Sequences::Of(flat, batch[MetricSlot::kLength], form_));
    if (found.count() * each != wanted.count())
      return InvalidArgument("there are %d predictions and %d references",
                             found.count(), wanted.count());
    Tokens translation;
    std::vector<Tokens> references(static_cast<size_t>(each));
    for (int64_t n = 0; n < found.count(); ++n) {
      PD_RETURN_IF_ERROR(found.Get(n, &translation));
      for (int64_t r = 0; r < each; ++r)
        PD_RETURN_IF_ERROR(
            wanted.Get(n * each + r, &references[static_cast<size_t>(r)]));
      CountSentence(translation, references);
    }
    return absl::OkStatus();
  }

  void CountSentence(const Tokens& translation,
                     const std::vector<Tokens>& references) {
    const auto length = static_cast<int64_t>(translation.size());
    int64_t nearest = -1;
    for (const Tokens& reference : references) {
      const auto own = static_cast<int64_t>(reference.size());
      const int64_t off = std::abs(own - length);
      const int64_t best = std::abs(nearest - length);
      if (own == 0 && references.size() > 1) continue;  // there is none
      if (nearest < 0 || off < best || (off == best && own < nearest))
        nearest = own;
    }
    length_ += length;
    reference_length_ += nearest < 0 ? 0 : nearest;
    for (size_t n = 1; n <= matches_.size(); ++n) {
      NGrams most;  // in any one reference
      for (const Tokens& reference : references)
        for (const auto& [words, count] : CountNGrams(reference, n))
          most[words] = std::max(most[words], count);
      for (const auto& [words, count] : CountNGrams(translation, n)) {
        totals_[n - 1] += count;
        const auto at = most.find(words);
        if (at != most.end()) matches_[n - 1] += std::min(count, at->second);
      }
    }
  }

  double SmoothValue() const {
    if (p_.has_smooth_value()) return p_.smooth_value();
    return p_.smooth_method() == job::Bleu::floor ? 0.1 : 1;
  }

  std::vector<double> Values() const override {
    if (reference_length_ == 0)
      return {std::numeric_limits<double>::quiet_NaN()};
    int64_t any = 0;
    for (int64_t matches : matches_) any += matches;
    if (any == 0) return {0};
    double sum = 0, half = 1;
    for (size_t n = 0; n < matches_.size(); ++n) {
      double matches = static_cast<double>(matches_[n]);
      double total = static_cast<double>(totals_[n]);
      if (p_.smooth_method() == job::Bleu::add_k && n > 0) {
        matches += SmoothValue();
        total += SmoothValue();
      }
      if (total == 0) return {0};  // too short for this order
      if (matches == 0 && p_.smooth_method() == job::Bleu::floor)
        matches = SmoothValue();
      if (matches == 0 && p_.smooth_method() == job::Bleu::exp)
        matches = half /= 2;
      if (matches == 0) return {0};
      sum += std::log(matches / total);
    }
    const double too_short =
        std::min(0.0, 1 - static_cast<double>(reference_length_) /
                              static_cast<double>(length_));
    return {std::exp(too_short + sum / static_cast<double>(matches_.size()))};
  }

  const job::Bleu p_;
  SequenceForm form_;
  std::vector<int64_t> matches_, totals_;  // by order
  int64_t length_ = 0, reference_length_ = 0;
};

}  // namespace

MetricPtr MakeBleu(const job::Metric& metric, ResultNames names) {
  return std::make_unique<BleuMetric>(metric.bleu(), std::move(names));
}

}  // namespace pd
