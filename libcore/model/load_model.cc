// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/load_model.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "formats/tensor_stream.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/deploy/torch_graph.h"
#include "libcore/deploy/torch_script_graph.h"
#include "libcore/deploy/weight_scales.h"
#include "libcore/model/content.h"
#include "libcore/model/model_files.h"
#include "libcore/model/tree.h"
#include "libcore/ops/registry.h"
#include "libcore/program/match_params.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

// The inputs and outputs of a saved network, and its weights as its ops read
// them.
absl::Status TakeSaved(LoadedModel* model) {
  PD_ASSIGN_OR_RETURN(FeedFetch names, StripFeedFetch(&model->program));
  model->feeds = std::move(names.feeds);
  model->fetches = std::move(names.fetches);
  model->classes = std::move(names.classes);
  if (!model->fetches.empty()) model->kind = LoadedModel::Kind::kInference;
  return ReadWeightScales(&model->program, &model->params);
}

absl::Status TakeOnnx(const OnnxFile& file, const NamedArrays* feeds,
                      const std::map<std::string, Shape>& shapes,
                      LoadedModel* model) {
  // Shapes are inferred with it, and constants computed.
  OpRegistry registry;
  PD_RETURN_IF_ERROR(RegisterAllOps(&registry));
  PD_ASSIGN_OR_RETURN(InferenceModel imported,
                      ImportOnnx(registry, file, feeds, shapes));
  model->kind = LoadedModel::Kind::kInference;
  model->imported = true;
  model->program = std::move(imported.program);
  model->feeds = std::move(imported.names.feeds);
  model->fetches = std::move(imported.names.fetches);
  model->classes = std::move(imported.names.classes);
  model->params = std::move(imported.params);
  return absl::OkStatus();
}

// The graph for what is fed: an archive does not say what its inputs are.
absl::Status TakeScript(const TorchScript& script, const NamedArrays* feeds,
                        const std::map<std::string, Shape>& shapes,
                        LoadedModel* model) {
  std::map<std::string, TorchScriptInput> inputs;
  if (feeds != nullptr)
    for (const auto& [name, array] : *feeds)
      inputs[name] = {array.shape, array.dtype};
  for (const auto& [name, shape] : shapes) inputs[name].shape = shape;
  PD_ASSIGN_OR_RETURN(const TorchExport graph,
                      TorchScriptGraph(script, inputs));
  PD_ASSIGN_OR_RETURN(OnnxFile file, TorchAsOnnx(graph));
  return TakeOnnx(file, feeds, shapes, model);
}

absl::Status TakeParameters(PickleValue dict, LoadedModel* model) {
  PD_ASSIGN_OR_RETURN(StateDict state, StateDictOf(std::move(dict)));
  model->kind = LoadedModel::Kind::kParameters;
  model->params = std::move(state.tensors);
  model->parameter_names = std::move(state.parameter_names);
  return absl::OkStatus();
}

// Training scripts of PyTorch save the network's state_dict beside those of the
// optimizer and more: the dict that holds tensors, under the names in use.
PickleValue NetworkIn(PickleValue root, const std::string& path) {
  for (;;) {
    const auto* dict = root.As<PickleDict>();
    if (dict == nullptr || !ArraysIn(root).empty()) return root;
    const PickleValue* inner = nullptr;
    for (const char* name :
         {"state_dict", "model_state_dict", "model", "net", "module"}) {
      inner = dict->Find(name);
      if (inner != nullptr && inner->As<PickleDict>() != nullptr) {
        LogInfo("'%s': the parameters are those of its entry '%s'", path, name);
        break;
      }
      inner = nullptr;
    }
    if (inner == nullptr) return root;
    PickleValue next = *inner;
    root = std::move(next);
  }
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const std::string& model,
                                      const LoadOptions& options) {
  ReadOptions reading;
  reading.alignment = options.alignment;
  reading.params = options.params;
  PD_ASSIGN_OR_RETURN(Content content, OpenContent(model, reading));
  LoadedModel loaded;
  loaded.path = content.file;
  loaded.format = content.format;
  absl::Status status;
  if (content.onnx.has_value()) {
    status = TakeOnnx(*content.onnx, options.feeds, options.shapes, &loaded);
  } else if (content.script.has_value()) {
    status =
        TakeScript(*content.script, options.feeds, options.shapes, &loaded);
  } else if (content.program.has_value()) {
    loaded.program = *std::move(content.program);
    loaded.params = ArraysIn(content.object);
    if (content.checkpoint.has_value()) {
      loaded.kind = LoadedModel::Kind::kRun;
      loaded.run = content.checkpoint->run;
    } else {
      status = TakeSaved(&loaded);
    }
  } else if (content.object.As<PickleDict>() != nullptr &&
             !content.numbered()) {
    if (content.kind == FileKind::kTorch)
      content.object = NetworkIn(std::move(content.object), loaded.path);
    status = TakeParameters(std::move(content.object), &loaded);
  } else {
    return NoModel(content);
  }
  PD_RETURN_IF_ERROR(OfFile(loaded.path, status));
  return loaded;
}

