// SPDX-License-Identifier: Apache-2.0
// Communication and computation of traces that are worked out by hand.
#include "libcore/profile/distribution.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "formats/chrome_trace.h"
#include "formats/paddle_trace.h"
#include "libcore/profile/summary.h"
#include "libcore/profile/tables.h"
#include "tests/profile/small_trace.h"

namespace pd {
namespace test_distribution {

// In us: steps 0 to 100 and 120 to 200; operators 10 to 60, 130 to 180; a
// bucket travels 40 to 80, another 90 to 140, which is outside of steps between
// 100 and 120; the main row waits 70 to 80.
ProfileTrace TraceOf(uint64_t process, int64_t start_unix_ns) {
  ProfileTrace trace;
  trace.producer = "pdkit";
  trace.process = process;
  trace.start_unix_ns = start_unix_ns;
  trace.threads = {{process, "main", 0}, {process + 1, "communication", 2}};
  trace.sites = {testing::Site(EventType::kProfileStep, "ProfileStep"),
                 testing::Site(EventType::kOperator, "conv2d"),
                 testing::Site(EventType::kCommunication, "allreduce bucket 0"),
                 testing::Site(EventType::kCommunication, "wait")};
  const auto add = [&](uint32_t site, uint32_t thread, int64_t from, int64_t to,
                       int64_t id) {
    trace.events.push_back({site, thread, from * 1000, to * 1000, id});
  };
  add(0, 0, 0, 100, 3);
  add(1, 0, 10, 60, 0);
  add(3, 0, 70, 80, 0);
  add(0, 0, 120, 200, 4);
  add(1, 0, 130, 180, 7);
  add(2, 1, 40, 80, 0);
  add(2, 1, 90, 140, 0);
  SortEvents(&trace);
  return trace;
}

void ExpectTimes(const Distribution& times) {
  EXPECT_EQ(times.steps, 180000);
  EXPECT_EQ(times.communication, 40000 + 10000 + 20000);
  EXPECT_EQ(times.computation, 100000);
  EXPECT_EQ(times.overlap, 20000 + 10000);
}

TEST(Distribution, OfOneProcess) {
  const auto all = DistributionsOf(TraceOf(50, 1000));
  ASSERT_EQ(all.size(), 1u);
  ExpectTimes(all[0]);
}

TEST(Distribution, MergedTracesKeepTheirTimes) {
  // Rank 1 began 5 us before rank 0.
  const ProfileTrace merged = MergeRanks(
      {TraceOf(50, 1000000), TraceOf(50, 1000000 - 5000)}, {"a", "b"});
  ASSERT_TRUE(CheckTrace(merged).ok()) << CheckTrace(merged);
  EXPECT_EQ(merged.start_unix_ns, 1000000 - 5000);
  ASSERT_EQ(merged.threads.size(), 4u);
  EXPECT_EQ(merged.threads[0].name, "rank 0: main");
  EXPECT_EQ(merged.threads[3].name, "rank 1: communication");
  EXPECT_NE(merged.threads[0].id, merged.threads[2].id);
  EXPECT_EQ(merged.lost(), 4u);
  EXPECT_EQ(merged.events.front().begin_ns, 5000);
  const ProfileTrace second = TraceOfRank(merged, 1);
  EXPECT_EQ(second.threads.size(), 2u);
  EXPECT_EQ(second.events.size(), 7u);
  EXPECT_EQ(second.events.front().begin_ns, 0);
  // A number that ties events of one rank together ties none of two.
  EXPECT_NE(TraceOfRank(merged, 0).events[4].id, second.events[4].id);

  // Both files keep the ranks.
  for (const bool chrome : {false, true}) {
    const auto read = chrome ? ParseChromeTrace(ChromeTraceText(merged))
                             : ParsePaddleTrace(PaddleTraceBytes(merged));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(RanksOf(*read), 2);
    const ProfileSummary summary = Summarize(*read);
    ASSERT_EQ(summary.ranks.size(), 2u);
    for (const Distribution& rank : summary.ranks) ExpectTimes(rank);
    EXPECT_EQ(summary.ranks[1].host, "b");
    // The other tables are rank 0's.
    EXPECT_EQ(summary.steps, 2);
    EXPECT_EQ(summary.step_time, 180000);
    EXPECT_EQ(summary.coverage.waiting, 10000);
    EXPECT_EQ(summary.coverage.rest(), 70000);
  }
}

TEST(Distribution, BelievesNoMoreRanksThanRows) {
  ProfileTrace merged =
      MergeRanks({TraceOf(50, 0), TraceOf(60, 0)}, {"a", "b"});
  for (auto& [name, value] : merged.facts)
    if (name == "ranks") value = "2000000000";
  merged.threads[3].name = "rank -7: communication";
  EXPECT_EQ(RanksOf(merged), 4);
  const auto all = DistributionsOf(merged);
  ASSERT_EQ(all.size(), 4u);
  ExpectTimes(all[0]);
  EXPECT_EQ(all[1].computation, 100000);
  EXPECT_EQ(all[1].communication, 10000);
  EXPECT_EQ(all[3].steps, 0);
}

TEST(Distribution, PrintsTimesThatAddUp) {
  const ProfileTrace merged =
      MergeRanks({TraceOf(50, 0), TraceOf(60, 0)}, {"a", "b"});
  const ProfileSummary summary = Summarize(merged);
  TableOptions options;
  options.time_unit = "us";
  const std::string tables =
      PaddleTables(TraceOfRank(merged, 0), summary, options);
  for (const char* row :
       {"ProfileStep                180.00                     100.00",
        "  Communication            70.00                      38.89",
        "  Computation              100.00                     55.56",
        "  Overlap                  30.00                      16.67"})
    EXPECT_TRUE(absl::StrContains(tables, row)) << row << "\n" << tables;
  // 180 - (70 + 100 - 30) = 40 are neither; 30 of 70 are hidden.
  const std::string ranks = RanksText(summary, "us");
  EXPECT_TRUE(absl::StrContains(ranks, "40.00")) << ranks;
  EXPECT_TRUE(absl::StrContains(ranks, "42.86")) << ranks;
  EXPECT_EQ(RanksText(Summarize(TraceOf(50, 0)), "us"), "");
}

}  // namespace test_distribution
}  // namespace pd
