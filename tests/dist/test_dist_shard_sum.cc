// SPDX-License-Identifier: Apache-2.0
// Any number of processes comes to the bits of one.
#include "libcore/dist/shard_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/dist/thread_transport.h"

namespace pd {
namespace test_dist_shard_sum {

// Numbers whose sum depends on the order of additions.
float NumberOf(int64_t shard, int64_t i) {
  return std::sin(static_cast<float>(shard * 7919 + i)) *
         std::pow(10.0f, static_cast<float>((shard * 13 + i) % 9));
}

// The sums of a process; shards in `absent` have no records.
std::vector<float> SumsOf(const Communicator& processes, int64_t shards,
                          int64_t count, int64_t absent, int steps) {
  ShardSum sum(shards, count, &processes);
  const ShardRange own =
      ShardRange::Of(shards, processes.rank(), processes.size());
  std::vector<float> sums;
  for (int step = 0; step < steps; ++step) {
    for (int64_t s = own.begin; s < own.end; ++s) {
      float* numbers = sum.NextShard();
      for (int64_t i = 0; i < count; ++i) numbers[i] = NumberOf(s + step, i);
      sum.Add(s != absent);
    }
    const auto present = sum.GatherPresent();
    EXPECT_TRUE(present.ok()) << present.status();
    if (!present.ok()) return sums;
    for (int64_t s = 0; s < shards; ++s)
      EXPECT_EQ((*present)[static_cast<size_t>(s)] != 0, s != absent);
    const auto found = sum.Finish(*present);
    EXPECT_TRUE(found.ok()) << found.status();
    if (found.ok()) sums.assign(*found, *found + count);
  }
  return sums;
}

TEST(ShardSum, HasTheSameBitsForAnyNumberOfProcesses) {
  for (const int64_t shards : {1, 2, 3, 4, 7, 8, 12})
    for (const int64_t count : {1, 3, 1000})
      for (const int64_t absent : {int64_t{-1}, shards - 1, int64_t{0}}) {
        if (shards == 1 && absent == 0) continue;
        const std::vector<float> one =
            SumsOf(Communicator(), shards, count, absent, 2);
        for (int64_t i = 0; i < count; ++i) {
          double sum = 0, size = 0;
          for (int64_t s = 0; s < shards; ++s) {
            if (s == absent) continue;
            sum += NumberOf(s + 1, i);
            size += std::abs(NumberOf(s + 1, i));
          }
          ASSERT_NEAR(one[static_cast<size_t>(i)], sum, 1e-6 * size + 1e-6);
        }
        for (int size = 2; size <= std::min<int64_t>(shards, 6); ++size)
          RunTogether(size, [&](const Communicator& processes) {
            const std::vector<float> many =
                SumsOf(processes, shards, count, absent, 2);
            EXPECT_EQ(std::memcmp(many.data(), one.data(),
                                  one.size() * sizeof(float)),
                      0)
                << shards << " shards, " << size << " processes, " << count
                << " numbers, absent " << absent;
          });
      }
}

// Process r gets numbers [3 r, 3 r + 3) of 3 for each process, the last one
// none, and holds no other sums.
TEST(ShardSum, GivesEachProcessItsPart) {
  const int64_t shards = 7;
  for (int size = 2; size <= 4; ++size) {
    const int64_t count = 3 * (size - 1);
    const std::vector<float> all = SumsOf(Communicator(), shards, count, -1, 1);
    RunTogether(size, [&](const Communicator& processes) {
      std::vector<int64_t> bounds;
      for (int r = 0; r < size; ++r) bounds.push_back(3 * r);
      bounds.push_back(count);
      ShardSum sum(shards, bounds, &processes);
      const int rank = processes.rank();
      const ShardRange own = ShardRange::Of(shards, rank, size);
      for (int step = 0; step < 2; ++step) {
        for (int64_t s = own.begin; s < own.end; ++s) {
          float* numbers = sum.NextShard();
          for (int64_t i = 0; i < count; ++i) numbers[i] = NumberOf(s, i);
          sum.Add(true);
        }
        const auto found = sum.Finish(std::vector<uint8_t>(shards, 1));
        ASSERT_TRUE(found.ok()) << found.status();
        const size_t part = rank + 1 < size ? 3 : 0;
        EXPECT_EQ(
            std::memcmp(*found, all.data() + 3 * rank, part * sizeof(float)),
            0);
        EXPECT_EQ(sum.held_bytes(), static_cast<int64_t>(part * sizeof(float)));
      }
    });
  }
}

TEST(ShardSum, DividesShardsAmongProcesses) {
  for (const int64_t shards : {1, 3, 8, 100})
    for (int size = 1; size <= 7; ++size) {
      int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const ShardRange range = ShardRange::Of(shards, rank, size);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.end - range.begin, shards / size + 1);
        next = range.end;
      }
      EXPECT_EQ(next, shards);
    }
}

TEST(ShardSum, BytesSentAreThoseThatTravel) {
  constexpr int64_t kCount = 1000;
  for (const int64_t shards : {2, 3, 4, 7, 12})
    for (int size = 2; size <= std::min<int64_t>(shards, 6); ++size) {
      const int64_t most =
          RunTogether(size, [&](const Communicator& processes) {
            (void)SumsOf(processes, shards, kCount, -1, 1);
          });
      // The table of shards with records is a byte for each.
      const int64_t numbers = ShardSum::BytesSent(shards, kCount, size);
      EXPECT_GE(most, numbers) << shards << " in " << size;
      EXPECT_LE(most, numbers + shards * size) << shards << " in " << size;
    }
  EXPECT_EQ(ShardSum::BytesSent(4, 100, 2), 2 * 50 * 4);
}

TEST(ShardSum, IsAnErrorWithoutARecord) {
  const Communicator alone;
  ShardSum sum(1, 4, &alone);
  sum.NextShard();
  sum.Add(false);
  EXPECT_FALSE(sum.Finish({0}).ok());
}

}  // namespace test_dist_shard_sum
}  // namespace pd
