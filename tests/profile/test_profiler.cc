// SPDX-License-Identifier: Apache-2.0
// A real job under the profiler: which steps are recorded, and that what is
// recorded is what the plan runs.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/nn/job.h"
#include "libcore/profile/profile_run.h"
#include "libcore/profile/profiler.h"
#include "libcore/profile/summary.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_profiler {

struct Outcome {
  std::vector<ProfileTrace> traces;
  ProfileRunEnd end;
  std::vector<StepCost> costs;
};

Outcome Profile(const std::string& scheduler, int64_t steps,
                const std::vector<std::string>& overrides = {}) {
  Outcome outcome;
  const auto job =
      ReadJob(std::string(PD_TESTDATA) + "/jobs/lenet_mnist.pbtxt", overrides);
  EXPECT_TRUE(job.ok()) << job.status();
  ProfilerOptions options;
  if (!scheduler.empty()) options.scheduler = *Scheduler::Parse(scheduler);
  options.process_name = "test";
  options.on_trace_ready = [&](ProfileTrace trace) {
    EXPECT_TRUE(CheckTrace(trace).ok()) << CheckTrace(trace);
    outcome.traces.push_back(std::move(trace));
    return absl::OkStatus();
  };
  Profiler profiler(std::move(options));
  ProfileRunOptions run;
  run.steps = steps;
  const auto end = ProfileTraining(Registry(), *job, run, &profiler);
  EXPECT_TRUE(end.ok()) << end.status();
  if (end.ok()) outcome.end = *end;
  outcome.costs = profiler.Costs();
  return outcome;
}

TEST(Profiler, RecordsTheStepsOfItsWindow) {
  const Outcome outcome = Profile("3,6", 8);
  ASSERT_EQ(outcome.traces.size(), 1u);
  const ProfileTrace& trace = outcome.traces[0];
  EXPECT_EQ(trace.first_step, 3);
  EXPECT_EQ(trace.lost(), 0u);
  EXPECT_EQ(trace.Fact("records"), "192");
  std::vector<int64_t> steps;
  std::map<int64_t, int> ops;  // place in the plan -> times
  for (const TraceEvent& event : trace.events) {
    const TraceSite& site = trace.SiteOf(event);
    if (site.type == EventType::kProfileStep) steps.push_back(event.id);
    if (site.index.has_value()) ++ops[*site.index];
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{3, 4, 5}));
  // Every step of the plan, each once in each of the three.
  EXPECT_GT(ops.size(), 20u);
  EXPECT_EQ(ops.rbegin()->first, static_cast<int64_t>(ops.size()) - 1);
  for (const auto& [index, times] : ops) EXPECT_EQ(times, 3) << index;
  EXPECT_EQ(outcome.end.steps, 8);
  EXPECT_EQ(outcome.costs.size(), 8u);
}

TEST(Profiler, KnowsWorkMemoryAndImplementations) {
  const Outcome outcome = Profile("1,3", 3);
  ASSERT_EQ(outcome.traces.size(), 1u);
  const ProfileTrace& trace = outcome.traces[0];
  bool found = false;
  int64_t most = 0;
  for (const TraceSite& site : trace.sites) {
    most = std::max(most, site.alive_bytes);
    if (site.index.has_value()) EXPECT_NE(site.implementation, "") << site.name;
    if (site.layer != "/conv1/" ||
        site.name.find("grad") != std::string::npos ||
        site.type != EventType::kOperator || site.flops == 0)
      continue;
    found = true;
    // 64 pictures, 6 channels of 28 x 28, filters of 1 x 3 x 3.
    EXPECT_EQ(site.flops, 2 * 64 * 6 * 28 * 28 * 9);
    EXPECT_EQ(site.bytes_read, 4 * (64 * 28 * 28 + 6 * 9 + 6));
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(trace.peak_bytes, most);
  int64_t sum = 0;
  for (const TraceTensor& tensor : trace.peak) sum += tensor.bytes;
  EXPECT_EQ(sum, most);
  const ProfileSummary summary = Summarize(trace);
  EXPECT_EQ(summary.steps, 2);
  const Coverage& coverage = summary.coverage;
  EXPECT_EQ(coverage.reading + coverage.ops + coverage.moves + coverage.rest(),
            coverage.steps);
  EXPECT_GE(coverage.rest(), 0);
  std::vector<std::string> model;
  for (const TimeItem& item : summary.model) {
    model.push_back(item.name);
    EXPECT_EQ(item.calls, 2) << item.name;
  }
  EXPECT_EQ(model,
            (std::vector<std::string>{"ProfileStep", "Dataloader", "Forward",
                                      "Backward", "Optimization"}));
}

TEST(Profiler, HandsOutATraceForEachCycle) {
  const Outcome outcome = Profile("closed=1,ready=1,record=2,repeat=2", 20);
  ASSERT_EQ(outcome.traces.size(), 2u);
  EXPECT_EQ(outcome.traces[0].first_step, 2);
  EXPECT_EQ(outcome.traces[1].first_step, 6);
  for (const ProfileTrace& trace : outcome.traces)
    EXPECT_EQ(Summarize(trace).steps, 2);
}

TEST(Profiler, WhatEndsEarlyIsATraceToo) {
  const Outcome outcome = Profile("2,10", 10, {"train.steps=4"});
  EXPECT_EQ(outcome.end.steps, 4);
  EXPECT_EQ(outcome.end.why, "train.steps is 4");
  ASSERT_EQ(outcome.traces.size(), 1u);
  EXPECT_EQ(Summarize(outcome.traces[0]).steps, 2);
  EXPECT_TRUE(Profile("6,8", 10, {"train.steps=4"}).traces.empty());
}

TEST(Profiler, TakesTimesAlone) {
  const Outcome outcome = Profile("", 6);
  EXPECT_TRUE(outcome.traces.empty());
  ASSERT_EQ(outcome.costs.size(), 6u);
  for (const StepCost& cost : outcome.costs) {
    EXPECT_EQ(cost.records, 64);
    EXPECT_GE(cost.reader, 0);
    EXPECT_GE(cost.batch, cost.reader);
  }
}

}  // namespace test_profiler
}  // namespace pd
