// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/calibrate.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/quant/growing_histogram.h"

namespace pd {
namespace {

// The entry of relu_of_ for a variable that is observed itself.
constexpr size_t kItself = std::numeric_limits<size_t>::max();

class Calibrator : public StretchObserver {
 public:
  Calibrator(const std::vector<std::string>& observed,
             const CalibrationOptions& options, bool cuts)
      : observed_(observed), options_(options) {
    for (size_t i = 0; i < observed.size(); ++i)
      finders_.push_back(
          MakeThresholdFinder(options.algorithm, options.percentile, cuts));
    ranges_.resize(observed.size());
    shown_.resize(observed.size());
    relu_of_.resize(observed.size(), kItself);
  }

  bool IsSure() const {
    return std::all_of(finders_.begin(), finders_.end(),
                       [](const auto& f) { return f->IsSure(); });
  }

  // Whether activations can be looked at while they are made.
  bool TakesStretches() const {
    return !options_.histograms &&
           std::all_of(finders_.begin(), finders_.end(), [](const auto& f) {
             return f->AsStretchFinder() != nullptr;
           });
  }
  void Begin(size_t i, int64_t n) override {
    finders_[i]->AsStretchFinder()->Begin(n);
  }
  void See(size_t i, int part, const float* x, int64_t n) override {
    finders_[i]->AsStretchFinder()->SeeStretch(part, x, n);
  }
  absl::Status End(size_t i) override {
    return Join(i, finders_[i]->AsStretchFinder()->End());
  }
  void IsReluOf(size_t relu, size_t of) override { relu_of_[relu] = of; }

  absl::StatusOr<Calibration> Run(ObservedModel* model, Loader* loader) {
    Calibration result;
    auto records = model->Pass(
        loader,
        [this](size_t i, const std::vector<const Tensor*>& values) {
          return SeeWhole(i, *values[0]);
        },
        [this](int64_t batches, int64_t records) {
          batch_ = batches;
          records_ = records;
          return options_.progress == nullptr ||
                 options_.progress(batches, records);
        });
    // Errors about the data come first, without the place in the plan.
    PD_RETURN_IF_ERROR(bad_value_);
    PD_RETURN_IF_ERROR(records.status());
    result.records = *records;
    result.batches = batch_;
    std::vector<ActivationStats> stats(observed_.size());
    ParallelFor(
        static_cast<int64_t>(stats.size()), 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            stats[static_cast<size_t>(i)] = StatsOf(static_cast<size_t>(i));
        });
    for (size_t i = 0; i < stats.size(); ++i)
      if (stats[i].range.count > 0)
        result.variables[observed_[i]] = std::move(stats[i]);
    return result;
  }

 private:
  ActivationStats StatsOf(size_t i) const {
    ActivationStats stats;
    const size_t of = relu_of_[i];
    if (of != kItself) {
      stats.range = ReluRange(ranges_[of]);
      if (stats.range.count > 0)
        stats.threshold = stats.signed_threshold =
            finders_[of]->AsStretchFinder()->ReluThreshold();
      return stats;
    }
    stats.range = ranges_[i];
    if (stats.range.count == 0) return stats;
    stats.threshold = finders_[i]->Threshold();
    stats.signed_threshold = finders_[i]->SignedThreshold();
    if (options_.histograms)
      stats.histogram = shown_[i].Rebinned(stats.range.abs_min,
                                           stats.range.abs_max, kHistogramBins);
    return stats;
  }

  absl::Status SeeWhole(size_t i, const Tensor& value) {
    const float* x = value.data<float>();
    if (value.size() == 0) return absl::OkStatus();
    PD_RETURN_IF_ERROR(Join(i, finders_[i]->See(x, value.shape())));
    if (!options_.histograms) return absl::OkStatus();
    shown_[i].Begin(value.size());
    ForStretches(value.size(), [&](int part, int64_t begin, int64_t end) {
      shown_[i].Add(part, x + begin, end - begin);
    });
    shown_[i].End();
    return absl::OkStatus();
  }

  absl::Status Join(size_t i, const ValueRange& range) {
    if (!range.finite())
      return bad_value_ = absl::AbortedError(
                 absl::StrFormat("batch %d of the calibration set, records "
                                 "from %d on: '%s' holds %d "
                                 "NaN and %d Inf among %d values",
                                 batch_, records_, observed_[i], range.nan,
                                 range.inf, range.count));
    ranges_[i].Join(range);
    return absl::OkStatus();
  }

  const std::vector<std::string>& observed_;
  const CalibrationOptions& options_;
  std::vector<std::unique_ptr<ThresholdFinder>> finders_;
  std::vector<ValueRange> ranges_;
  std::vector<GrowingHistogram> shown_;
  std::vector<size_t> relu_of_;
  absl::Status bad_value_;
  int64_t batch_ = 0, records_ = 0;  // done
};

}  // namespace

absl::StatusOr<Calibration> Calibrate(OpRegistry* registry,
                                      const InferenceModel& model,
                                      const std::vector<std::string>& observed,
                                      Loader* loader,
                                      const CalibrationOptions& options) {
  ObservedRun run;
  run.model = model;
  for (const std::string& name : observed) run.sights.push_back({name});
  run.as_they_lie = true;
  run.most_batches = options.most_batches;
  for (const bool cuts : {true, false}) {
    Calibrator calibrator(observed, options, cuts);
    run.by_stretches = calibrator.TakesStretches() ? &calibrator : nullptr;
    PD_ASSIGN_OR_RETURN(const auto observed_model,
                        ObservedModel::Create(registry, run));
    PD_ASSIGN_OR_RETURN(Calibration result,
                        calibrator.Run(observed_model.get(), loader));
    if (calibrator.IsSure()) return result;
  }
  return absl::InternalError("who sees all values must be sure");
}

}  // namespace pd
