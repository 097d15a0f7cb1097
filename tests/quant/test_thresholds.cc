// SPDX-License-Identifier: Apache-2.0
// Thresholds worked out by hand, and by PaddlePaddle's cal_kl_threshold for
// small histograms.
#include "libcore/quant/thresholds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "libcore/quant/growing_histogram.h"

namespace pd {
namespace test_thresholds {

Histogram Counted(const std::vector<int64_t>& counts, double width) {
  Histogram histogram(0, width * static_cast<double>(counts.size()),
                      static_cast<int>(counts.size()));
  histogram.mutable_counts() = counts;
  return histogram;
}

double Find(QuantAlgorithm algorithm,
            const std::vector<std::vector<float>>& batches,
            bool for_both_signs = false) {
  const auto finder =
      MakeThresholdFinder(algorithm, kHistogramPercentile, true);
  for (const std::vector<float>& x : batches) {
    const auto n = static_cast<int64_t>(x.size());
    finder->See(x.data(), {n});
  }
  return for_both_signs ? finder->SignedThreshold() : finder->Threshold();
}

TEST(RangeOf, SeesEndsAndCountsWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-3, 0.5f, std::nanf(""), 2, -inf};
  const ValueRange range = RangeOf(x.data(), 4);
  EXPECT_EQ(range.count, 4);
  EXPECT_EQ(range.nan, 1);
  EXPECT_EQ(range.min, -3);
  EXPECT_EQ(range.max, 2);
  EXPECT_EQ(range.abs_min, 0.5f);
  EXPECT_EQ(range.abs_max, 3);
  EXPECT_EQ(RangeOf(x.data(), 5).inf, 1);
  ValueRange joined = RangeOf(x.data() + 3, 1);
  joined.Join(RangeOf(x.data(), 2));
  joined.Join(ValueRange());
  EXPECT_EQ(joined.count, 3);
  EXPECT_EQ(joined.min, -3);
  EXPECT_EQ(joined.max, 2);
}

// numpy.histogram: a value on an edge counts for the bin above it, the last
// edge for the last bin.
TEST(Histogram, CountsLikeNumpy) {
  Histogram histogram(0, 1, 4);
  const std::vector<float> x = {0, 0.25f, -0.25f, 0.49f, 0.5f, 0.75f, 1, -1};
  histogram.Add(x.data(), static_cast<int64_t>(x.size()));
  EXPECT_EQ(histogram.counts(), (std::vector<int64_t>{1, 3, 1, 3}));
  const Histogram flat(2, 2, 4);
  EXPECT_EQ(flat.low(), 1.5);
  EXPECT_EQ(flat.width(), 0.25);
}

ValueRange Add(const std::vector<float>& x, GrowingHistogram* histogram) {
  const auto n = static_cast<int64_t>(x.size());
  histogram->Begin(n);
  ForStretches(n, [&](int part, int64_t begin, int64_t end) {
    histogram->Add(part, x.data() + begin, end - begin);
  });
  return histogram->End();
}

// Ranges that grow by orders of magnitude, in small and large batches: counts
// are those of the histogram that knows both ends, but for edges.
TEST(GrowingHistogram, CountsWhatAHistogramCounts) {
  GrowingHistogram growing;
  const std::vector<float> zeros(10, 0);
  Add(zeros, &growing);
  std::vector<float> all = zeros;
  for (int batch = 0; batch < 6; ++batch) {
    const size_t n = batch % 2 == 0 ? 1000 : 300000;
    std::vector<float> x;
    for (size_t i = 0; i < n; ++i)
      x.push_back(std::sin(static_cast<float>(i)) *
                  std::sin(static_cast<float>(i) * 0.37f) *
                  std::pow(3.0f, static_cast<float>(batch - 3)));
    const ValueRange range = RangeOf(x.data(), static_cast<int64_t>(n));
    const ValueRange seen = Add(x, &growing);
    EXPECT_EQ(seen.count, range.count);
    EXPECT_EQ(seen.min, range.min);
    EXPECT_EQ(seen.max, range.max);
    EXPECT_EQ(seen.abs_min, range.abs_min);
    EXPECT_EQ(seen.abs_max, range.abs_max);
    all.insert(all.end(), x.begin(), x.end());
  }
  const auto count = static_cast<int64_t>(all.size());
  const ValueRange range = RangeOf(all.data(), count);
  Histogram want(range.abs_min, range.abs_max, 256);
  want.Add(all.data(), count);
  const Histogram got = growing.Rebinned(range.abs_min, range.abs_max, 256);
  int64_t total = 0, got_below = 0, want_below = 0;
  for (size_t i = 0; i < 256; ++i) {
    total += got.counts()[i];
    got_below += got.counts()[i];
    want_below += want.counts()[i];
    // Values in a narrow bin at the edge may be on the other side.
    const double most = 0.01 * static_cast<double>(want.counts()[i]) + 30;
    EXPECT_NEAR(static_cast<double>(got_below - want_below), 0, most) << i;
  }
  EXPECT_EQ(total, count);
}

TEST(GrowingHistogram, NamesWhatIsNoNumber) {
  GrowingHistogram growing;
  std::vector<float> x(300000, 1.0f);
  Add(x, &growing);
  x[7] = std::nanf("");
  x[299999] = -std::numeric_limits<float>::infinity();
  const ValueRange range = Add(x, &growing);
  EXPECT_EQ(range.nan, 1);
  EXPECT_EQ(range.inf, 1);
  EXPECT_FALSE(range.finite());
}

TEST(GrowingHistogram, ExtremesOfFloats) {
  const std::vector<float> x = {1e-42f, -3e38f, 0, 1};
  GrowingHistogram growing;
  Add({x[0]}, &growing);
  Add(x, &growing);
  const Histogram got = growing.Rebinned(0, 3e38f, 4);
  EXPECT_EQ(got.counts(), (std::vector<int64_t>{4, 0, 0, 1}));
}

TEST(PercentileThreshold, IsTheMiddleOfTheLastBin) {
  const Histogram histogram = Counted({50, 30, 15, 4, 1}, 2);
  EXPECT_EQ(PercentileThreshold(histogram, 0.5), 1);
  EXPECT_EQ(PercentileThreshold(histogram, 0.95), 5);
  EXPECT_EQ(PercentileThreshold(histogram, 0.96), 7);
  EXPECT_EQ(PercentileThreshold(histogram, 1), 9);
}

TEST(KlThreshold, IsPaddlePaddles) {
  EXPECT_EQ(
      KlThreshold(
          Counted({40, 31, 0, 25, 18, 12, 9, 7, 0, 5, 3, 2, 2, 0, 1, 1}, 0.5),
          4),
      5.75);
  EXPECT_EQ(
      KlThreshold(
          Counted({0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 7}, 0.25), 4),
      2.625);
  const std::vector<int64_t> falling = {100, 90, 80, 70, 60, 50, 40, 30,
                                        20,  10, 5,  4,  3,  2,  1,  1};
  EXPECT_EQ(KlThreshold(Counted(falling, 0.5), 3), 4.75);
  EXPECT_EQ(KlThreshold(Counted(falling, 0.5), 4), 7.75);
  std::vector<int64_t> one(16, 0);
  one[0] = 8;
  EXPECT_EQ(KlThreshold(Counted(one, 0.25), 4), 0.125);
  std::vector<int64_t> far(64, 0);
  for (size_t i = 0; i < 40; ++i) far[i] = static_cast<int64_t>(40 - i);
  far[63] = 2;
  EXPECT_EQ(KlThreshold(Counted(far, 1), 4), 38.5);
}

TEST(ThresholdFinder, SimpleOnes) {
  EXPECT_EQ(Find(QuantAlgorithm::kAbsMax, {{1, -4}, {3}}), 4);
  EXPECT_EQ(Find(QuantAlgorithm::kMinMax, {{1, -4}, {3}}), 4);
  // Each record is one number here: the mean of (1 + 4) / 2 and 3.
  EXPECT_EQ(Find(QuantAlgorithm::kAvg, {{1, -4}, {3}}), 2.75);
  EXPECT_EQ(Find(QuantAlgorithm::kAbsMax, {{0, 0}}), 0);
  EXPECT_EQ(Find(QuantAlgorithm::kKl, {{0, 0}}), 0);
}

// Cut or not, the same; and where the first batch was none like the others, it
// says so.
TEST(ThresholdFinder, HistCountsTheTopAlone) {
  std::vector<float> x;
  for (int i = 0; i < 200000; ++i) {
    const auto v = static_cast<float>(i);
    x.push_back(std::sin(v) * std::sin(v * 0.37f) * std::sin(v * 0.11f));
  }
  std::vector<float> greater = x;
  for (float& v : greater) v *= 1000;
  struct Found {
    double threshold, of_relu;
    bool sure;
  };
  const auto find = [&](bool cuts, int64_t first, int batches) {
    const auto finder =
        MakeThresholdFinder(QuantAlgorithm::kHist, kHistogramPercentile, cuts);
    finder->See(greater.data(), {first});
    for (int i = 0; i < batches; ++i) finder->See(x.data(), {200000});
    return Found{finder->Threshold(),
                 finder->AsStretchFinder()->ReluThreshold(), finder->IsSure()};
  };
  // Of 4 million values 40 are to be above: they are in the first batch.
  const Found all = find(false, 140000, 20), top = find(true, 140000, 20);
  EXPECT_TRUE(all.sure);
  EXPECT_TRUE(top.sure);
  EXPECT_GT(all.threshold, 100);
  EXPECT_EQ(top.threshold, all.threshold);
  EXPECT_EQ(top.of_relu, all.of_relu);
  // Of 12 million it would be 120.
  EXPECT_TRUE(find(false, 140000, 60).sure);
  EXPECT_FALSE(find(true, 140000, 60).sure);
}

TEST(ThresholdFinder, MseTakesWhatLosesLeast) {
  const double whole = Find(QuantAlgorithm::kMse, {{1.27f, 0.01f, 0.02f}});
  EXPECT_NEAR(whole, 1.27, 0.026);
  // To cut a large value costs more than a finer step gains for three others.
  const double outlier = Find(QuantAlgorithm::kMse, {{100, 1, 1, 1}});
  EXPECT_GT(outlier, 90);
}

// The positive part decides in one form, both signs in the other.
TEST(ThresholdFinder, SignsDiffer) {
  std::vector<float> x(1000, 0.3f);
  for (size_t i = 0; i < 10; ++i) x[i] = -1;
  const double positive = Find(QuantAlgorithm::kMse, {x});
  const double both = Find(QuantAlgorithm::kMse, {x}, true);
  EXPECT_NEAR(positive, 0.3, 1e-6);
  EXPECT_GT(both, 0.9);
  const std::vector<float> no_sign = {0.1f, 0.2f, 3};
  EXPECT_EQ(Find(QuantAlgorithm::kMse, {no_sign}),
            Find(QuantAlgorithm::kMse, {no_sign}, true));
}

TEST(ParseQuantAlgorithm, KnowsItsNames) {
  for (const std::string& name : QuantAlgorithmNames()) {
    const auto algorithm = ParseQuantAlgorithm(name);
    ASSERT_TRUE(algorithm.ok());
    EXPECT_EQ(Name(*algorithm), name);
  }
  EXPECT_FALSE(ParseQuantAlgorithm("kl").ok());
}

}  // namespace test_thresholds
}  // namespace pd
