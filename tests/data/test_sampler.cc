// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/sampler.h"

#include <map>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace pd {
namespace {

std::vector<int64_t> Order(const Sampler& sampler) {
  std::vector<int64_t> order;
  for (int64_t batch = 0; batch < sampler.batches(); ++batch)
    for (int64_t i = 0; i < sampler.BatchRecords(batch); ++i)
      order.push_back(sampler.Record(batch, i));
  return order;
}

TEST(SamplerTest, CountsBatches) {
  EXPECT_EQ(Sampler(10, {4, false, false, 0}).batches(), 3);
  EXPECT_EQ(Sampler(10, {4, false, true, 0}).batches(), 2);
  EXPECT_EQ(Sampler(8, {4, false, false, 0}).batches(), 2);
  EXPECT_EQ(Sampler(3, {4, false, true, 0}).batches(), 0);
  EXPECT_EQ(Sampler(10, {4, false, false, 0}).BatchRecords(2), 2);
}

TEST(SamplerTest, ReadsInOrderWithoutShuffle) {
  Sampler sampler(5, {2, false, false, 3});
  sampler.StartEpoch(7);
  EXPECT_EQ(Order(sampler), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(SamplerTest, ShufflesEveryRecordOnceADifferentWayEachEpoch) {
  Sampler sampler(1000, {32, true, false, 3});
  sampler.StartEpoch(0);
  const auto first = Order(sampler);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 1000u);
  sampler.StartEpoch(1);
  EXPECT_NE(Order(sampler), first);
  sampler.StartEpoch(0);
  EXPECT_EQ(Order(sampler), first);
  Sampler other(1000, {32, true, false, 4});
  other.StartEpoch(0);
  EXPECT_NE(Order(other), first);
}

TEST(SamplerTest, ShufflesEvenly) {
  // Each of 6 orders of 3 records 1/6 of the time: chi-square with 5 degrees
  // of freedom stays below 20.5 with probability 0.999.
  Sampler sampler(3, {3, true, false, 11});
  std::map<std::vector<int64_t>, int> counts;
  constexpr int kEpochs = 6000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    sampler.StartEpoch(epoch);
    ++counts[Order(sampler)];
  }
  double chi = 0;
  for (const auto& [order, count] : counts)
    chi += (count - kEpochs / 6.0) * (count - kEpochs / 6.0) / (kEpochs / 6.0);
  EXPECT_EQ(counts.size(), 6u);
  EXPECT_LT(chi, 20.5);
}

TEST(SamplerTest, DrawsWithReplacementAndByWeight) {
  SamplerOptions options;
  options.batch_size = 100;
  options.replacement = true;
  options.num_samples = 30000;
  options.weights = {1, 0, 3};
  ASSERT_TRUE(Sampler::Check(3, options).ok());
  Sampler sampler(3, options);
  EXPECT_EQ(sampler.batches(), 300);
  sampler.StartEpoch(0);
  std::map<int64_t, int> counts;
  for (int64_t record : Order(sampler)) ++counts[record];
  EXPECT_EQ(counts[1], 0);
  // Binomial, 5 standard deviations of sqrt(30000 * 3 / 16) = 75.
  EXPECT_NEAR(counts[2], 22500, 375);
  options.replacement = false;
  EXPECT_FALSE(Sampler::Check(3, options).ok());
  options.num_samples = 2;
  ASSERT_TRUE(Sampler::Check(3, options).ok());
  Sampler once(3, options);
  once.StartEpoch(0);
  const auto order = Order(once);
  EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()),
            (std::set<int64_t>{0, 2}));
}

// The batches of paddle.io.DistributedBatchSampler for 11 records, batches of 2
// and 3 processes without shuffling.
TEST(SamplerTest, SharesBatchesAmongProcesses) {
  const std::vector<std::vector<int64_t>> expected = {
      {0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 0}};
  for (int64_t rank = 0; rank < 3; ++rank) {
    SamplerOptions options;
    options.batch_size = 2;
    options.num_replicas = 3;
    options.rank = rank;
    Sampler sampler(11, options);
    sampler.StartEpoch(0);
    EXPECT_EQ(Order(sampler), expected[static_cast<size_t>(rank)]);
  }
}

TEST(SamplerTest, BatchesHoldSimilarLengths) {
  SamplerOptions options;
  options.batch_size = 4;
  options.shuffle = true;
  options.lengths.resize(50);
  for (size_t i = 0; i < 50; ++i)
    options.lengths[i] = static_cast<int64_t>(i * 7 % 50);
  options.boundaries = {10, 30};
  Sampler sampler(50, options);
  EXPECT_EQ(sampler.batches(), 3 + 5 + 5);  // of 10, 20 and 20 records
  std::vector<int64_t> first;
  for (int64_t epoch : {0, 1, 0}) {
    sampler.StartEpoch(epoch);
    EXPECT_EQ(sampler.batches(), 13);
    std::set<int64_t> seen;
    for (int64_t batch = 0; batch < sampler.batches(); ++batch) {
      std::set<int> buckets;
      for (int64_t i = 0; i < sampler.BatchRecords(batch); ++i) {
        const int64_t record = sampler.Record(batch, i);
        const int64_t length = options.lengths[static_cast<size_t>(record)];
        buckets.insert(length < 10 ? 0 : length < 30 ? 1 : 2);
        seen.insert(record);
      }
      EXPECT_EQ(buckets.size(), 1u);
    }
    EXPECT_EQ(seen.size(), 50u);
    if (first.empty()) first = Order(sampler);
  }
  EXPECT_EQ(Order(sampler), first);
}

TEST(SamplerTest, SortsPools) {
  SamplerOptions options;
  options.batch_size = 2;
  options.lengths = {5, 1, 4, 2, 9, 8, 7};
  options.pool = 2;
  Sampler sampler(7, options);
  sampler.StartEpoch(0);
  EXPECT_EQ(Order(sampler), (std::vector<int64_t>{1, 3, 2, 0, 6, 5, 4}));
}

TEST(SamplerTest, ReadsPiecesSideBySide) {
  SamplerOptions options;
  options.batch_size = 2;
  options.contiguous = true;
  Sampler sampler(7, options);
  sampler.StartEpoch(0);
  EXPECT_EQ(Order(sampler), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
}

}  // namespace
}  // namespace pd
