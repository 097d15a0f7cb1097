// SPDX-License-Identifier: Apache-2.0
#include "cmd/run_network.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/nan_check.h"
#include "libcore/model/lod_json.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/match_feeds.h"
#include "libcore/train/run_vocabularies.h"
#include "libcore/train/train_program.h"

namespace pd {

absl::Status SetVariables(const LoadedModel& model, const std::string& startup,
                          Session* session) {
  if (!startup.empty()) {
    PD_ASSIGN_OR_RETURN(ProgramDesc program, ReadProgram(startup));
    PD_RETURN_IF_ERROR(Annotate(session->RunOnce(program), startup));
  }
  if (model.kind == LoadedModel::Kind::kInference)
    return FillScope(model, &session->scope());
  for (const auto& [name, value] : model.params)
    PD_RETURN_IF_ERROR(Annotate(session->scope().Set(name, value), model.path));
  return absl::OkStatus();
}

absl::Status OfModel(const LoadedModel& model, const absl::Status& status) {
  const std::string place = absl::StrCat("'", model.path, "'");
  if (status.ok() || IsNanFound(status) ||
      absl::StartsWith(status.message(), place))
    return status;
  return Annotate(status, place);
}

absl::Status FitFeedsOf(const LoadedModel& model,
                        const std::vector<std::string>& fetches,
                        const std::string& path, NamedArrays* feeds) {
  return FitFeeds(model.program, {path, model.path, model.feeds, fetches},
                  feeds);
}

absl::StatusOr<NamedArrays> ReadFeeds(const std::string& npz,
                                      const std::string& lod) {
  PD_ASSIGN_OR_RETURN(NamedArrays feeds, ReadNpz(npz));
  if (lod.empty()) return feeds;
  PD_ASSIGN_OR_RETURN(const LoDs lods, ReadLoDs(lod));
  for (const auto& [name, levels] : lods) {
    const auto feed = feeds.find(name);
    if (feed == feeds.end())
      return NotFound("'%s': '%s' is no array of '%s'", lod, name, npz);
    feed->second.lod = levels;
  }
  return feeds;
}

absl::Status NeedsJob(const LoadedModel& model) {
  return CommandLineError(absl::StrCat(
      "'", model.path,
      "' holds parameters only; say with -c whose network takes them"));
}

namespace {

NetworkOfJob Describe(const LoadedJob& job, TrainProgram* built) {
  NetworkOfJob network;
  network.job = job;
  network.answer = FindAnswer(*built);
  network.layers = std::move(built->test_layers);
  for (const LayerInfo& layer : built->layers)
    network.training_layers.push_back(layer.name);
  for (const FeedSpec& feed : built->feeds)
    if (std::count(built->inputs.begin(), built->inputs.end(), feed.name) > 0)
      network.inputs.push_back(feed);
  return network;
}

}  // namespace

absl::Status UseNetworkOfJob(const OpRegistry& registry,
                             const std::string& config, LoadedModel* model,
                             NetworkOfJob* network) {
  const bool run = model->kind == LoadedModel::Kind::kRun;
  if (!run && model->kind != LoadedModel::Kind::kParameters)
    return absl::OkStatus();
  if (config.empty() && model->run.empty()) return NeedsJob(*model);
  PD_ASSIGN_OR_RETURN(
      const LoadedJob job,
      ReadJobFor(
          config.empty() ? absl::StrCat(model->run, "/job.pbtxt") : config, {},
          std::nullopt, model->run));
  auto test = BuildTestProgram(registry, job);
  if (!test.ok()) return UsageError(test.status());
  TrainProgram built = *std::move(test);
  NetworkOfJob described = Describe(job, &built);
  FitNames(built.test, model);
  // A run holds what its optimizer keeps besides.
  for (auto it = model->params.begin(); run && it != model->params.end();)
    it = built.test.global().FindVar(it->first) == nullptr
             ? model->params.erase(it)
             : std::next(it);
  const Answer& answer = described.answer;
  described.run = run ? model->run : RunOfJobFile(config);
  RunVocabularies vocabularies(described.run);
  if (!answer.label.empty()) {
    PD_ASSIGN_OR_RETURN(model->classes[built.outputs[answer.output]],
                        vocabularies.Classes(answer.label));
  }
  if (network != nullptr) *network = std::move(described);
  model->program = std::move(built.test);
  model->feeds = std::move(built.inputs);
  model->fetches = std::move(built.outputs);
  model->kind = LoadedModel::Kind::kInference;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> VariablesNamed(
    std::vector<std::string> names, const ProgramDesc& program,
    const NetworkOfJob& network) {
  std::vector<std::string> known;
  for (const LayerInfo& layer : network.layers) known.push_back(layer.name);
  for (std::string& name : names) {
    if (program.global().FindVar(name) != nullptr) continue;
    const auto layer = std::find(known.begin(), known.end(), name);
    if (layer != known.end()) {
      name = network.layers[static_cast<size_t>(layer - known.begin())].output;
      continue;
    }
    if (known.empty()) continue;
    const auto& training = network.training_layers;
    const std::string nearest = Nearest(name, known);
    return NotFound(
        "'%s' is neither a layer nor a variable of the network as evaluation "
        "runs it%s%s",
        name,
        std::count(training.begin(), training.end(), name) > 0
            ? "; it is a layer of training alone"
            : "",
        nearest.empty()
            ? ""
            : absl::StrCat("; the nearest layer is '", nearest, "'"));
  }
  return names;
}

absl::StatusOr<LoadedModel> UntrainedNetwork(const OpRegistry& registry,
                                             const std::string& config,
                                             NetworkOfJob* described) {
  PD_ASSIGN_OR_RETURN(const LoadedJob job,
                      ReadJobFor(config, {}, std::nullopt));
  auto network = BuildTestProgram(registry, job);
  if (!network.ok()) return UsageError(network.status());
  Session session(&registry, job.proto().train().seed());
  PD_RETURN_IF_ERROR(SetFirstValues(*network, &session));
  LoadedModel model;
  model.kind = LoadedModel::Kind::kInference;
  model.path = config;
  for (const VarDesc& var : network->test.global().vars)
    if (var.persistable && session.scope().Find(var.name) != nullptr) {
      PD_ASSIGN_OR_RETURN(model.params[var.name],
                          session.scope().Get(var.name));
    }
  if (described != nullptr) *described = Describe(job, &*network);
  model.program = std::move(network->test);
  model.feeds = std::move(network->inputs);
  model.fetches = std::move(network->outputs);
  return model;
}

}  // namespace pd
