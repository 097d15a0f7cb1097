// SPDX-License-Identifier: Apache-2.0
#include "cmd/profile_run.h"

#include <algorithm>
#include <ostream>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/plugin_option.h"
#include "cmd/common/processes.h"
#include "cmd/common/stop_signals.h"
#include "cmd/common/text.h"
#include "cmd/common/version.h"
#include "cmd/profile_simulate.h"
#include "cmd/run_network.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_target.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/profile/advice.h"
#include "libcore/profile/compare_traces.h"
#include "libcore/profile/distribution.h"
#include "libcore/profile/perf_summary.h"
#include "libcore/profile/profile_run.h"
#include "libcore/profile/roofline.h"
#include "libcore/profile/tables.h"
#include "libcore/report/profile_report.h"

namespace pd {
namespace {

constexpr int64_t kStepsWithoutEnd = 100;

TableOptions TablesFor(const ProfileOptions& options) {
  TableOptions tables;
  const auto& names = SortKeyNames();
  tables.sorted_by = static_cast<SortKey>(
      std::find(names.begin(), names.end(), options.sorted_by) - names.begin());
  tables.op_detail = options.op_detail;
  tables.thread_sep = options.thread_sep;
  tables.time_unit = options.time_unit;
  return tables;
}

void PrintTables(const ProfileOptions& options, const ProfileTrace& trace,
                 const ProfileSummary& summary, std::ostream& out) {
  const TableOptions tables = TablesFor(options);
  out << PaddleTables(trace, summary, tables)
      << RanksText(summary, tables.time_unit)
      << CoverageText(summary, tables.time_unit)
      << RooflineText(trace, summary, tables) << MemoryText(trace)
      << CountersText(trace, summary);
  if (options.explain) out << ExplainText(trace);
  const bool reader =
      std::any_of(summary.model.begin(), summary.model.end(),
                  [](const TimeItem& i) { return i.name == "Dataloader"; });
  out << PerfText(PerfOfTrace(trace, summary), reader) << "\n\n"
      << AdviceText(Advise(trace, summary));
  if (trace.lost() > 0)
    out << trace.lost() << " events were lost: the oldest ones\n";
}

// "trace.json.gz" -> "trace-2.json.gz".
std::string NameOfCycle(const std::string& path, int64_t cycle) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  size_t dot = path.size();
  absl::string_view rest = absl::string_view(path).substr(name);
  if (absl::ConsumeSuffix(&rest, ".gz")) dot -= 3;
  const size_t ending = rest.rfind('.');
  if (ending != absl::string_view::npos && ending > 0) dot = name + ending;
  return absl::StrCat(path.substr(0, dot), "-", cycle, path.substr(dot));
}

// Takes the traces of a run: writes them, and prints their tables.
class Output {
 public:
  Output(const ProfileOptions& options, bool several, std::ostream& out)
      : options_(options), several_(several), out_(out) {}

  absl::Status Take(const ProfileTrace& trace) {
    ++cycles_;
    const auto path = [&](const std::string& base) {
      return several_ ? NameOfCycle(base, cycles_) : base;
    };
    PD_RETURN_IF_ERROR(CheckTrace(trace));
    if (!options_.trace.empty()) {
      PD_RETURN_IF_ERROR(WriteTrace(path(options_.trace), trace));
      LogInfo("wrote '%s'", path(options_.trace));
    }
    const ProfileSummary summary = Summarize(trace);
    if (!options_.html.empty()) {
      PD_RETURN_IF_ERROR(
          WriteProfileReport(path(options_.html), trace, summary));
      LogInfo("wrote '%s'", path(options_.html));
    }
    // The tables are about one process.
    const ProfileTrace own = TraceOfRank(trace, 0);
    if (options_.common.json()) {
      windows_.push_back(ProfileJson(own, summary));
      return absl::OkStatus();
    }
    if (several_)
      out_ << "Cycle " << cycles_ << ": steps " << trace.first_step << " to "
           << trace.first_step + summary.steps - 1 << "\n\n";
    PrintTables(options_, own, summary, out_);
    return absl::OkStatus();
  }

