// SPDX-License-Identifier: Apache-2.0
#include "cmd/train_programs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/nan_report.h"
#include "cmd/common/plugin_option.h"
#include "cmd/common/processes.h"
#include "cmd/common/progress.h"
#include "cmd/common/stop_signals.h"
#include "cmd/common/text.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_guard.h"
#include "libcore/dist/rings.h"
#include "libcore/dist/world.h"
#include "libcore/program/match_feeds.h"
#include "libcore/train/pipeline_stage.h"
#include "libcore/train/program_training.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

Json NumberOrText(double value) {
  // JSON has no NaN and no infinity.
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// A number, or the elements in row-major order.
Json ElementsOf(const Array& array) {
  Json elements = Json::array();
  const absl::Status listed =
      DispatchTypes<float, double, Float16, BFloat16, bool, uint8_t, int8_t,
                    int16_t, int32_t, int64_t>(
          array.dtype, [&](auto tag) -> absl::Status {
            using T = typename decltype(tag)::type;
            for (int64_t i = 0; i < array.size(); ++i) {
              const T value = array.data<T>()[i];
              if constexpr (std::is_integral_v<T>)
                elements.push_back(value);
              else
                elements.push_back(NumberOrText(static_cast<double>(value)));
            }
            return absl::OkStatus();
          });
  if (!listed.ok()) return std::string(listed.message());
  return elements.size() == 1 ? elements[0] : elements;
}

// The files of this process.
struct TrainFiles {
  std::optional<ProgramDesc> startup;
  std::string startup_path, init, save, log_json;  // "": none
};

absl::StatusOr<TrainFiles> FilesFor(const TrainOptions& options) {
  const World* world = options.common.world.get();
  // Rank 0 writes for all, unless each has a file of its own.
  const auto written = [&](const std::string& path) {
    const bool all = path.find("%r") != std::string::npos;
    return Leads(world) || all ? ForRank(path, world) : std::string();
  };
  TrainFiles files;
  files.init = ForRank(options.init, world);
  files.save = written(options.save);
  files.log_json = written(options.log_json);
  if (!options.startup.empty()) {
    files.startup_path = ForRank(options.startup, world);
    PD_ASSIGN_OR_RETURN(files.startup, ReadProgram(files.startup_path));
  }
  return files;
}

absl::Status SetInitialState(const TrainFiles& files, Session* session) {
  if (files.startup.has_value())
    PD_RETURN_IF_ERROR(
        Annotate(session->RunOnce(*files.startup), files.startup_path));
  if (files.init.empty()) return absl::OkStatus();
  bool any = false;
  for (const char* suffix : {".pdparams", ".pdopt"}) {
    const std::string path = absl::StrCat(files.init, suffix);
    if (!Exists(path)) continue;
    any = true;
    PD_ASSIGN_OR_RETURN(const StateDict state, ReadStateDict(path));
    // In the file's order: of variables that share memory the last one counts.
    for (const std::string& name : state.order)
      PD_RETURN_IF_ERROR(
          Annotate(session->scope().Set(name, state.tensors.at(name)), path));
  }
  if (!any)
    return NotFound("neither '%s.pdparams' nor '%s.pdopt' exists", files.init,
                    files.init);
  return absl::OkStatus();
}

// Holds the arrays [steps, ...] against what the programs declare of a step.
// Persistable variables are the scope's matter, and sequences may have fewer
// rows than stand in the array.
absl::Status FitBatches(const std::string& path,
                        ProgramTrainingOptions* inputs) {
  for (auto& [name, array] : inputs->batches) {
    for (const ProgramDesc& program : inputs->programs) {
      const VarDesc* var = program.global().FindVar(name);
      if (var == nullptr || array.shape.empty()) continue;
      Shape step(array.shape.begin() + 1, array.shape.end());
      // A stage of a pipeline declares a part of the batch.
      if (MicroBatchesOf(program) != 1 && !step.empty() && !var->shape.empty())
        step[0] = var->shape[0];
      if (!inputs->lods.empty() && !step.empty() && !var->shape.empty())
        step[0] = var->shape[0];
      if (!var->persistable && !TakesShape(var->shape, step))
        return InvalidArgument(
            "'%s': array '%s' has shape %s, which is %s a step; the program "
            "declares %s",
            path, name, ToString(array.shape), ToString(step),
            ToString(var->shape));
      PD_RETURN_IF_ERROR(FitDType(*var, path, &array));
      break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ProgramTrainingOptions> ReadInputs(const TrainOptions& options) {
  const World* world = options.common.world.get();
  ProgramTrainingOptions inputs;
  for (const std::string& given : options.programs) {
    const std::string path = ForRank(given, world);
    PD_ASSIGN_OR_RETURN(ProgramDesc program, ReadProgram(path));
    inputs.programs.push_back(std::move(program));
    inputs.paths.push_back(path);
  }
  inputs.losses = SplitNames(options.loss);
  inputs.fetches = SplitNames(options.fetch);
  inputs.passes = MakePassOptions(options.passes);
  inputs.seed = static_cast<uint64_t>(options.common.seed.value_or(0));
  const std::string batches = ForRank(options.batches, world);
  PD_ASSIGN_OR_RETURN(inputs.batches, ReadNpz(batches));
  if (!options.lod.empty()) {
    PD_ASSIGN_OR_RETURN(inputs.lods,
                        ReadLoDsBySteps(ForRank(options.lod, world)));
  }
  PD_RETURN_IF_ERROR(FitBatches(batches, &inputs));
  return inputs;
}

int64_t StepsOf(const ProgramTrainingOptions& inputs) {
  int64_t steps = 0;
  for (const auto& [name, array] : inputs.batches)
    if (!array.shape.empty()) steps = array.shape[0];
  return steps;
}

// One of the processes has to have each loss.
absl::Status ExpectLosses(const World& world,
                          const ProgramTrainingOptions& inputs) {
  for (const std::string& name : inputs.losses) {
    int32_t known = 0;
    for (const ProgramDesc& program : inputs.programs)
      if (program.global().FindVar(name) != nullptr) known = 1;
    PD_RETURN_IF_ERROR(world.all().AllReduce(Reduction::kMax, DType::kInt32, 1,
                                             &known, &known));
    if (known == 0)
      return NotFound("the program of no process has the loss '%s'", name);
  }
  return absl::OkStatus();
}

// Rings, micro-batches and steps, on which the processes have to agree. Also
// for a process that works alone.
absl::Status Agree(const TrainOptions& options, const TrainFiles& files,
                   World* world, ProgramTrainingOptions* inputs) {
  int64_t told = 1;
  for (const ProgramDesc& program : inputs->programs)
    told = MicroBatchesOf(program) == 1 ? told : MicroBatchesOf(program);
  if (world != nullptr) {
    std::vector<const ProgramDesc*> programs;
    for (const ProgramDesc& program : inputs->programs)
      programs.push_back(&program);
    if (files.startup.has_value()) programs.push_back(&*files.startup);
    PD_RETURN_IF_ERROR(DeclareRings(programs, {}, world));
    // A stage in the middle of a pipeline is fed nothing.
    const int64_t own = StepsOf(*inputs);
    inputs->steps = own;
    PD_RETURN_IF_ERROR(world->all().AllReduce(Reduction::kMax, DType::kInt64, 1,
                                              &own, &inputs->steps));
    PD_RETURN_IF_ERROR(world->ExpectSame(
        "the number of steps",
        absl::StrCat(inputs->batches.empty() ? inputs->steps : own)));
    PD_RETURN_IF_ERROR(ExpectLosses(*world, *inputs));
    // A stage that does not tell has 0, a process without stages 1.
    int64_t most = told;
    PD_RETURN_IF_ERROR(world->all().AllReduce(Reduction::kMax, DType::kInt64, 1,
                                              &most, &most));
    if (told != 1 || most > 1) told = most;
  }
  inputs->micro_batches = options.micro_batches.value_or(told);
  if (inputs->micro_batches == 0)
    return InvalidArgument(
        "the stages of this pipeline do not tell how many micro-batches they "
        "run; give --micro-batches");
  if (inputs->micro_batches > 1)
    LogInfo("pipeline: %d micro-batches a step", inputs->micro_batches);
  return absl::OkStatus();
}

Json LogLine(int64_t step, const ProgramTraining& training) {
  Json line = {{"step", step}};
  const std::vector<double>& losses = training.losses();
  if (losses.size() == 1) {
    line["loss"] = NumberOrText(losses[0]);
  } else if (!losses.empty()) {
    line["loss"] = Json::array();
    for (double loss : losses) line["loss"].push_back(NumberOrText(loss));
  }
  for (const auto& [name, array] : training.fetched())
    line[name] = ElementsOf(array);
  return line;
}

// The programs' own losses, or the first of them.
struct Outcome {
  int64_t steps = 0;
  double seconds = 0;
  int stopped_by = 0;
};

// A signal that any of the processes has got: they stop after the same step.
absl::StatusOr<int> StopRequestedAnywhere(const World* world) {
  int32_t signal = StopRequested();
  if (world != nullptr)
    PD_RETURN_IF_ERROR(world->all().AllReduce(Reduction::kMax, DType::kInt32, 1,
                                              &signal, &signal));
  return signal;
}

absl::StatusOr<Outcome> RunSteps(int64_t steps, std::ostream* log_json,
                                 ProgramTraining* training) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Outcome outcome;
  Progress progress(Progress::Standard());
  progress.Begin("training", steps, 0, "steps");
  for (int64_t step = 0; step < steps; ++step) {
    const absl::Status status = training->Run(step);
    if (!status.ok()) return Annotate(status, absl::StrCat("step ", step + 1));
    outcome.steps = step + 1;
    if (log_json != nullptr) {
      progress.Clear();
      *log_json << DumpJson(LogLine(step + 1, *training)) << std::endl;
    }
    const bool has_loss = !training->losses().empty();
    const ProgressValue value = {"loss", has_loss ? training->losses()[0] : 0};
    progress.Update(step + 1, step + 1, {&value, has_loss ? 1u : 0u});
    PD_ASSIGN_OR_RETURN(
        outcome.stopped_by,
        StopRequestedAnywhere(training->session().registry().world()));
    if (outcome.stopped_by != 0) break;
  }
  progress.End();
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

void Report(bool as_json, const std::string& save, const Outcome& outcome,
            const ProgramTraining& training, std::ostream& out) {
  if (as_json) {
    Json json = LogLine(outcome.steps, training);
    json["seconds"] = outcome.seconds;
    json["saved"] = save;
    out << DumpJson(json) << "\n";
    return;
  }
  out << absl::StrFormat("%d steps in %.1f s", outcome.steps, outcome.seconds)
      << (training.losses().empty() ? "" : "; loss");
  for (double loss : training.losses()) out << " " << ShortNumber(loss);
  if (!save.empty()) out << "\nsaved " << save << ".pdparams";
  out << "\n";
}

}  // namespace

absl::Status TrainPrograms(const TrainOptions& options, std::ostream& out) {
  World* world = options.common.world.get();
  PD_ASSIGN_OR_RETURN(auto registry, RegistryFor(options.common));
  registry->SetWorld(world);
  PD_ASSIGN_OR_RETURN(ProgramTrainingOptions inputs, ReadInputs(options));
  PD_ASSIGN_OR_RETURN(const TrainFiles files, FilesFor(options));
  PD_RETURN_IF_ERROR(Agree(options, files, world, &inputs));
  NanGuardOptions guarding;
  PD_ASSIGN_OR_RETURN(guarding.rules, NanRulesOfEnvironment());
  NanGuard guard(std::move(guarding));
  if (GetFlag<bool>("FLAGS_check_nan_inf")) inputs.guard = &guard;
  PD_ASSIGN_OR_RETURN(auto training, ProgramTraining::Create(
                                         registry.get(), std::move(inputs)));
  PD_RETURN_IF_ERROR(SetInitialState(files, &training->session()));
  std::unique_ptr<OutputFile> file;
  std::ostream* log_json = nullptr;
  if (!files.log_json.empty()) {
    PD_ASSIGN_OR_RETURN(file, OutputFile::Open(files.log_json));
    log_json = &file->stream();
  }
  const int64_t steps =
      std::min(options.steps.value_or(training->steps()), training->steps());
  InstallStopSignals();
  const absl::StatusOr<Outcome> ran = RunSteps(steps, log_json, training.get());
  if (!ran.ok())
    return ReportNan(ran.status(), guard.finding(), options.common.json(), out);
  const Outcome& outcome = *ran;
  if (file != nullptr) PD_RETURN_IF_ERROR(file->Finish());
  if (!files.save.empty()) PD_RETURN_IF_ERROR(training->Save(files.save));
  if (outcome.stopped_by != 0)
    return StoppedBySignal(
        outcome.stopped_by,
        absl::StrCat("saved '", files.save, "' after step ", outcome.steps));
  Report(options.common.json(), files.save, outcome, *training, out);
  return absl::OkStatus();
}

}  // namespace pd
