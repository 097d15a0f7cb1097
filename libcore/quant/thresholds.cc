// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/thresholds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/quant/growing_histogram.h"

namespace pd {
namespace {

constexpr int64_t kGrain = 1 << 14;
constexpr int64_t kBlock = 256;
constexpr float kLevels = 127;

// The shares of the greatest |x| that are tried.
std::vector<double> Shares() {
  std::vector<double> shares;
  for (double s = 0.3; s <= 1.0; s += 0.02) shares.push_back(s);
  return shares;
}

// clip(round(x / scale * 127), low, 127) / 127 * scale, halves to even; low is
// 0 or -128.
inline float Quantized(float x, float scale, float low) {
  const float q = std::nearbyint(x / scale * kLevels);
  return std::min(std::max(q, low), kLevels) / kLevels * scale;
}

// Sums over x and its quantized twin.
struct Sums {
  double error = 0;  // of (x - q)^2
  double q = 0, q_squared = 0;
};

// Adds what few values give, as PaddlePaddle rounds it: there are ties.
void AddFew(const float* x, int64_t n, float scale, float low, Sums* sums) {
  for (int64_t i = 0; i < n; ++i) {
    const float q = Quantized(x[i], scale, low), d = x[i] - q;
    sums->error += static_cast<double>(d) * d;
    sums->q += q;
    sums->q_squared += static_cast<double>(q) * q;
  }
}

// Adds a block of many: the error, or the moments of q. Lanes of floats hold
// few enough numbers that the sum of many blocks is that of doubles.
void AddBlock(const float* x, int64_t n, float scale, float low, bool moments,
              Sums* sums) {
  const float forth = kLevels / scale, back = scale / kLevels;
  const auto quantized = [=](float v) {
    return std::min(std::max(std::nearbyint(v * forth), low), kLevels) * back;
  };
  float error = 0, total = 0, squared = 0;
  if (moments) {
#pragma omp simd reduction(+ : total, squared)
    for (int64_t i = 0; i < n; ++i) {
      const float q = quantized(x[i]);
      total += q;
      squared += q * q;
    }
  } else {
#pragma omp simd reduction(+ : error)
    for (int64_t i = 0; i < n; ++i) {
      const float d = x[i] - quantized(x[i]);
      error += d * d;
    }
  }
  sums->error += error;
  sums->q += total;
  sums->q_squared += squared;
}

// One entry a scale: the error, or the moments of q. Threads add up their
// parts, in their order.
std::vector<Sums> SumsOf(const float* x, int64_t n,
                         const std::vector<float>& scales, float low,
                         bool moments) {
  std::vector<std::vector<Sums>> parts(static_cast<size_t>(Threads()));
  const auto add = [&](int64_t begin, int64_t end, std::vector<Sums>* sums) {
    sums->assign(scales.size(), Sums());
    for (; begin < end; begin += kBlock)
      for (size_t k = 0; k < scales.size(); ++k)
        AddBlock(x + begin, std::min(kBlock, end - begin), scales[k], low,
                 moments, &(*sums)[k]);
  };
  if (n < kGrain) {
    parts.resize(1);
    parts[0].resize(scales.size());
    for (size_t k = 0; k < scales.size(); ++k)
      AddFew(x, n, scales[k], low, &parts[0][k]);
  } else {
    ParallelParts([&](int part, int of) {
      add(n * part / of, n * (part + 1) / of,
          &parts[static_cast<size_t>(part)]);
    });
  }
  std::vector<Sums> sums = parts[0];
  for (size_t p = 1; p < parts.size(); ++p)
    for (size_t k = 0; k < parts[p].size(); ++k) {
      sums[k].error += parts[p][k].error;
      sums[k].q += parts[p][k].q;
      sums[k].q_squared += parts[p][k].q_squared;
    }
  return sums;
}

double Deviation(double sum, double squares, double n) {
  const double mean = sum / n;
  return std::sqrt(std::max(squares / n - mean * mean, 0.0));
}

// Looks at the range first, and at the values when they are all finite.
class RangeFinder : public ThresholdFinder {
 public:
  ValueRange See(const float* x, const Shape& shape) override {
    const ValueRange range = RangeOf(x, NumElements(shape));
    if (range.finite()) Use(x, shape, range);
    return range;
  }