  // The cost of steps between the windows shows that of recording; in JSON
  // the one object of all windows.
  void Finish(const PerfSummary& unrecorded) {
    if (options_.common.json()) {
      out_ << "{\"windows\":[" << absl::StrJoin(windows_, ",") << "]";
      if (unrecorded.steps > 0)
        out_ << ",\"unrecorded\":" << PerfJson(unrecorded);
      out_ << "}\n";
    } else if (unrecorded.steps > 0) {
      out_ << absl::StrFormat(
          "%d steps that were not recorded: median %.5f s\n", unrecorded.steps,
          unrecorded.batch.median);
    }
  }

 private:
  const ProfileOptions& options_;
  const bool several_;
  std::ostream& out_;
  int64_t cycles_ = 0;
  std::vector<std::string> windows_;
};

// The steps between windows, once the first ten are over.
PerfSummary Unrecorded(const Profiler& profiler) {
  const std::vector<StepCost> all = profiler.Costs();
  std::vector<StepCost> costs;
  for (size_t i = WarmUpSteps(SIZE_MAX); i < all.size(); ++i)
    if (!all[i].recorded) costs.push_back(all[i]);
  return SummarizePerf(costs, 0);
}

// Before any work: a path that cannot be written would lose it all.
absl::Status CheckOutputs(const ProfileOptions& options, bool several) {
  for (const std::string* path : {&options.trace, &options.html})
    if (several && !path->empty() && IsDirectTarget(*path))
      return CommandLineError(
          absl::StrCat("'", *path, "' takes one file, and --scheduler ",
                       options.scheduler, " may give several: say repeat=1"));
  for (const std::string* path : {&options.trace, &options.html})
    if (!path->empty()) PD_RETURN_IF_ERROR(CheckWritable(*path));
  return absl::OkStatus();
}

// Inputs and outputs of a model that does not name them: inputs are the fed
// variables, outputs the variables that no op reads.
absl::Status NameInputsAndOutputs(const NamedArrays& feeds,
                                  LoadedModel* model) {
  if (model->kind == LoadedModel::Kind::kInference) return absl::OkStatus();
  std::set<std::string> read;
  for (const OpDesc& op : model->program.global().ops)
    for (const auto& [slot, names] : op.inputs)
      read.insert(names.begin(), names.end());
  model->feeds.clear();
  model->fetches.clear();
  for (const auto& [name, array] : feeds)
    if (model->program.global().FindVar(name) != nullptr)
      model->feeds.push_back(name);
  for (const OpDesc& op : model->program.global().ops)
    for (const auto& [slot, names] : op.outputs)
      for (const std::string& name : names) {
        const VarDesc* var = model->program.global().FindVar(name);
        if (read.count(name) == 0 && var != nullptr && !var->persistable)
          model->fetches.push_back(name);
      }
  if (model->feeds.empty())
    return InvalidArgument("no array of the feed is a variable of '%s'",
                           model->path);
  return absl::OkStatus();
}

absl::StatusOr<ProfileRunEnd> RunModel(const ProfileOptions& options,
                                       const OpRegistry& registry,
                                       const ProfileRunOptions& run,
                                       Profiler* profiler) {
  PD_ASSIGN_OR_RETURN(NamedArrays feeds, ReadFeeds(options.feed, options.lod));
  LoadOptions reading;
  reading.feeds = &feeds;
  reading.alignment = Alignment::kAny;
  reading.params = options.params_file;
  PD_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(options.model, reading));
  PD_RETURN_IF_ERROR(UseNetworkOfJob(registry, options.config, &model));
  PD_RETURN_IF_ERROR(NameInputsAndOutputs(feeds, &model));
  PD_RETURN_IF_ERROR(FitFeedsOf(model, model.fetches, options.feed, &feeds));
  auto end = ProfileInference(registry, model, feeds, run, profiler);
  if (!end.ok()) return OfModel(model, end.status());
  return end;
}

