// SPDX-License-Identifier: Apache-2.0
// Sums of a trace that is worked out by hand, and PaddlePaddle's tables of a
// trace of its own, line by line.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/profile_trace.h"
#include "libcore/profile/advice.h"
#include "libcore/profile/compare_traces.h"
#include "libcore/profile/perf_summary.h"
#include "libcore/profile/roofline.h"
#include "libcore/profile/summary.h"
#include "libcore/profile/tables.h"
#include "tests/profile/small_trace.h"

namespace pd {
namespace test_summary {

using testing::SmallTrace;

const TimeItem* Find(const std::vector<TimeItem>& items,
                     const std::string& name) {
  for (const TimeItem& item : items)
    if (item.name == name) return &item;
  return nullptr;
}

TEST(Summary, AddsUpWhatAHandWould) {
  const ProfileSummary summary = Summarize(SmallTrace());
  EXPECT_EQ(summary.steps, 2);
  EXPECT_EQ(summary.step_time, 200000);
  const TimeItem* conv = Find(summary.operators.items, "conv2d");
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->calls, 2);
  EXPECT_EQ(conv->total, 70000);
  EXPECT_EQ(conv->max, 40000);
  EXPECT_EQ(conv->min, 30000);
  EXPECT_EQ(conv->flops, 800000);
  EXPECT_EQ(conv->bytes, 8000);
  EXPECT_EQ(Find(summary.model, "Dataloader")->total, 30000);
  EXPECT_EQ(Find(summary.model, "Forward")->calls, 2);
  EXPECT_EQ(Find(summary.model, "Forward")->total, 79000 + 78000);
  EXPECT_EQ(summary.coverage.ops, 70000 + 50000);
  EXPECT_EQ(summary.coverage.moves, 5000);
  EXPECT_EQ(summary.coverage.reading, 30000);
  EXPECT_EQ(summary.coverage.rest(), 45000);
  EXPECT_EQ(Find(summary.memory, "reorder:memory->memory")->calls, 1);
  EXPECT_EQ(Find(summary.user.items, "make batch")->total, 38000);
  EXPECT_EQ(summary.op_samples.at("conv2d -> conv1.tmp_0"),
            (std::vector<double>{40000, 30000}));
  EXPECT_EQ(summary.op_samples.at("reorder"), (std::vector<double>{5000, 0}));
  ASSERT_EQ(summary.user_by_thread.size(), 1u);
  EXPECT_EQ(summary.user_by_thread[0].thread, "loader 0 (78)");
}

// Where ops of different phases take turns, a step has one of each.
TEST(Summary, PhasesOfAStepAreOne) {
  ProfileTrace trace = SmallTrace();
  trace.sites.push_back(
      testing::Site(EventType::kOptimization, "Optimization"));
  trace.events.push_back({7, 0, 91000, 93000, 0});
  trace.events.push_back({7, 0, 95000, 96000, 0});
  SortEvents(&trace);
  const ProfileSummary summary = Summarize(trace);
  const TimeItem* update = Find(summary.model, "Optimization");
  EXPECT_EQ(update->calls, 1);
  EXPECT_EQ(update->total, 3000);
}

TEST(Summary, OverlapOfThreadsCountsOnce) {
  ProfileTrace trace = SmallTrace();
  // Another thread runs an op from 30 to 70; the main one from 20 to 60.
  trace.threads.push_back({79, "other", 0});
  trace.events.push_back({3, 2, 30000, 70000, 0});
  SortEvents(&trace);
  for (const KindTime& kind : Summarize(trace).kinds)
    if (kind.type == EventType::kOperator) {
      EXPECT_EQ(kind.calls, 5);
      EXPECT_EQ(kind.total, 65000 + 30000 + 30000);  // 20 to 85, and the others
    }
}

TEST(Summary, SortsByAllEightKeys) {
  std::vector<TimeItem> items(3);
  const auto fill = [](TimeItem* item, const char* name,
                       const std::vector<int64_t>& times) {
    item->name = name;
    for (const int64_t time : times) item->Add(time);
  };
  fill(&items[0], "a", {1, 1, 50});
  fill(&items[1], "b", {40});
  fill(&items[2], "c", {20, 21, 22});
  const auto order = [&](SortKey key) {
    std::vector<TimeItem> sorted = items;
    SortItems(key, &sorted);
    std::string names;
    for (const TimeItem& item : sorted) names += item.name;
    return names;
  };
  EXPECT_EQ(order(SortKey::kCpuTotal), "cab");
  EXPECT_EQ(order(SortKey::kCpuAvg), "bca");
  EXPECT_EQ(order(SortKey::kCpuMax), "abc");
  EXPECT_EQ(order(SortKey::kCpuMin), "acb");
  for (const SortKey key : {SortKey::kGpuTotal, SortKey::kGpuAvg,
                            SortKey::kGpuMax, SortKey::kGpuMin})
    EXPECT_EQ(order(key), "abc");
  EXPECT_EQ(SortKeyNames().size(), 8u);
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n');
}

// Lines of the table below `title`, to the next empty line.
std::vector<std::string> Table(const std::vector<std::string>& lines,
                               const std::string& title) {
  std::vector<std::string> table;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!absl::StrContains(lines[i], absl::StrCat("-", title, "-"))) continue;
    for (; i < lines.size() && !lines[i].empty(); ++i)
      table.push_back(lines[i]);
    break;
  }
  return table;
}