 private:
  virtual void Use(const float* x, const Shape& shape,
                   const ValueRange& range) = 0;
};

class AbsMaxFinder : public StretchFinder {
 public:
  void Begin(int64_t n) override {
    parts_.resize(static_cast<size_t>(StretchParts(n)));
  }
  void SeeStretch(int part, const float* x, int64_t n) override {
    parts_[static_cast<size_t>(part)].Join(RangeOf(x, n));
  }
  ValueRange End() override {
    ValueRange range;
    for (const ValueRange& part : parts_) range.Join(part);
    parts_.clear();
    if (range.finite()) all_.Join(range);
    return range;
  }
  double Threshold() const override { return all_.abs_max; }
  double ReluThreshold() const override { return ReluRange(all_).abs_max; }

 private:
  ValueRange all_;
  std::vector<ValueRange> parts_;
};

class AverageFinder : public RangeFinder {
 public:
  void Use(const float* x, const Shape& shape, const ValueRange&) override {
    const int64_t records = shape.empty() ? 1 : shape[0];
    const int64_t each = NumElements(shape) / records;
    double sum = 0;
    for (int64_t r = 0; r < records; ++r)
      sum += RangeOf(x + r * each, each).abs_max;
    sum_ += sum / static_cast<double>(records);
    ++batches_;
  }
  double Threshold() const override { return sum_ / batches_; }

 private:
  double sum_ = 0;
  int batches_ = 0;
};

// mse and emd: a loss of each candidate, the least of all batches wins.
class SearchFinder : public RangeFinder {
 public:
  explicit SearchFinder(bool moments) : moments_(moments), shares_(Shares()) {}

  void Use(const float* x, const Shape& shape,
           const ValueRange& range) override {
    const int64_t n = NumElements(shape);
    double total = 0, squares = 0;
    if (moments_) {
      for (int64_t i = 0; i < n; ++i) {
        total += x[i];
        squares += static_cast<double>(x[i]) * x[i];
      }
    }
    const Moments moments = {static_cast<double>(n), total, squares};
    const double most = range.abs_max == 0 ? 1e-8 : range.abs_max;
    const Best before = positive_;
    Search(x, moments, most, 0, &positive_);
    if (!has_negative_ && range.min < 0) {
      has_negative_ = true;
      both_ = before;
    }
    if (has_negative_) Search(x, moments, most, -kLevels - 1, &both_);
  }
  double Threshold() const override { return positive_.threshold; }
  double SignedThreshold() const override {
    return has_negative_ ? both_.threshold : positive_.threshold;
  }

 private:
  struct Moments {
    double count, sum, squares;
  };
  struct Best {
    double loss = std::numeric_limits<double>::infinity();
    double threshold = 0;
  };

  void Search(const float* x, const Moments& moments, double most, float low,
              Best* best) const {
    std::vector<float> scales;
    for (const double share : shares_)
      scales.push_back(static_cast<float>(share * most));
    const std::vector<Sums> sums =
        SumsOf(x, static_cast<int64_t>(moments.count), scales, low, moments_);
    const auto mean = [&](double sum) { return sum / moments.count; };
    const auto deviation = [&](double sum, double squares) {
      return Deviation(sum, squares, moments.count);
    };
    for (size_t k = 0; k < shares_.size(); ++k) {
      const Sums& s = sums[k];
      const double loss =
          !moments_ ? mean(s.error)
                    : std::fabs(mean(moments.sum) - mean(s.q)) +
                          std::fabs(deviation(moments.sum, moments.squares) -
                                    deviation(s.q, s.q_squared));
      // PaddlePaddle compares float32 means: of what is equal there, the last.
      const auto least = static_cast<float>(best->loss);
      const double tie =
          std::nextafter(least, std::numeric_limits<float>::infinity()) - least;
      if (std::isfinite(best->loss) && loss > best->loss + tie / 2) continue;
      best->loss = std::min(best->loss, loss);
      best->threshold = shares_[k] * most;
    }
  }

