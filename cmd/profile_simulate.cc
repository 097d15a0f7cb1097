// SPDX-License-Identifier: Apache-2.0
#include "cmd/profile_simulate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/link_option.h"
#include "cmd/common/processes.h"
#include "cmd/common/stop_signals.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/profile/measure_step.h"

namespace pd {
namespace {

constexpr int64_t kStepsUnlessGiven = 20;

// 1, 2, 4, ... and the number of nodes itself.
std::vector<StepPrediction> Predictions(const MeasuredStep& measured,
                                        const Simulation& simulation) {
  std::vector<StepPrediction> steps;
  for (int64_t n = 1; n < simulation.nodes; n *= 2)
    steps.push_back(
        PredictStep(measured.timeline, static_cast<int>(n), simulation.link));
  steps.push_back(
      PredictStep(measured.timeline, simulation.nodes, simulation.link));
  return steps;
}

double RecordsPerSecond(const MeasuredStep& measured,
                        const StepPrediction& step) {
  return static_cast<double>(measured.records) /
         static_cast<double>(measured.timeline.shards) *
         static_cast<double>(step.shards) / step.step;
}

double Hidden(const StepPrediction& step) {
  if (step.communication <= 0) return 0;
  return std::max(0.0, 1 - step.waiting / step.communication);
}

void PrintText(const MeasuredStep& measured,
               const std::vector<StepPrediction>& steps, std::ostream& out) {
  const StepTimeline& step = measured.timeline;
  out << absl::StrFormat(
      "measured in %d steps: a shard takes %.3f ms; buckets, from its begin:\n",
      measured.steps, step.shard * 1e3);
  for (const StepTimeline::Bucket& bucket : step.buckets)
    out << absl::StrFormat(
        "  %10.3f MB, full after %9.3f ms, updated in %.3f ms\n",
        static_cast<double>(bucket.numbers) * 4e-6, bucket.full * 1e3,
        bucket.update * 1e3);
  out << absl::StrFormat(
      "  the rest of a step takes %.3f ms\n\n%9s %9s %11s %14s "
      "%11s %12s %12s\n",
      step.rest * 1e3, "processes", "shards", "step (ms)", "exchange (ms)",
      "hidden (%)", "records/s", "efficiency");
  for (const StepPrediction& one : steps)
    out << absl::StrFormat("%9d %9d %11.3f %14.3f %11.1f %12.1f %12.3f\n",
                           one.processes, one.shards, one.step * 1e3,
                           one.communication * 1e3, Hidden(one) * 100,
                           RecordsPerSecond(measured, one), one.efficiency);
}

void PrintJson(const MeasuredStep& measured,
               const std::vector<StepPrediction>& steps, std::ostream& out) {
  using Json = nlohmann::ordered_json;
  const StepTimeline& step = measured.timeline;
  Json buckets = Json::array(), predicted = Json::array();
  for (const StepTimeline::Bucket& bucket : step.buckets)
    buckets.push_back({{"bytes", bucket.numbers * 4},
                       {"full_ms", bucket.full * 1e3},
                       {"update_ms", bucket.update * 1e3}});
  for (const StepPrediction& one : steps)
    predicted.push_back({{"processes", one.processes},
                         {"shards", one.shards},
                         {"step_ms", one.step * 1e3},
                         {"exchange_ms", one.communication * 1e3},
                         {"waiting_ms", one.waiting * 1e3},
                         {"records_per_s", RecordsPerSecond(measured, one)},
                         {"efficiency", one.efficiency}});
  const Json json = {{"measured",
                      {{"steps", measured.steps},
                       {"records", measured.records},
                       {"shards", step.shards},
                       {"shard_ms", step.shard * 1e3},
                       {"buckets", std::move(buckets)},
                       {"rest_ms", step.rest * 1e3}}},
                     {"predicted", std::move(predicted)}};
  out << DumpJson(json) << "\n";
}

}  // namespace

absl::Status RunSimulation(const ProfileOptions& options, std::ostream& out) {
  if (options.common.world != nullptr)
    return UsageError(
        Unimplemented("--simulate measures in one process; there are %d",
                      options.common.world->size()));
  PD_ASSIGN_OR_RETURN(const Simulation simulation,
                      ParseSimulation(options.simulate));
  PD_ASSIGN_OR_RETURN(
      const LoadedJob job,
      ReadJobFor(options.config, options.overrides, options.common.seed));
  const absl::Status needs =
      job.Require({"loss", "optimizer", "data.train", "distributed"},
                  "pd-profile --simulate");
  if (!needs.ok()) return UsageError(needs);
  PD_RETURN_IF_ERROR(FitJobToProcesses(options.common, job));
  PD_ASSIGN_OR_RETURN(auto registry, RegistryFor(options.common));
  MeasureOptions measuring;
  measuring.steps = options.steps.value_or(kStepsUnlessGiven);
  measuring.passes = MakePassOptions(options.passes);
  measuring.stop = StopRequested;
  InstallStopSignals();
  const auto measured = MeasureStep(*registry, job, measuring);
  if (!measured.ok()) return MarkJobErrors(job, measured.status());
  const auto steps = Predictions(*measured, simulation);
  if (options.common.json())
    PrintJson(*measured, steps, out);
  else
    PrintText(*measured, steps, out);
  if (StopRequested() != 0)
    return StoppedBySignal(StopRequested(),
                           "stopped; the prediction is from the steps until "
                           "then");
  return absl::OkStatus();
}

}  // namespace pd
