// SPDX-License-Identifier: Apache-2.0
// Training steps of a job on the fake driver under the profiler: every kernel,
// copy and clear that it did is in the trace, tied to the call that started it,
// inside the operator that made the call.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/chrome_trace.h"
#include "formats/paddle_trace.h"
#include "libcore/base/log.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/kernels/cuda/place.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/profile/profile_run.h"
#include "libcore/profile/profiler.h"
#include "libcore/profile/summary.h"
#include "libcore/profile/tables.h"
#include "tests/device/fake_driver.h"

namespace pd {
namespace test_kernel_trace {

class KernelTrace : public ::testing::Test {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kWarning);
    unsetenv("FAKE_CUDA");
    ASSERT_TRUE(UseFakeDriver().ok());
    ASSERT_TRUE(Gpu().ok()) << Gpu().status();
  }
  static const absl::StatusOr<std::shared_ptr<const DevicePlace>>& Gpu() {
    static const auto* const kPlace =
        new auto(MakePlace(0, FakeDriverImages()));
    return *kPlace;
  }

  // Steps 1 and 2, after the first.
  static ProfileTrace Profile() {
    OpRegistry registry;
    EXPECT_TRUE(RegisterAllOps(&registry).ok());
    EXPECT_TRUE(AttachAllKernels(&registry).ok());
    registry.SetDevice(*Gpu());
    const auto job =
        ReadJob(std::string(PD_TESTDATA) + "/jobs/lenet_mnist.pbtxt",
                {"data.train.batch_size=2"});
    EXPECT_TRUE(job.ok()) << job.status();
    ProfileTrace taken;
    ProfilerOptions options;
    options.scheduler = *Scheduler::Parse("1,3");
    options.on_trace_ready = [&](ProfileTrace trace) {
      EXPECT_TRUE(CheckTrace(trace).ok()) << CheckTrace(trace);
      taken = std::move(trace);
      return absl::OkStatus();
    };
    Profiler profiler(std::move(options));
    ProfileRunOptions run;
    run.steps = 4;
    const auto end = ProfileTraining(registry, *job, run, &profiler);
    EXPECT_TRUE(end.ok()) << end.status();
    return taken;
  }
};

bool OfStream(const ProfileTrace& trace, const TraceEvent& event) {
  return absl::StartsWith(trace.threads[event.thread].name,
                          "gpu:0 Fake GPU 0 stream 13");
}

// The operator or copy around each call, by the call's number; each once.
std::map<int64_t, const TraceEvent*> Callers(const ProfileTrace& trace) {
  std::map<int64_t, const TraceEvent*> callers;
  const TraceEvent* step = nullptr;
  for (const TraceEvent& event : trace.events) {
    const TraceSite& site = trace.SiteOf(event);
    if (site.index.has_value()) step = &event;
    if (site.type != EventType::kCudaRuntime || event.id == 0) continue;
    EXPECT_NE(step, nullptr);
    EXPECT_EQ(step->thread, event.thread);
    EXPECT_LE(step->begin_ns, event.begin_ns);
    EXPECT_LE(event.end_ns, step->end_ns) << site.name;
    EXPECT_TRUE(callers.emplace(event.id, step).second);
  }
  return callers;
}

TEST_F(KernelTrace, EveryPieceOfWorkIsTiedToItsCall) {
  const ProfileTrace trace = Profile();
  EXPECT_TRUE(absl::StartsWith(trace.Fact("CUPTI"), "130001 of '"));
  const auto callers = Callers(trace);
  std::map<std::string, int> calls;
  for (const TraceEvent& event : trace.events)
    if (trace.SiteOf(event).type == EventType::kCudaRuntime)
      ++calls[trace.SiteOf(event).name];
  EXPECT_GT(calls["cuLaunchKernel"], 20);
  EXPECT_GT(calls["cudaLaunchKernelExC"], 20);
  EXPECT_GT(calls["cuMemcpyHtoDAsync"], 1);
  std::set<int64_t> seen;
  size_t outside = 0;  // the rate and complaints, before and after the ops
  std::map<std::string, std::string> outputs;  // of kernels
  std::map<EventType, int> kinds;
  for (const TraceEvent& event : trace.events) {
    if (!OfStream(trace, event)) continue;
    const TraceSite& site = trace.SiteOf(event);
    ++kinds[site.type];
    EXPECT_TRUE(seen.insert(event.id).second);
    if (callers.count(event.id) == 0) {
      ++outside;
      EXPECT_NE(site.type, EventType::kKernel) << site.name;
      EXPECT_EQ(site.output, "");
      continue;
    }
    const TraceEvent& caller = *callers.at(event.id);
    EXPECT_GE(event.begin_ns, caller.begin_ns);
    EXPECT_EQ(site.output, trace.SiteOf(caller).output);
    EXPECT_EQ(site.layer, trace.SiteOf(caller).layer);
    EXPECT_EQ(site.launch.has_value(), site.type == EventType::kKernel);
    if (site.launch.has_value()) {
      EXPECT_GT(site.launch->grid[0], 0);
      EXPECT_GT(site.launch->block[0], 0);
      EXPECT_EQ(site.launch->registers, 40);
      EXPECT_EQ(site.launch->shared_bytes, 1040);
      outputs[trace.SiteOf(caller).name] = site.name;
    } else {
      EXPECT_GT(site.bytes_written, 0);
    }
  }
  EXPECT_EQ(seen.size() - outside, callers.size());  // each has done its work
  EXPECT_LE(outside, 6u);
  EXPECT_EQ(outputs["conv2d"], "library(float const*)");
  EXPECT_EQ(outputs["pool2d"].substr(0, 4), "pool");
  EXPECT_GT(kinds[EventType::kKernel], 40);
  EXPECT_GT(kinds[EventType::kMemcpy], 1);
}