  const bool moments_;
  const std::vector<double> shares_;
  Best positive_, both_;
  bool has_negative_ = false;
};

class PtfFinder : public RangeFinder {
 public:
  void Use(const float* x, const Shape& shape,
           const ValueRange& range) override {
    std::vector<float> scales;
    for (const float part : {0.125f, 0.25f, 0.5f, 1.0f})
      scales.push_back(range.abs_max * part);
    threshold_ = range.abs_max;
    if (range.abs_max == 0) return;
    const std::vector<Sums> sums =
        SumsOf(x, NumElements(shape), scales, 0, false);
    size_t best = 0;
    for (size_t k = 1; k < scales.size(); ++k)
      if (sums[k].error < sums[best].error) best = k;
    threshold_ = scales[best];
  }
  double Threshold() const override { return threshold_; }

 private:
  double threshold_ = 0;
};

class HistogramFinder : public StretchFinder {
 public:
  HistogramFinder(bool kl, double percentile, bool cuts)
      : kl_(kl), percentile_(percentile), cuts_(cuts && !kl) {}

  void Begin(int64_t n) override { histogram_.Begin(n); }
  void SeeStretch(int part, const float* x, int64_t n) override {
    histogram_.Add(part, x, n);
  }
  ValueRange End() override {
    const ValueRange range = histogram_.End();
    range_.Join(range);
    if (cuts_ && !is_cut_ && range_.count >= kCutFrom) {
      histogram_.CountFrom(histogram_.CutOf(kCutMargin * (1 - percentile_)));
      is_cut_ = true;
    }
    return range;
  }
  bool IsSure() const override {
    return !is_cut_ || histogram_.KnowsTop(1 - percentile_);
  }
  double Threshold() const override {
    return Of(range_, &GrowingHistogram::Rebinned);
  }
  double ReluThreshold() const override {
    return Of(ReluRange(range_), &GrowingHistogram::RebinnedRelu);
  }

 private:
  double Of(const ValueRange& range,
            Histogram (GrowingHistogram::*rebinned)(double, double, int)
                const) const {
    // Of nothing but zeros there is no threshold.
    if (range.abs_max == 0) return 0;
    const Histogram histogram =
        (histogram_.*rebinned)(range.abs_min, range.abs_max, kHistogramBins);
    return kl_ ? KlThreshold(histogram, 8)
               : PercentileThreshold(histogram, percentile_);
  }

  // A percentile wants the largest values alone. As soon as so many values have
  // come by, only those are counted that this many times too few would be
  // above.
  static constexpr int64_t kCutFrom = 1 << 17;
  static constexpr double kCutMargin = 30;

  const bool kl_;
  const double percentile_;
  const bool cuts_;
  bool is_cut_ = false;
  ValueRange range_;
  GrowingHistogram histogram_;
};

}  // namespace

const std::vector<std::string>& QuantAlgorithmNames() {
  static const auto* const kNames = new std::vector<std::string>{
      "KL", "hist", "mse", "avg", "abs_max", "min_max", "emd", "ptf"};
  return *kNames;
}

const std::string& Name(QuantAlgorithm algorithm) {
  return QuantAlgorithmNames()[static_cast<size_t>(algorithm)];
}

absl::StatusOr<QuantAlgorithm> ParseQuantAlgorithm(absl::string_view name) {
  const std::vector<std::string>& names = QuantAlgorithmNames();
  const auto at = std::find(names.begin(), names.end(), std::string(name));
  if (at == names.end())
    return InvalidArgument("there is no algorithm '%s'; expected one of %s",
                           name, absl::StrJoin(names, ", "));
  return static_cast<QuantAlgorithm>(at - names.begin());
}

void ValueRange::Join(const ValueRange& other) {
  if (other.count == 0) return;
  const ValueRange old = *this;
  *this = other;
  if (old.count == 0) return;
  count += old.count;
  nan += old.nan;
  inf += old.inf;
  min = std::min(min, old.min);
  max = std::max(max, old.max);
  abs_min = std::min(abs_min, old.abs_min);
  abs_max = std::max(abs_max, old.abs_max);
}

namespace {

float FloatOf(uint32_t bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// With NaN and Inf, of which there are none as a rule. A NaN leaves the
// extremes alone.
ValueRange RangeOfAny(const float* x, int64_t n) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  ValueRange range = {n, 0, 0, kInf, -kInf, kInf, 0};
  for (int64_t i = 0; i < n; ++i) {
    range.nan += std::isnan(x[i]);
    range.inf += std::isinf(x[i]);
    if (std::isnan(x[i])) continue;
    range.min = std::min(range.min, x[i]);
    range.max = std::max(range.max, x[i]);
    range.abs_min = std::min(range.abs_min, std::fabs(x[i]));
    range.abs_max = std::max(range.abs_max, std::fabs(x[i]));
  }
  return range;
}

// By the bits, whose comparisons take a cycle where those of floats take four:
// above 0 greater bits are a greater number, below 0 a lesser one.
ValueRange RangeOfPart(const float* x, int64_t n) {
  constexpr uint32_t kSign = 0x80000000u, kInf = 0x7f800000u;
  uint32_t most = 0, least_abs = ~kSign;
  int32_t most_signed = std::numeric_limits<int32_t>::min();
#pragma omp simd reduction(max : most, most_signed) reduction(min : least_abs)
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, x + i, sizeof(bits));
    most = std::max(most, bits);
    most_signed = std::max(most_signed, static_cast<int32_t>(bits));
    least_abs = std::min(least_abs, bits & ~kSign);
  }
  const bool any_above = most_signed >= 0, any_below = (most & kSign) != 0;
  if ((any_above && static_cast<uint32_t>(most_signed) >= kInf) ||
      (any_below && (most & ~kSign) >= kInf))
    return RangeOfAny(x, n);
  ValueRange range;
  range.count = n;
  range.abs_min = FloatOf(least_abs);
  range.min = any_below ? FloatOf(most) : range.abs_min;
  range.max =
      any_above ? FloatOf(static_cast<uint32_t>(most_signed)) : -range.abs_min;
  range.abs_max = std::max({-range.min, range.max, 0.0f});
  return range;
}

}  // namespace