absl::StatusOr<ProfileRunEnd> RunJob(const ProfileOptions& options,
                                     const OpRegistry& registry,
                                     const ProfileRunOptions& run,
                                     Profiler* profiler) {
  PD_ASSIGN_OR_RETURN(
      const LoadedJob job,
      ReadJobFor(options.config, options.overrides, options.common.seed));
  const absl::Status needs =
      job.Require({"loss", job.proto().phase_size() > 0 ? "phase" : "optimizer",
                   "data.train"},
                  "pd-profile");
  if (!needs.ok()) return UsageError(needs);
  PD_RETURN_IF_ERROR(FitJobToProcesses(options.common, job));
  auto end = ProfileTraining(registry, job, run, profiler);
  if (!end.ok()) return MarkJobErrors(job, end.status());
  return end;
}

void PrintPerf(const ProfileOptions& options, const Profiler& profiler,
               std::ostream& out) {
  const std::vector<StepCost> costs = profiler.Costs();
  const PerfSummary perf = SummarizePerf(costs, WarmUpSteps(costs.size()));
  if (options.common.json())
    out << "{\"steps_run\":" << costs.size() << ",\"perf\":" << PerfJson(perf)
        << "}\n";
  else
    out << PerfText(perf, options.model.empty());
}

// The status at the end: too few steps, nothing recorded, or a signal.
absl::Status JudgeEnd(const ProfileOptions& options, const Profiler& profiler,
                      const std::optional<Scheduler>& scheduler,
                      const ProfileRunEnd& end) {
  const std::string why =
      end.why.empty() ? "" : absl::StrCat(" (", end.why, ")");
  if (scheduler.has_value() && profiler.recorded() == 0) {
    if (end.stopped_by == 0)
      return FailedPrecondition(
          "nothing was recorded: there were %d steps%s, and --scheduler %s "
          "records from step %d on",
          end.steps, why, options.scheduler, scheduler->first_recorded());
  } else if (scheduler.has_value() && scheduler->end().has_value() &&
             end.stopped_by == 0 && end.steps < *scheduler->end()) {
    LogWarning("there were %d steps%s; --scheduler %s goes on to step %d",
               end.steps, why, options.scheduler, *scheduler->end() - 1);
  }
  if (end.stopped_by == 0) return absl::OkStatus();
  return StoppedBySignal(
      end.stopped_by,
      profiler.recorded() == 0 && scheduler.has_value()
          ? absl::StrCat("stopped after step ", end.steps,
                         ", before anything was recorded")
          : absl::StrCat("stopped after step ", end.steps,
                         "; what was recorded until then is complete"));
}