// An op's time on the GPU is the sum of its kernels' times.
TEST_F(KernelTrace, TheTablesAddUpTheKernels) {
  const ProfileTrace trace = Profile();
  const auto callers = Callers(trace);
  std::map<std::string, int64_t> by_op, by_kernel;
  for (const TraceEvent& event : trace.events) {
    if (!OfStream(trace, event)) continue;
    const auto caller = callers.find(event.id);
    if (caller != callers.end())
      by_op[trace.SiteOf(*caller->second).name] += event.duration();
    by_kernel[trace.SiteOf(event).name] += event.duration();
  }
  const ProfileSummary summary = Summarize(trace);
  int64_t ops = 0;
  for (const TimeItem& item : summary.operators.items) {
    if (by_op.count(item.name) == 0) continue;
    ++ops;
    EXPECT_EQ(item.gpu.total, by_op[item.name]) << item.name;
    EXPECT_EQ(item.gpu.calls, item.calls) << item.name;
    // --op-detail names the kernels.
    int64_t inner = 0;
    for (const TimeItem& part : item.inner)
      if (by_kernel.count(part.name) > 0) inner += part.gpu.total;
    EXPECT_EQ(inner, item.gpu.total) << item.name;
  }
  EXPECT_GT(ops, 10);
  int kernels = 0;
  for (const TimeItem& item : summary.kernels) {
    if (item.gpu.calls == 0) continue;
    ++kernels;
    EXPECT_EQ(item.gpu.total, by_kernel.at(item.name)) << item.name;
  }
  EXPECT_GT(kernels, 8);
  bool copies = false;
  for (const TimeItem& item : summary.memory)
    copies = copies || (item.name == "MEMCPY_HtoD" &&
                        item.gpu.total == by_kernel.at(item.name));
  EXPECT_TRUE(copies);
  const std::string tables = PaddleTables(trace, summary, TableOptions());
  EXPECT_TRUE(absl::StrContains(tables, "\nlibrary(float const*) "));
}

TEST_F(KernelTrace, ChromeHasArrowsAndLaunches) {
  const ProfileTrace trace = Profile();
  const size_t tied = Callers(trace).size();
  const auto json = nlohmann::json::parse(ChromeTraceText(trace));
  std::map<int64_t, std::string> phases;
  size_t launched = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "s" || event.at("ph") == "f")
      phases[event.at("id").get<int64_t>()] +=
          event.at("ph").get<std::string>();
    if (event.at("ph") != "X" || !event.at("args").contains("grid")) continue;
    ++launched;
    EXPECT_EQ(event.at("cat"), "Kernel");
    EXPECT_EQ(event.at("args").at("grid").size(), 3u);
    EXPECT_EQ(event.at("args").at("block").at(1), 1);
    EXPECT_EQ(event.at("args").at("registers per thread"), 40);
    EXPECT_EQ(event.at("args").at("shared memory"), 1040);
  }
  size_t arrows = 0;
  for (const auto& [id, text] : phases) arrows += text == "sf";
  EXPECT_GT(tied, 60u);
  EXPECT_GE(arrows, tied);
  EXPECT_GT(launched, 40u);
  // Both files keep all of it.
  for (const bool chrome : {true, false}) {
    const auto read = chrome ? ParseChromeTrace(ChromeTraceText(trace))
                             : ParsePaddleTrace(PaddleTraceBytes(trace));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(ChromeTraceText(*read), ChromeTraceText(trace));
  }
}

// On a stream whose next kernel may begin before the last one has ended.
TEST_F(KernelTrace, KernelsThatOverlapStandBesideEachOther) {
  setenv("FAKE_CUDA", "late=3000000", 1);
  const ProfileTrace trace = Profile();
  std::set<std::string> rows;
  for (const TraceEvent& event : trace.events)
    if (OfStream(trace, event)) rows.insert(trace.threads[event.thread].name);
  EXPECT_GT(rows.size(), 1u);
  EXPECT_EQ(rows.count("gpu:0 Fake GPU 0 stream 13 (2)"), 1u);
  Callers(trace);
}

// Where CUPTI does not record, the time between events around the operators.
TEST_F(KernelTrace, ARefusalLeavesTheOperators) {
  setenv("FAKE_CUDA", "cupti=35", 1);
  const ProfileTrace trace = Profile();
  EXPECT_TRUE(absl::StrContains(trace.Fact("CUPTI"),
                                "unavailable: cuptiActivityEnable of CUPTI"));
  std::set<std::string> kernels;
  for (const TraceEvent& event : trace.events) {
    EXPECT_FALSE(OfStream(trace, event));
    if (trace.SiteOf(event).type == EventType::kKernel)
      kernels.insert(absl::StrCat(trace.threads[event.thread].name, ": ",
                                  trace.SiteOf(event).implementation, " of ",
                                  trace.SiteOf(event).name));
  }
  EXPECT_EQ(kernels.count("gpu:0 Fake GPU 0: cudnn of conv2d"), 1u);
}

}  // namespace test_kernel_trace
}  // namespace pd
