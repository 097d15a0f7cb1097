// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/sampler.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pd {
namespace test_sampler {

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

// 40 records of 6 classes of different sizes, and one record alone.
SamplerOptions ByClass(int64_t batch, int64_t records) {
  SamplerOptions options;
  options.batch_size = batch;
  options.per_class = records;
  for (int64_t i = 0; i < 40; ++i) options.classes.push_back(i * i % 11 * 10);
  options.classes.push_back(7);
  options.seed = 5;
  return options;
}

TEST(SamplerTest, BatchesHoldSeveralRecordsOfEachClass) {
  const SamplerOptions options = ByClass(12, 3);
  ASSERT_TRUE(Sampler::Check(41, options).ok());
  std::map<int64_t, int64_t> sizes;
  for (const int64_t c : options.classes) ++sizes[c];
  Sampler sampler(41, options);
  ASSERT_EQ(sampler.batches(), 3);
  std::map<int64_t, int> drawn;
  std::set<int64_t> seen;
  for (int epoch = 0; epoch < 400; ++epoch) {
    sampler.StartEpoch(epoch);
    const auto order = Order(sampler);
    ASSERT_EQ(order.size(), 36u);
    for (size_t batch = 0; batch < 36; batch += 12) {
      std::set<int64_t> classes;
      for (size_t first = batch; first < batch + 12; first += 3) {
        const int64_t c = options.classes[static_cast<size_t>(order[first])];
        EXPECT_TRUE(classes.insert(c).second);
        std::set<int64_t> records;
        for (size_t i = first; i < first + 3; ++i) {
          EXPECT_EQ(options.classes[static_cast<size_t>(order[i])], c);
          records.insert(order[i]);
          seen.insert(order[i]);
        }
        EXPECT_EQ(records.size(),
                  static_cast<size_t>(std::min<int64_t>(3, sizes[c])));
        ++drawn[c];
      }
    }
  }
  EXPECT_EQ(seen.size(), 41u);
  // 4 of 7 classes for 1200 batches: 686 each, standard deviation 17.
  ASSERT_EQ(drawn.size(), 7u);
  for (const auto& [c, count] : drawn) EXPECT_NEAR(count, 4800.0 / 7, 80);
}

TEST(SamplerTest, DrawsClassesByTheEpochAlone) {
  Sampler sampler(41, ByClass(8, 2)), other(41, ByClass(8, 2));
  sampler.StartEpoch(3);
  const auto third = Order(sampler);
  sampler.StartEpoch(4);
  EXPECT_NE(Order(sampler), third);
  other.StartEpoch(3);
  EXPECT_EQ(Order(other), third);
  SamplerOptions options = ByClass(8, 2);
  options.seed = 6;
  Sampler seeded(41, options);
  seeded.StartEpoch(3);
  EXPECT_NE(Order(seeded), third);
  options.num_samples = 400;  // more than there are
  ASSERT_TRUE(Sampler::Check(41, options).ok());
  EXPECT_EQ(Sampler(41, options).batches(), 50);
}

TEST(SamplerTest, RefusesClassesThatFillNoBatch) {
  const auto refusal = [](const SamplerOptions& options) {
    return std::string(Sampler::Check(41, options).message());
  };
  EXPECT_EQ(refusal(ByClass(10, 4)),
            "batches of 10 records cannot hold 4 records of each of their "
            "classes; expected a multiple of 4");
  EXPECT_EQ(refusal(ByClass(16, 2)),
            "a batch of 16 records, 2 of each class, holds 8 classes; the data "
            "has 7");
  SamplerOptions options = ByClass(8, 2);
  options.num_samples = 7;
  EXPECT_EQ(refusal(options),
            "an epoch of 7 records holds no whole batch of 8, and batches by "
            "classes are whole");
  options = ByClass(8, 2);
  options.shuffle = true;
  EXPECT_NE(refusal(options), "");
}

}  // namespace test_sampler
}  // namespace pd
