// SPDX-License-Identifier: Apache-2.0
#include "cmd/export_ends.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/text.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/model_ends.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/answer.h"
#include "libcore/train/input_stages.h"

namespace pd {
namespace {

absl::StatusOr<Shape> ParseShape(const std::string& text) {
  Shape shape;
  for (const std::string& extent :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    PD_ASSIGN_OR_RETURN(const int64_t n,
                        ParseInteger(extent, -1, int64_t{1} << 40));
    shape.push_back(n);
  }
  return shape;
}

// Puts probabilities in the place of the scores that answer.
absl::Status AddSoftmax(const OpRegistry& registry, const LoadedModel& loaded,
                        const NetworkOfJob& network, InferenceModel* model) {
  const Answer& answer = network.answer;
  const std::string* fetch = nullptr;
  for (const std::string& name : model->names.fetches)
    if (answer.kind != AnswerKind::kNone &&
        name == loaded.fetches[answer.output])
      fetch = &name;
  const bool yes_no = answer.kind == AnswerKind::kYesNo;
  if (fetch == nullptr || (!yes_no && answer.classes == 0))
    return CommandLineError(
        network.job.has_value()
            ? "--with-softmax: the job's label and loss make no classifier of "
              "its network"
            : absl::StrCat("--with-softmax asks the job which output has "
                           "scores, and '",
                           loaded.path, "' has none: export the run"));
  for (const char* made : {"softmax", "sigmoid"})
    if (answer.made_by == made && MakerOf(model->program, *fetch) == made) {
      LogInfo("output '%s' is a %s already", *fetch, made);
      return absl::OkStatus();
    }
  if (answer.made_by == "log_softmax")
    return CommandLineError(
        absl::StrCat("--with-softmax: output '", *fetch, "' is a log_softmax"));
  const std::string name = yes_no ? "probability" : "probabilities";
  return AppendProbabilities(registry, std::string(*fetch),
                             yes_no ? "sigmoid" : "softmax", answer.axis, name,
                             model);
}

// Puts what the job's data do in front of the network.
absl::Status AddTransforms(const OpRegistry& registry,
                           const LoadedModel& loaded,
                           const NetworkOfJob& network, InferenceModel* model) {
  if (!network.job.has_value())
    return CommandLineError(absl::StrCat(
        "--with-transforms needs the job that says what its data are, and '",
        loaded.path, "' has none: export the run"));
  const job::Data& sets = network.job->proto().data();
  if (!sets.has_eval() && !sets.has_train())
    return UsageError(
        network.job->Require({"data.train"}, "--with-transforms"));
  PD_ASSIGN_OR_RETURN(
      const InputStages stages,
      InputStagesOf(*network.job, sets.has_eval() ? sets.eval() : sets.train(),
                    network.inputs));
  for (const std::string& sentence : stages.outside)
    LogWarning("--with-transforms: %s", sentence);
  if (stages.stages.empty())
    LogWarning(
        "--with-transforms adds nothing: the network is fed what the data "
        "hold");
  for (const InputStage& stage : stages.stages)
    PD_RETURN_IF_ERROR(PrependSteps(registry, stage, model));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InputsAsked> ParseInputs(const std::vector<std::string>& texts) {
  InputsAsked asked;
  for (const std::string& text : texts) {
    const size_t at = text.rfind('=');
    const std::string name = text.substr(0, at);
    asked.names.push_back(name);
    if (at == std::string::npos) continue;
    const size_t colon = text.find(':', at);
    const std::string extents = text.substr(at + 1, colon - at - 1);
    if (!extents.empty() || colon == std::string::npos) {
      auto shape = ParseShape(extents);
      if (!shape.ok())
        return CommandLineError(
            absl::StrCat("--input '", text, "': ", shape.status().message()));
      asked.shapes[name] = *std::move(shape);
    }
    if (colon == std::string::npos) continue;
    const auto dtype = DTypeFromName(text.substr(colon + 1));
    if (!dtype.has_value())
      return CommandLineError(absl::StrCat(
          "--input '", text, "': '", text.substr(colon + 1),
          "' is no element type; expected one such as float32 or uint8"));
    asked.dtypes[name] = *dtype;
  }
  return asked;
}

absl::StatusOr<Ends> EndsNamed(std::vector<std::string> names,
                               const ProgramDesc& program,
                               const NetworkOfJob& network) {
  Ends ends{names, {}};
  PD_ASSIGN_OR_RETURN(ends.variables,
                      VariablesNamed(std::move(names), program, network));
  for (size_t i = 0; i < ends.asked.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (ends.variables[i] == ends.variables[j] &&
          ends.asked[i] != ends.asked[j])
        return InvalidArgument(
            "'%s' and '%s' are one variable of the network as evaluation runs "
            "it; name one of them",
            ends.asked[j], ends.asked[i]);
  return ends;
}

InputsAsked OfVariables(const InputsAsked& asked, const Ends& inputs) {
  InputsAsked of;
  of.names = inputs.variables;
  for (size_t i = 0; i < inputs.asked.size(); ++i) {
    const std::string& name = inputs.asked[i];
    const std::string& variable = inputs.variables[i];
    if (const auto it = asked.shapes.find(name); it != asked.shapes.end())
      of.shapes[variable] = it->second;
    if (const auto it = asked.dtypes.find(name); it != asked.dtypes.end())
      of.dtypes[variable] = it->second;
  }
  return of;
}

absl::Status SetInputs(const OpRegistry& registry, const InputsAsked& asked,
                       InferenceModel* model) {
  if (!asked.shapes.empty())
    PD_RETURN_IF_ERROR(SetInputShapes(registry, asked.shapes, model));
  for (const auto& [name, dtype] : asked.dtypes) {
    const VarDesc* var = model->program.global().FindVar(name);
    if (var == nullptr || var->dtype == dtype) continue;
    PD_RETURN_IF_ERROR(
        PrependSteps(registry, {name, dtype, var->shape, {}}, model));
  }
  return absl::OkStatus();
}

void NameEnds(const NetworkOfJob& network, const Ends& inputs,
              const Ends& outputs, InferenceModel* model) {
  const auto asked = [](const Ends& ends, const std::string& variable) {
    const auto at =
        std::find(ends.variables.begin(), ends.variables.end(), variable);
    return at == ends.variables.end()
               ? nullptr
               : &ends.asked[static_cast<size_t>(at - ends.variables.begin())];
  };
  for (size_t i = 0; i < model->names.fetches.size(); ++i) {
    std::vector<std::string> names = model->names.fetches;
    const std::string variable = names[i];
    for (const LayerInfo& layer : network.layers)
      if (layer.output == variable) names[i] = layer.name;
    if (const std::string* name = asked(outputs, variable)) names[i] = *name;
    RenameOutputs(names, model).IgnoreError();
  }
  for (size_t i = 0; i < model->names.feeds.size(); ++i) {
    std::vector<std::string> names = model->names.feeds;
    if (const std::string* name = asked(inputs, names[i])) names[i] = *name;
    RenameInputs(names, model).IgnoreError();
  }
}

absl::Status AddAround(const ExportOptions& options, const OpRegistry& registry,
                       const LoadedModel& loaded, const NetworkOfJob& network,
                       InferenceModel* model) {
  if (options.with_softmax)
    PD_RETURN_IF_ERROR(AddSoftmax(registry, loaded, network, model));
  if (options.with_transforms)
    PD_RETURN_IF_ERROR(AddTransforms(registry, loaded, network, model));
  return absl::OkStatus();
}

}  // namespace pd
