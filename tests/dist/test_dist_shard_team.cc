// SPDX-License-Identifier: Apache-2.0
// Shards exchange numbers as processes do, whatever process has which.
#include "libcore/dist/shard_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <new>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "tests/dist/thread_transport.h"

namespace pd {
namespace test_dist_shard_team {

double TermOf(int64_t shard, int64_t i) {
  return std::sin(static_cast<double>(shard * 7919 + i)) *
         std::pow(10.0, static_cast<double>((shard * 13 + i) % 9));
}

// The sums that each shard of a process has got, a few numbers and many.
using Sums = std::map<int64_t, std::vector<double>>;

absl::StatusOr<Sums> SumUp(const Communicator& processes,
                           const std::vector<int64_t>& records,
                           int64_t fails = -1, int64_t leaves = -1) {
  const auto shards = static_cast<int64_t>(records.size());
  ShardTeam team(shards, &processes);
  const ShardRange own =
      ShardRange::Of(shards, processes.rank(), processes.size());
  Sums sums;
  int64_t entered = -1;
  ShardTurns turns;
  turns.enter = [&](int64_t shard) { entered = shard; };
  turns.leave = [&](int64_t shard) { EXPECT_EQ(entered, shard); };
  turns.run = [&](int64_t shard, const World& world) -> absl::Status {
    for (const int64_t count : {int64_t{3}, int64_t{5000}}) {
      EXPECT_EQ(entered, shard);
      if (shard == fails && count > 3) return InvalidArgument("it fails");
      if (shard == leaves && count > 3) return absl::OkStatus();
      std::vector<double> numbers;
      for (int64_t i = 0; i < count; ++i)
        numbers.push_back(TermOf(shard, i) * world.weight());
      PD_RETURN_IF_ERROR(world.all().AllReduce(Reduction::kSum, DType::kFloat64,
                                               count, numbers.data(),
                                               numbers.data()));
      sums[shard].insert(sums[shard].end(), numbers.begin(), numbers.end());
    }
    return absl::OkStatus();
  };
  const std::vector<int64_t> of_own(records.begin() + own.begin,
                                    records.begin() + own.end);
  for (int step = 0; step < 2; ++step) {
    sums.clear();
    PD_RETURN_IF_ERROR(team.Run(of_own, turns));
  }
  return sums;
}

TEST(ShardTeam, SumsUpOverShardsInAnyNumberOfProcesses) {
  for (const std::vector<int64_t>& records :
       {std::vector<int64_t>{2, 2, 2, 2}, {2, 1, 1, 1}, {1, 0, 1, 0, 0}, {4}}) {
    const auto one = SumUp(Communicator(), records);
    ASSERT_TRUE(one.ok()) << one.status();
    double total = 0, present = 0;
    for (const int64_t n : records) {
      total += static_cast<double>(n);
      present += n > 0 ? 1 : 0;
    }
    const std::vector<double>& sums = one->begin()->second;
    ASSERT_EQ(sums.size(), 5003u);
    for (size_t i = 0; i < sums.size(); ++i) {
      double sum = 0, size = 0;
      for (size_t s = 0; s < records.size(); ++s) {
        const double term = TermOf(static_cast<int64_t>(s),
                                   static_cast<int64_t>(i < 3 ? i : i - 3)) *
                            static_cast<double>(records[s]) * present / total;
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(sums[i], sum, 1e-14 * size);
    }
    for (int size = 1; size <= static_cast<int>(records.size()); ++size)
      RunTogether(size, [&](const Communicator& processes) {
        const auto many = SumUp(processes, records);
        ASSERT_TRUE(many.ok()) << many.status();
        for (const auto& [shard, numbers] : *many) EXPECT_EQ(numbers, sums);
      });
  }
}

TEST(ShardTeam, EndsInAllProcessesWhereAShardFails) {
  const std::vector<int64_t> records = {2, 2, 2, 2};
  for (int size = 1; size <= 4; ++size)
    RunTogether(size, [&](const Communicator& processes) {
      const auto sums = SumUp(processes, records, /*fails=*/1);
      ASSERT_FALSE(sums.ok());
      const ShardRange own = ShardRange::Of(4, processes.rank(), size);
      EXPECT_EQ(sums.status().code(), own.begin <= 1 && own.end > 1
                                          ? absl::StatusCode::kInvalidArgument
                                          : absl::StatusCode::kUnavailable)
          << sums.status();
    });
}

TEST(ShardTeam, EndsInAllProcessesWhereAShardThrows) {
  for (int size = 1; size <= 3; ++size)
    RunTogether(size, [&](const Communicator& processes) {
      ShardTeam team(3, &processes);
      const ShardRange own = ShardRange::Of(3, processes.rank(), size);
      ShardTurns turns;
      turns.enter = turns.leave = [](int64_t) {};
      turns.run = [](int64_t shard, const World& world) -> absl::Status {
        if (shard == 1) throw std::bad_alloc();
        float number = 1;
        return world.all().AllReduce(Reduction::kSum, DType::kFloat32, 1,
                                     &number, &number);
      };
      const absl::Status ran = team.Run(
          std::vector<int64_t>(static_cast<size_t>(own.end - own.begin), 2),
          turns);
      EXPECT_EQ(ran.code(), own.begin <= 1 && own.end > 1
                                ? absl::StatusCode::kResourceExhausted
                                : absl::StatusCode::kUnavailable)
          << ran;
    });
}

TEST(ShardTeam, SaysThatShardsComeToDifferentExchanges) {
  for (int size = 1; size <= 4; ++size)
    RunTogether(size, [&](const Communicator& processes) {
      const auto sums =
          SumUp(processes, {2, 2, 2, 2}, /*fails=*/-1, /*leaves=*/2);
      ASSERT_FALSE(sums.ok());
      EXPECT_EQ(sums.status().code(), absl::StatusCode::kFailedPrecondition)
          << sums.status();
    });
}

}  // namespace test_dist_shard_team
}  // namespace pd
