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

}  // namespace
}  // namespace pd