TEST(Tables, AreThoseOfPaddlePaddle) {
  const std::string folder = std::string(PD_TESTDATA) + "/profile/";
  const auto trace = ReadTrace(folder + "paddle_trace.pb.gz");
  ASSERT_TRUE(trace.ok()) << trace.status();
  std::ifstream file(folder + "paddle_tables.txt");
  const std::string golden((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
  const std::vector<std::string> want = Lines(golden);
  const std::vector<std::string> got =
      Lines(PaddleTables(*trace, Summarize(*trace), TableOptions()));
  for (const char* title :
       {"Device Summary", "Overview Summary", "Model Summary",
        "Memory Manipulation Summary", "UserDefined Summary"}) {
    EXPECT_GT(Table(want, title).size(), 5u) << title;
    EXPECT_EQ(Table(got, title), Table(want, title)) << title;
  }
  // PaddlePaddle 2.6 has a column of FLOPs more than 2.3, which we follow.
  constexpr size_t kFlops = 12;
  std::vector<std::string> rows = Table(want, "Operator Summary");
  const std::vector<std::string> ours = Table(got, "Operator Summary");
  ASSERT_EQ(ours.size(), rows.size());
  for (size_t i = 1; i < rows.size(); ++i) {
    if (absl::StrContains(rows[i], "Thread:")) continue;
    if (i > 1) rows[i].resize(rows[i].size() - kFlops);
    EXPECT_EQ(ours[i], rows[i]);
  }
}

TEST(Tables, ShowPartsThreadsAndUnits) {
  const ProfileTrace trace = SmallTrace();
  TableOptions options;
  options.op_detail = options.thread_sep = true;
  options.time_unit = "us";
  const std::string text = PaddleTables(trace, Summarize(trace), options);
  EXPECT_TRUE(absl::StrContains(
      text,
      "conv2d                                                2       "
      "70.00 / 35.00 / 40.00 / 30.00 / 58.33 "))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "\n  conv2d::onednn:blocked"));
  EXPECT_TRUE(absl::StrContains(text, "-Thread: main (77)-"));
  EXPECT_TRUE(absl::StrContains(text, "-Thread: loader 0 (78)-"));
  EXPECT_TRUE(absl::StrContains(text, "Time unit: us"));
  options.op_detail = options.thread_sep = false;
  const std::string plain = PaddleTables(trace, Summarize(trace), options);
  EXPECT_FALSE(absl::StrContains(plain, "conv2d::"));
  EXPECT_TRUE(absl::StrContains(plain, "-Thread: All threads merged-"));
  EXPECT_TRUE(absl::StrContains(ExplainText(trace),
                                "conv2d -> conv1.tmp_0: onednn:bl"));
  EXPECT_TRUE(absl::StrContains(ExplainText(trace),
                                "refused by cpu:batch_inner: the batch is 1"));
}

TEST(Tables, OpsThatAreBoundWhenTheyRunAreExplained) {
  ProfileTrace trace = SmallTrace();
  TraceSite site;
  site.type = EventType::kOperatorInner;
  site.name = "relu";
  EXPECT_FALSE(absl::StrContains(ExplainText(trace), "bound when they run"));
  site.output = "relu_7.tmp_0";
  site.implementation = "reference";
  site.refusals = {"cpu:any_layout: it is empty"};
  trace.sites.push_back(site);
  EXPECT_TRUE(absl::StrContains(
      ExplainText(trace),
      "bound when they run\n  relu -> relu_7.tmp_0: reference\n"
      "      refused by cpu:any_layout: it is empty\n"))
      << ExplainText(trace);
}

TEST(Tables, RooflineIsTheLowerOfTheTwoBounds) {
  const ProfileTrace trace = SmallTrace();
  // 800,000 operations and 8,000 bytes in 70 us: 11.43 GFLOP/s of 100.
  const std::string text =
      RooflineText(trace, Summarize(trace), TableOptions());
  EXPECT_TRUE(absl::StrContains(text, "11.43")) << text;
  EXPECT_TRUE(absl::StrContains(text, "100.0 GF/s    11.43"));
  const Roofline roofline = {100, 10, 0};
  EXPECT_DOUBLE_EQ(roofline.Attainable(2), 20);
  EXPECT_DOUBLE_EQ(roofline.Attainable(50), 100);
}