absl::StatusOr<LoadedModel> LoadModelFiles(const std::string& program,
                                           const std::string& params,
                                           Alignment alignment) {
  LoadOptions options;
  options.alignment = alignment;
  options.params = params;
  PD_ASSIGN_OR_RETURN(LoadedModel loaded, LoadModel(program, options));
  if (loaded.kind == LoadedModel::Kind::kInference) return loaded;
  return InvalidArgument(
      "'%s' is no inference model: it has no inputs and outputs, as "
      "save_inference_model writes them",
      program);
}

absl::StatusOr<LoadedModel> LoadModelBytes(const FileBytes& program,
                                           const FileBytes& params,
                                           Alignment alignment) {
  LoadedModel loaded;
  loaded.path = "program in memory";
  PD_ASSIGN_OR_RETURN(loaded.program,
                      OfFile(loaded.path, ParseProgram(program.view())));
  if (params.size > 0 || !PersistableTensors(loaded.program).empty()) {
    PD_ASSIGN_OR_RETURN(
        loaded.params,
        OfFile("parameters in memory",
               ParseTensors(params, PersistableTensors(loaded.program),
                            alignment)));
  }
  PD_RETURN_IF_ERROR(OfFile(loaded.path, TakeSaved(&loaded)));
  if (loaded.kind != LoadedModel::Kind::kInference)
    return InvalidArgument(
        "'%s': the program has no fetch op; expected an inference model, as "
        "save_inference_model writes it",
        loaded.path);
  return loaded;
}

namespace {

// A state_dict may hold one parameter under several names (`weight_ih_l0` and
// `0.cell.weight_ih` of paddle.nn.LSTM): leaves out those that the program does
// not have, where it has another.
void DropOtherNames(const ProgramDesc& program, LoadedModel* model) {
  std::set<std::string> taken;
  for (const auto& [name, of_program] : model->parameter_names)
    if (program.global().FindVar(name) != nullptr) taken.insert(of_program);
  for (const auto& [name, of_program] : model->parameter_names)
    if (program.global().FindVar(name) == nullptr &&
        taken.count(of_program) > 0)
      model->params.erase(name);
}

// PaddlePaddle's ImperativeQuantAware puts layers into others, which shows in
// names: "conv1._layer.weight".
void DropWrappers(const ProgramDesc& program, LoadedModel* model) {
  std::map<std::string, std::string> renamed;
  for (const auto& [name, value] : model->params) {
    const std::string plain = absl::StrReplaceAll(name, {{"._layer.", "."}});
    if (plain != name && program.global().FindVar(name) == nullptr &&
        program.global().FindVar(plain) != nullptr &&
        model->params.count(plain) == 0)
      renamed[name] = plain;
  }
  for (const auto& [name, plain] : renamed) {
    auto value = model->params.extract(name);
    value.key() = plain;
    model->params.insert(std::move(value));
  }
  for (auto& [name, of_program] : model->parameter_names) {
    const auto it = renamed.find(name);
    if (it != renamed.end()) name = it->second;
  }
}

}  // namespace

void FitNames(const ProgramDesc& program, LoadedModel* model) {
  DropWrappers(program, model);
  size_t structured = 0, of_programs = 0;
  for (const std::string& name : PersistableTensors(program))
    structured += model->params.count(name);
  for (const auto& [name, of_program] : model->parameter_names)
    if (program.global().FindVar(of_program) != nullptr) ++of_programs;
  if (structured >= of_programs) return DropOtherNames(program, model);
  for (const auto& [name, of_program] : model->parameter_names) {
    auto value = model->params.extract(name);
    if (value.empty()) continue;
    value.key() = of_program;
    model->params.insert(std::move(value));
  }
}

absl::Status FillScope(const LoadedModel& model, Scope* scope) {
  const ParamMatch match = MatchParams(model.program, model.params);
  PD_RETURN_IF_ERROR(
      Annotate(match.Error(), absl::StrCat("'", model.path, "'")));
  if (!match.surplus.empty() && model.kind != LoadedModel::Kind::kRun)
    LogWarning("'%s': nothing takes the values of %s", model.path,
               match.SurplusText());
  for (const std::string& name : PersistableTensors(model.program))
    PD_RETURN_IF_ERROR(
        Annotate(scope->Set(name, model.params.at(name)), model.path));
  return absl::OkStatus();
}

}  // namespace pd