absl::Status ProfileWork(const ProfileOptions& options, std::ostream& out) {
  const World* world = options.common.world.get();
  if (world != nullptr && !options.model.empty())
    return UsageError(Unimplemented(
        "several processes profile a job; there are %d for a model",
        world->size()));
  std::optional<Scheduler> scheduler;
  if (!options.timer_only) {
    PD_ASSIGN_OR_RETURN(scheduler, Scheduler::Parse(options.scheduler));
  }
  const bool several =
      scheduler.has_value() && scheduler->cycles() != int64_t{1};
  if (Leads(world)) PD_RETURN_IF_ERROR(CheckOutputs(options, several));
  Output output(options, several, out);
  ProfilerOptions profiling;
  profiling.scheduler = scheduler;
  profiling.ring_events = static_cast<size_t>(options.buffer);
  profiling.counters = PerfCounters::Usual();
  if (!options.counters.empty())
    profiling.counters = SplitNames(options.counters);
  if (options.timer_only) profiling.counters.clear();
  profiling.process_name = absl::StrCat(
      "pd-profile ", options.model.empty() ? options.config : options.model);
  profiling.facts = MachineFacts();
  if (scheduler.has_value() && options.roofline > 0) {
    PD_ASSIGN_OR_RETURN(const Roofline roofline,
                        MeasureRoofline(options.roofline));
    for (auto& fact : RooflineFacts(roofline))
      profiling.facts.push_back(std::move(fact));
  }
  profiling.on_trace_ready = [&](ProfileTrace trace) -> absl::Status {
    if (world != nullptr) {
      PD_ASSIGN_OR_RETURN(trace, GatherTraces(*world, std::move(trace)));
    }
    return Leads(world) ? output.Take(trace) : absl::OkStatus();
  };
  Profiler profiler(std::move(profiling));
  PD_ASSIGN_OR_RETURN(auto registry, RegistryFor(options.common));
  registry->SetWorld(options.common.world.get());
  ProfileRunOptions run;
  run.steps = options.steps.value_or(
      scheduler.has_value() ? scheduler->end().value_or(kStepsWithoutEnd)
                            : kStepsWithoutEnd);
  run.seed = static_cast<uint64_t>(options.common.seed.value_or(0));
  run.passes = MakePassOptions(options.passes);
  run.stop = StopRequested;
  InstallStopSignals();
  PD_ASSIGN_OR_RETURN(const ProfileRunEnd end,
                      options.model.empty()
                          ? RunJob(options, *registry, run, &profiler)
                          : RunModel(options, *registry, run, &profiler));
  if (options.timer_only)
    PrintPerf(options, profiler, out);
  else
    output.Finish(Unrecorded(profiler));
  return JudgeEnd(options, profiler, scheduler, end);
}

absl::StatusOr<double> ParsePercent(const std::string& text) {
  absl::string_view number = text;
  absl::ConsumeSuffix(&number, "%");
  const auto percent = ParseReal(number, 0, 1e6);
  if (!percent.ok())
    return CommandLineError(absl::StrCat("--fail-if-slower '", text,
                                         "' is no percentage such as 5%"));
  return *percent / 100;
}

absl::Status CompareFiles(const ProfileOptions& options, std::ostream& out) {
  std::optional<double> limit;
  if (!options.fail_if_slower.empty()) {
    PD_ASSIGN_OR_RETURN(limit, ParsePercent(options.fail_if_slower));
  }
  std::vector<ProfileSummary> summaries;
  for (const std::string& path : options.load) {
    PD_ASSIGN_OR_RETURN(const ProfileTrace trace, ReadTrace(path));
    summaries.push_back(Summarize(trace));
    if (summaries.back().steps == 0)
      return FailedPrecondition("'%s' holds no steps to compare", path);
  }
  const TraceComparison comparison = CompareTraces(summaries[0], summaries[1]);
  if (options.common.json())
    out << ComparisonJson(comparison) << "\n";
  else
    out << ComparisonText(comparison, options.time_unit);
  // Where there are too few steps to tell chance from change, the limit alone
  // decides.
  const OpComparison& step = comparison.step;
  const bool real = !comparison.enough || step.p.value_or(1) < 0.05;
  if (!limit.has_value() || step.change() <= *limit || !real)
    return absl::OkStatus();
  return AnswerNo(
      absl::StrFormat("a step of '%s' takes %.2f %% more time than "
                      "one of '%s'; --fail-if-slower allows %s",
                      options.load[1], step.change() * 100, options.load[0],
                      options.fail_if_slower));
}

absl::Status LoadOne(const ProfileOptions& options, std::ostream& out) {
  PD_RETURN_IF_ERROR(CheckOutputs(options, /*several=*/false));
  PD_ASSIGN_OR_RETURN(const ProfileTrace trace, ReadTrace(options.load[0]));
  Output output(options, /*several=*/false, out);
  PD_RETURN_IF_ERROR(output.Take(trace));
  output.Finish({});
  return absl::OkStatus();
}

}  // namespace

absl::Status RunProfile(const ProfileOptions& options, std::ostream& out) {
  if (!options.simulate.empty()) return RunSimulation(options, out);
  if (options.load.empty()) return ProfileWork(options, out);
  return options.load.size() == 1 ? LoadOne(options, out)
                                  : CompareFiles(options, out);
}

}  // namespace pd