TEST(Perf, AveragesLieBetweenTheirExtremes) {
  std::vector<StepCost> steps;
  for (int i = 0; i < 20; ++i) steps.push_back({0.01, i < 10 ? 5.0 : 0.02, 64});
  steps[15] = {0.02, 0.04, 64};
  EXPECT_EQ(WarmUpSteps(20), 10u);
  EXPECT_EQ(WarmUpSteps(100), 10u);
  EXPECT_EQ(WarmUpSteps(5), 2u);
  EXPECT_EQ(WarmUpSteps(1), 0u);
  const PerfSummary perf = SummarizePerf(steps, WarmUpSteps(steps.size()));
  EXPECT_EQ(perf.steps, 10);
  EXPECT_NEAR(perf.batch.average, 0.022, 1e-12);
  EXPECT_NEAR(perf.batch.max, 0.04, 1e-12);
  EXPECT_NEAR(perf.batch.min, 0.02, 1e-12);
  EXPECT_NEAR(perf.batch.median, 0.02, 1e-12);
  EXPECT_NEAR(perf.ips.average, 10 / 0.22, 1e-9);
  EXPECT_NEAR(perf.ips.max, 50, 1e-9);
  EXPECT_NEAR(perf.ips.min, 25, 1e-9);
  EXPECT_NEAR(perf.reader_ratio, 0.11 / 0.22, 1e-12);
  EXPECT_NEAR(perf.samples_per_s, 640 / 0.22, 1e-6);
  const std::string text = PerfText(perf, true);
  EXPECT_TRUE(absl::StrContains(text,
                                "Reader Ratio: 50.000%\n"
                                "Time Unit: s, IPS Unit: steps/s\n"
                                "|                 |       avg       |"
                                "       max       |       min       |\n"
                                "|   reader_cost   |     0.01100     |"))
      << text;
  EXPECT_EQ(text.find('\n'), 100u);
}

TEST(Compare, ProbabilitiesAreThoseOfTheTest) {
  // By counting: 1 of 70 orders on either side; 19 of 462.
  EXPECT_NEAR(MannWhitney({1, 2, 3, 4}, {5, 6, 7, 8}), 2.0 / 70, 1e-12);
  EXPECT_NEAR(MannWhitney({1, 4, 2, 8, 5}, {3, 7, 9, 10, 11, 6}), 38.0 / 462,
              1e-12);
  EXPECT_EQ(MannWhitney({}, {1}), 1);
  EXPECT_EQ(MannWhitney({1, 1}, {1, 1}), 1);
  // scipy.stats.mannwhitneyu(method='asymptotic').
  std::vector<double> a, b;
  for (int i = 0; i < 30; ++i) a.push_back(i % 7);
  for (int i = 0; i < 25; ++i) b.push_back((i * 3) % 11);
  EXPECT_NEAR(MannWhitney(a, b), 0.02582288432446376, 1e-9);
  a.clear();
  b.clear();
  for (int i = 0; i < 25; ++i) a.push_back(100 + i * 1.37);
  for (int i = 0; i < 22; ++i) b.push_back(110 + i * 1.31);
  EXPECT_NEAR(MannWhitney(a, b), 0.018479487187814194, 1e-9);
}

TEST(Compare, FindsTheOpThatChanged) {
  ProfileSummary before, after;
  for (int i = 0; i < 8; ++i) {
    before.step_samples.push_back(100 + i);
    after.step_samples.push_back(120 + i);
    before.op_samples["conv"].push_back(50 + i);
    after.op_samples["conv"].push_back(70 + i);
    before.op_samples["relu"].push_back(10 + i % 3);
    after.op_samples["relu"].push_back(10 + (i + 1) % 3);
    before.op_samples["gone"].push_back(1);
    after.op_samples["new"].push_back(2);
  }
  const TraceComparison comparison = CompareTraces(before, after);
  EXPECT_TRUE(comparison.enough);
  EXPECT_NEAR(comparison.step.change(), 20 / 103.5, 1e-12);
  EXPECT_EQ(comparison.step.mark(), "***");
  ASSERT_EQ(comparison.ops.size(), 4u);
  EXPECT_EQ(comparison.ops[0].name, "conv");
  EXPECT_EQ(comparison.ops[0].mark(), "***");
  for (const OpComparison& op : comparison.ops) {
    if (op.name == "relu") EXPECT_EQ(op.mark(), "");
    EXPECT_EQ(op.in_both, op.name != "gone" && op.name != "new");
  }
  before.step_samples.resize(3);
  after.step_samples.resize(3);
  EXPECT_FALSE(CompareTraces(before, after).enough);
}

TEST(Advice, SaysWhatTheNumbersSay) {
  ProfileTrace trace = SmallTrace();
  std::string text = AdviceText(Advise(trace, Summarize(trace)));
  // 30 of 200 us of waiting, 45 of nothing, half a core of two.
  EXPECT_TRUE(absl::StrContains(text, "steps wait for data 15.0 %")) << text;
  EXPECT_TRUE(absl::StrContains(text, "0.50 of 2 cores"));
  EXPECT_TRUE(absl::StrContains(text, "22.5 % of the steps is covered"));
  EXPECT_TRUE(absl::StrContains(text, "5 events were lost"));
  EXPECT_TRUE(absl::StrContains(text, "'conv2d' takes 35.0 %"));
  EXPECT_FALSE(absl::StrContains(text, "reorders"));
  trace.sites[4].type = EventType::kMemcpy;
  text = AdviceText(Advise(trace, Summarize(trace)));
  EXPECT_TRUE(absl::StrContains(text, "reorders and copies a step")) << text;
}

}  // namespace test_summary
}  // namespace pd
