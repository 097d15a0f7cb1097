// SPDX-License-Identifier: Apache-2.0
#include "cmd/evaluation_spec.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/prune.h"
#include "libcore/program/rename_variables.h"

namespace pd {
namespace {

// Puts the ops that make the loss from predictions behind an inference model:
// its outputs take the place of the job's, other names get a prefix.
absl::Status AppendLoss(const TrainProgram& job, const LoadedModel& model,
                        EvaluationSpec* spec) {
  std::vector<std::string> given = job.outputs;
  for (const FeedSpec& feed : job.feeds) given.push_back(feed.name);
  PD_ASSIGN_OR_RETURN(const ProgramDesc loss,
                      Prune(job.test, given, {job.loss}));
  for (const VarDesc& var : loss.global().vars) {
    if (!var.persistable) continue;
    LogWarning(
        "the loss is left out: it does not follow from the outputs of '%s' but "
        "from layers inside, which have parameters such as '%s'",
        model.path, var.name);
    return absl::OkStatus();
  }
  std::map<std::string, std::string> names;
  for (const FeedSpec& feed : job.feeds) names[feed.name] = feed.name;
  for (size_t i = 0; i < job.outputs.size(); ++i)
    names[job.outputs[i]] = model.fetches[i];
  const auto renamed = [&](const std::string& name) {
    const auto it = names.find(name);
    return it != names.end() ? it->second : absl::StrCat("loss/", name);
  };
  BlockDesc& block = spec->program.global();
  for (VarDesc var : loss.global().vars) {
    var.name = renamed(var.name);
    if (block.FindVar(var.name) == nullptr)
      block.vars.push_back(std::move(var));
  }
  for (OpDesc op : loss.global().ops) {
    for (auto* slots : {&op.inputs, &op.outputs})
      for (auto& [slot, variables] : *slots)
        for (std::string& variable : variables)
          if (variable != kEmptyVar) variable = renamed(variable);
    block.ops.push_back(std::move(op));
  }
  spec->loss = renamed(job.loss);
  return absl::OkStatus();
}

// The model with its inputs under the job's names, by place, where it has as
// many; a model that somebody else made calls them as it likes.
absl::StatusOr<LoadedModel> FedAs(const TrainProgram& job,
                                  const LoadedModel& given) {
  LoadedModel model = given;
  const auto known = [&](const std::string& name) {
    return std::count(job.inputs.begin(), job.inputs.end(), name) > 0;
  };
  if (model.feeds.size() != job.inputs.size() ||
      std::all_of(model.feeds.begin(), model.feeds.end(), known))
    return model;
  Renames names;
  for (size_t i = 0; i < model.feeds.size(); ++i)
    names[model.feeds[i]] = job.inputs[i];
  for (VarDesc& var : model.program.global().vars) {
    if (known(var.name) && names.count(var.name) == 0)
      return InvalidArgument(
          "'%s' has a variable '%s' that is not its input; the job's input "
          "has this name",
          model.path, var.name);
  }
  RenameVariables(names, &model.program);
  for (std::string& feed : model.feeds) feed = names[feed];
  for (std::string& fetch : model.fetches)
    if (names.count(fetch) > 0) fetch = names[fetch];
  return model;
}

}  // namespace

absl::StatusOr<EvaluationSpec> SpecOfModel(const TrainProgram& job,
                                           const LoadedModel& given) {
  PD_ASSIGN_OR_RETURN(const LoadedModel model, FedAs(job, given));
  if (model.fetches.size() != job.outputs.size())
    return InvalidArgument("'%s' has %d outputs; the job's model has %d",
                           model.path, model.fetches.size(),
                           job.outputs.size());
  EvaluationSpec spec;
  spec.program = model.program;
  spec.outputs = model.fetches;
  for (const std::string& name : model.feeds) {
    const auto feed =
        std::find_if(job.feeds.begin(), job.feeds.end(),
                     [&](const FeedSpec& f) { return f.name == name; });
    if (feed == job.feeds.end())
      return InvalidArgument("'%s' is fed '%s'; the job has no such input",
                             model.path, name);
  }
  spec.feeds = job.feeds;
  spec.heads = HeadsOf(job);
  for (MetricUse use : job.metrics) {
    std::vector<std::string*> names = {&use.prediction};
    if (use.label_variable) names.push_back(&use.label);
    for (MetricUse::More& more : use.more)
      if (more.variable) names.push_back(&more.name);
    for (std::string* name : names) {
      const auto at = std::find(job.outputs.begin(), job.outputs.end(), *name);
      if (at == job.outputs.end())
        return InvalidArgument(
            "metric '%s' looks at '%s', which is no output of '%s'", use.name,
            *name, model.path);
      *name = model.fetches[static_cast<size_t>(at - job.outputs.begin())];
    }
    spec.metrics.push_back(std::move(use));
  }
  if (!job.loss.empty()) PD_RETURN_IF_ERROR(AppendLoss(job, model, &spec));
  return spec;
}

EvaluationSpec SpecOfJob(const TrainProgram& job) {
  EvaluationSpec spec;
  spec.program = job.test;
  spec.feeds = job.feeds;
  spec.heads = HeadsOf(job);
  spec.loss = job.loss;
  spec.metrics = job.metrics;
  spec.outputs = job.outputs;
  return spec;
}

absl::Status SetParameters(const LoadedModel& model, const ProgramDesc& program,
                           Session* session) {
  for (const VarDesc& var : program.global().vars) {
    if (!var.persistable) continue;
    const auto value = model.params.find(var.name);
    if (value == model.params.end())
      return InvalidArgument(
          "'%s' has no '%s': it is of another network than the job's",
          model.path, var.name);
    if (value->second.shape != var.shape)
      return InvalidArgument(
          "'%s': '%s' has shape %s; the job's has %s", model.path, var.name,
          ToString(value->second.shape), ToString(var.shape));
    PD_RETURN_IF_ERROR(session->scope().Set(var.name, value->second));
  }
  return absl::OkStatus();
}

}  // namespace pd
