// SPDX-License-Identifier: Apache-2.0
// How far the integers of an activation reach: |x| of the threshold becomes
// 127. The algorithms are those of PaddlePaddle's PostTrainingQuantization, to
// the digit, so that its tables are ours:
//   abs_max   the greatest |x|
//   min_max   the same; both ends are kept
//   avg       the mean over batches of the mean over records of the greatest
//   |x| mse, emd  of 36 candidates from 0.3 to 1.0 of a batch's greatest |x|,
//   the
//             one that loses least, over all batches. PaddlePaddle quantizes
//             the positive part only when it compares, and so do we:
//             mse: the mean of (x - q(x))^2,
//             emd: |mean(x) - mean(q(x))| + |std(x) - std(q(x))|
//   ptf       of 1, 1/2, 1/4, 1/8 of the last batch's greatest |x|, the one
//             with the least squared error of the positive part
//   hist      where a histogram of |x| holds the share `percentile`
//   KL        where the histogram, cut there and rounded to 127 levels, is
//             nearest to the whole one in the Kullback-Leibler sense
// The histogram's 2048 bins lie between the least and the greatest |x| of all
// batches. They are made of narrower ones (growing_histogram.h), so that data
// is read once; what that moves from a bin to its neighbour moves a threshold
// by a bin at most.
#ifndef PD_LIBCORE_QUANT_THRESHOLDS_H_
#define PD_LIBCORE_QUANT_THRESHOLDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/shape.h"

namespace pd {

enum class QuantAlgorithm {
  kKl,
  kHist,
  kMse,
  kAvg,
  kAbsMax,
  kMinMax,
  kEmd,
  kPtf
};

/// "KL", "hist", ... in the order of the enum.
const std::vector<std::string>& QuantAlgorithmNames();
const std::string& Name(QuantAlgorithm algorithm);
/// InvalidArgument for another name.
absl::StatusOr<QuantAlgorithm> ParseQuantAlgorithm(absl::string_view name);

/// The range of a variable's values in a batch or in all of them.
struct ValueRange {
  int64_t count = 0;
  int64_t nan = 0, inf = 0;
  float min = 0, max = 0;          ///< of x
  float abs_min = 0, abs_max = 0;  ///< of |x|

  bool finite() const { return nan + inf == 0; }
  void Join(const ValueRange& other);
};
ValueRange RangeOf(const float* x, int64_t n);
/// That of max(x, 0).
ValueRange ReluRange(const ValueRange& range);

/// Large batches are looked at by stretches, while these lie in the cache.
inline constexpr int64_t kStretch = 4096;
/// How many threads share a batch of n values.
int StretchParts(int64_t n);
/// Calls see(part, begin, end) on all stretches of n values; each thread has
/// its own number, below StretchParts(n).
void ForStretches(
    int64_t n,
    const std::function<void(int part, int64_t begin, int64_t end)>& see);

/// Counts of |x| in bins of equal width between two ends, which are widened by
/// 0.5 where they are equal (numpy.histogram).
class Histogram {
 public:
  Histogram() = default;
  Histogram(double low, double high, int bins);
  void Add(const float* x, int64_t n);

  double low() const { return edges_.front(); }
  double width() const { return edges_[1] - edges_[0]; }
  const std::vector<int64_t>& counts() const { return counts_; }
  /// For tests: counts that were found elsewhere.
  std::vector<int64_t>& mutable_counts() { return counts_; }

 private:
  std::vector<double> edges_;
  std::vector<int64_t> counts_;
};

inline constexpr int kHistogramBins = 2048;
inline constexpr double kHistogramPercentile = 0.99999;

/// (i - 0.5) * width for the first i bins that hold the share.
double PercentileThreshold(const Histogram& histogram, double percentile);
/// (i + 0.5) * width for the i with the least divergence, from half of the bins
/// on; `bits` is 8: 2^(bits-1) - 1 levels.
double KlThreshold(const Histogram& histogram, int bits);

class StretchFinder;

/// Finds the threshold of one variable.
class ThresholdFinder {
 public:
  virtual ~ThresholdFinder() = default;
  /// One batch of a pass, not empty, its records one after the other; within
  /// a record values lie in any order. Gives its range; of one with NaN or Inf
  /// nothing more is made.
  virtual ValueRange See(const float* x, const Shape& shape) = 0;
  virtual double Threshold() const = 0;
  /// For integers of both signs, where the algorithm tells them apart.
  virtual double SignedThreshold() const { return Threshold(); }
  /// False where values did not come as the first batches let expect, so that
  /// they have to be seen once more by one that does not cut (see below).
  virtual bool IsSure() const { return true; }
  /// This, where the algorithm looks at each value once and by itself.
  virtual StretchFinder* AsStretchFinder() { return nullptr; }
};

/// One that a batch may be shown to bit by bit, in any order, as it is made.
class StretchFinder : public ThresholdFinder {
 public:
  /// A batch of n values begins.
  virtual void Begin(int64_t n) = 0;
  /// A stretch of it; `part` is the number of the thread (ForStretches).
  virtual void SeeStretch(int part, const float* x, int64_t n) = 0;
  /// It has been shown. Gives its range.
  virtual ValueRange End() = 0;
  /// The threshold of max(x, 0).
  virtual double ReluThreshold() const = 0;

  ValueRange See(const float* x, const Shape& shape) final;
  StretchFinder* AsStretchFinder() final { return this; }
};

/// `cuts`: what the first batches show to lie far below the percentile need not
/// be counted.
std::unique_ptr<ThresholdFinder> MakeThresholdFinder(QuantAlgorithm algorithm,
                                                     double percentile,
                                                     bool cuts);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_THRESHOLDS_H_