ValueRange RangeOf(const float* x, int64_t n) {
  if (n < kGrain) return n > 0 ? RangeOfPart(x, n) : ValueRange();
  std::vector<ValueRange> parts(static_cast<size_t>(Threads()));
  ParallelParts([&](int part, int of) {
    const int64_t begin = n * part / of, end = n * (part + 1) / of;
    parts[static_cast<size_t>(part)] = RangeOfPart(x + begin, end - begin);
  });
  ValueRange all;
  for (const ValueRange& part : parts) all.Join(part);
  return all;
}

ValueRange ReluRange(const ValueRange& range) {
  ValueRange relu = range;
  relu.min = std::max(range.min, 0.0f);
  relu.max = std::max(range.max, 0.0f);
  relu.abs_min = relu.min;
  relu.abs_max = relu.max;
  return relu;
}

int StretchParts(int64_t n) { return n < 8 * kStretch ? 1 : Threads(); }

void ForStretches(
    int64_t n,
    const std::function<void(int part, int64_t begin, int64_t end)>& see) {
  const auto part = [&](int64_t k, int64_t of) {
    const int64_t stretches = (n + kStretch - 1) / kStretch;
    for (int64_t i = stretches * k / of; i < stretches * (k + 1) / of; ++i)
      see(static_cast<int>(k), i * kStretch, std::min((i + 1) * kStretch, n));
  };
  if (StretchParts(n) == 1) return part(0, 1);
  ParallelParts([&](int k, int of) { part(k, of); });
}

ValueRange StretchFinder::See(const float* x, const Shape& shape) {
  const int64_t n = NumElements(shape);
  Begin(n);
  ForStretches(n, [&](int part, int64_t begin, int64_t end) {
    SeeStretch(part, x + begin, end - begin);
  });
  return End();
}

std::unique_ptr<ThresholdFinder> MakeThresholdFinder(QuantAlgorithm algorithm,
                                                     double percentile,
                                                     bool cuts) {
  switch (algorithm) {
    case QuantAlgorithm::kKl:
    case QuantAlgorithm::kHist:
      return std::make_unique<HistogramFinder>(algorithm == QuantAlgorithm::kKl,
                                               percentile, cuts);
    case QuantAlgorithm::kMse:
    case QuantAlgorithm::kEmd:
      return std::make_unique<SearchFinder>(algorithm == QuantAlgorithm::kEmd);
    case QuantAlgorithm::kAvg:
      return std::make_unique<AverageFinder>();
    case QuantAlgorithm::kPtf:
      return std::make_unique<PtfFinder>();
    case QuantAlgorithm::kAbsMax:
    case QuantAlgorithm::kMinMax:
      break;
  }
  return std::make_unique<AbsMaxFinder>();
}

}  // namespace pd
