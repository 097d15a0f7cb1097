// SPDX-License-Identifier: Apache-2.0
// Numbers in buckets have the sums that they have together.
#include "libcore/dist/bucket_sums.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "tests/dist/thread_transport.h"

namespace pd {
namespace test_dist_bucket_sums {

constexpr int64_t kShards = 5;
const std::vector<int64_t> kCounts = {3, 1000, 1, 64};

float NumberOf(int64_t shard, size_t bucket, int64_t i) {
  return std::sin(static_cast<float>(shard * 977 + i * 31) +
                  static_cast<float>(bucket)) *
         std::pow(10.0f, static_cast<float>((shard + i) % 7));
}

// The sums of two batches, all buckets one behind the other.
std::vector<float> SumsOf(const Communicator& processes, int64_t absent) {
  BucketSums sums(kShards, kCounts, &processes);
  const ShardRange own =
      ShardRange::Of(kShards, processes.rank(), processes.size());
  std::vector<float> all;
  for (int64_t batch = 0; batch < 2; ++batch) {
    for (int64_t shard = own.begin; shard < own.end; ++shard) {
      std::vector<float*> leaves;
      for (size_t b = 0; b < kCounts.size(); ++b)
        leaves.push_back(sums.NextShard(b));
      // Each process fills its buckets in another order, at another speed.
      for (size_t n = 0; n < kCounts.size(); ++n) {
        const size_t b =
            (n + static_cast<size_t>(processes.rank())) % kCounts.size();
        std::this_thread::sleep_for(
            std::chrono::milliseconds((processes.rank() + n) % 3));
        for (int64_t i = 0; i < kCounts[b]; ++i)
          leaves[b][i] = NumberOf(shard + batch, b, i);
        sums.Add(b, shard != absent);
      }
    }
    for (size_t b = 0; b < kCounts.size(); ++b) {
      const auto found = sums.Finish(b);
      EXPECT_TRUE(found.ok()) << found.status();
      if (found.ok()) all.insert(all.end(), *found, *found + kCounts[b]);
    }
  }
  return all;
}

// Added up by ShardSum.
std::vector<float> ExpectedSums(int64_t absent) {
  const Communicator alone;
  std::vector<float> all;
  for (int64_t batch = 0; batch < 2; ++batch)
    for (size_t b = 0; b < kCounts.size(); ++b) {
      ShardSum sum(kShards, kCounts[b], &alone);
      std::vector<uint8_t> present;
      for (int64_t shard = 0; shard < kShards; ++shard) {
        float* numbers = sum.NextShard();
        for (int64_t i = 0; i < kCounts[b]; ++i)
          numbers[i] = NumberOf(shard + batch, b, i);
        sum.Add(shard != absent);
        present.push_back(shard != absent);
      }
      const auto found = sum.Finish(present);
      EXPECT_TRUE(found.ok()) << found.status();
      if (found.ok()) all.insert(all.end(), *found, *found + kCounts[b]);
    }
  return all;
}

TEST(BucketSums, AreThoseOfShardSum) {
  for (const int64_t absent : {int64_t{-1}, int64_t{0}, kShards - 1}) {
    const std::vector<float> expected = ExpectedSums(absent);
    for (int size = 1; size <= 4; ++size)
      RunTogether(size, [&](const Communicator& processes) {
        EXPECT_EQ(SumsOf(processes, absent), expected)
            << size << " processes, absent " << absent;
      });
  }
}

TEST(BucketSums, AnErrorIsThatOfAllBuckets) {
  const Communicator alone;
  BucketSums sums(1, {4, 4}, &alone);
  for (size_t b = 0; b < 2; ++b) {
    sums.NextShard(b);
    sums.Add(b, false);
  }
  EXPECT_FALSE(sums.Finish(0).ok());
  EXPECT_FALSE(sums.Finish(1).ok());
}

}  // namespace test_dist_bucket_sums
}  // namespace pd
