// SPDX-License-Identifier: Apache-2.0
#include "cmd/export_run.h"

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/text.h"
#include "cmd/compare.h"
#include "cmd/run_network.h"
#include "formats/npz.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/deploy/model_ends.h"
#include "libcore/deploy/onnx/onnx_runtime.h"
#include "libcore/deploy/onnx_export.h"
#include "libcore/deploy/optimize.h"
#include "libcore/deploy/paddle_export.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/dot.h"
#include "libcore/program/prune.h"
#include "libcore/program/verifier.h"
#include "libcore/quant/aware.h"
#include "libcore/quant/conv_bias.h"
#include "libcore/train/answer.h"
#include "libcore/train/input_stages.h"

namespace pd {
namespace {

// Draws what would be exported; a program that names no outputs whole.
absl::Status Draw(const ExportOptions& options, const LoadedModel& loaded,
                  const FeedFetch& names, const std::vector<LayerInfo>& layers,
                  const OpRegistry& registry,
                  const std::map<std::string, Shape>& shapes) {
  DotOptions dot;
  dot.title = options.model;
  dot.fetches = names.fetches;
  for (const LayerInfo& layer : layers)
    for (const std::string& variable : layer.variables)
      dot.layer_of.emplace(variable, layer.name);
  ProgramDesc program = loaded.program;
  if (!names.fetches.empty()) {
    auto model = Freeze(loaded.program, names, loaded.params);
    if (!model.ok()) return OfModel(loaded, model.status());
    if (!shapes.empty())
      PD_RETURN_IF_ERROR(
          OfModel(loaded, SetInputShapes(registry, shapes, &*model)));
    program = std::move(model->program);
  }
  return WriteFile(options.out, DotGraph(program, dot));
}

// Shapes and element types that --input gives the inputs that it names.
struct InputsAsked {
  std::map<std::string, Shape> shapes;
  std::map<std::string, DType> dtypes;
};

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

// "x", "x=-1,3,224,224", "x=:uint8" or "x=-1,64:int32": names in `names`.
absl::StatusOr<InputsAsked> ParseInputs(const std::vector<std::string>& texts,
                                        FeedFetch* names) {
  InputsAsked asked;
  if (!texts.empty()) names->feeds.clear();
  for (const std::string& text : texts) {
    const size_t at = text.rfind('=');
    const std::string name = text.substr(0, at);
    names->feeds.push_back(name);
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

// Declares inputs as --input asks for them.
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

// Outputs are called as the layers that give them, unless something else of
// the model has that name.
void NameByLayers(const std::vector<LayerInfo>& layers, InferenceModel* model) {
  for (size_t i = 0; i < model->names.fetches.size(); ++i) {
    std::vector<std::string> names = model->names.fetches;
    for (const LayerInfo& layer : layers)
      if (layer.output == model->names.fetches[i]) names[i] = layer.name;
    RenameOutputs(names, model).IgnoreError();
  }
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

// Names and whatever stands around the network.
absl::Status FinishEnds(const ExportOptions& options,
                        const OpRegistry& registry, const LoadedModel& loaded,
                        const NetworkOfJob& network, InferenceModel* model) {
  if (options.with_softmax)
    PD_RETURN_IF_ERROR(AddSoftmax(registry, loaded, network, model));
  if (options.with_transforms)
    PD_RETURN_IF_ERROR(AddTransforms(registry, loaded, network, model));
  NameByLayers(network.layers, model);
  if (options.output_name.empty()) return absl::OkStatus();
  const absl::Status named =
      RenameOutputs(SplitNames(options.output_name), model);
  if (named.ok()) return named;
  return CommandLineError(absl::StrCat("--output-name '", options.output_name,
                                       "': ", named.message()));
}

// Variables, or layers by name, which stand for what they give.
std::vector<std::string> FetchesAsked(const std::string& text,
                                      const ProgramDesc& program,
                                      const std::vector<LayerInfo>& layers) {
  std::vector<std::string> names = SplitNames(text);
  for (std::string& name : names) {
    if (program.global().FindVar(name) != nullptr) continue;
    for (const LayerInfo& layer : layers)
      if (layer.name == name) {
        name = layer.output;
        break;
      }
  }
  return names;
}

// Removes the inputs that no output depends on from `names`.
absl::Status KeepNeeded(const ProgramDesc& program, FeedFetch* names) {
  PD_ASSIGN_OR_RETURN(names->feeds,
                      FeedsNeeded(program, names->feeds, names->fetches));
  return absl::OkStatus();
}

// "NAME=OUTPUTS" or "NAME=OUTPUTS from INPUTS".
absl::StatusOr<PaddleMethod> MethodAsked(const std::string& text,
                                         const OpRegistry& registry,
                                         const InputsAsked& inputs,
                                         const LoadedModel& loaded,
                                         const NetworkOfJob& network) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0)
    return CommandLineError(absl::StrCat(
        "--method '", text, "': expected NAME=OUTPUTS[ from INPUTS]"));
  const std::pair<std::string, std::string> ends =
      absl::StrSplit(text.substr(at + 1), absl::MaxSplits(" from ", 1));
  FeedFetch names;
  names.classes = loaded.classes;
  names.fetches = FetchesAsked(ends.first, loaded.program, network.layers);
  names.feeds = ends.second.empty()
                    ? loaded.feeds
                    : FetchesAsked(ends.second, loaded.program, network.layers);
  PaddleMethod method;
  method.name = text.substr(0, at);
  const std::string where = absl::StrCat("--method '", method.name, "'");
  if (ends.second.empty())
    PD_RETURN_IF_ERROR(Annotate(KeepNeeded(loaded.program, &names), where));
  auto model = Freeze(loaded.program, names, loaded.params);
  if (!model.ok()) return Annotate(model.status(), where);
  method.model = *std::move(model);
  InputsAsked own;
  for (const std::string& feed : names.feeds) {
    if (const auto it = inputs.shapes.find(feed); it != inputs.shapes.end())
      own.shapes.insert(*it);
    if (const auto it = inputs.dtypes.find(feed); it != inputs.dtypes.end())
      own.dtypes.insert(*it);
  }
  PD_RETURN_IF_ERROR(Annotate(SetInputs(registry, own, &method.model), where));
  NameByLayers(network.layers, &method.model);
  return method;
}

absl::Status Write(const ExportOptions& options, const OpRegistry& registry,
                   const LoadedModel& loaded, const InferenceModel& model,
                   const std::vector<PaddleMethod>& methods) {
  if (options.to == "onnx") {
    const auto bytes = ToOnnx(registry, model, static_cast<int>(options.opset));
    if (!bytes.ok()) return OfModel(loaded, bytes.status());
    return WriteOnnxBytes(*bytes, options.out);
  }
  if (options.to == "paddle-legacy")
    return WritePaddleLegacyModel(model, options.out);
  return WritePaddleModel(
      model, std::string(absl::StripSuffix(options.out, ".pdmodel")), methods);
}

absl::StatusOr<NamedArrays> Answers(const OpRegistry& registry,
                                    const ProgramDesc& program,
                                    const NamedArrays& params,
                                    const NamedArrays& feeds,
                                    const std::vector<std::string>& fetches) {
  Session session(&registry);
  for (const auto& [name, value] : params)
    PD_RETURN_IF_ERROR(session.scope().Set(name, value));
  PD_ASSIGN_OR_RETURN(const NamedArrays named,
                      session.Run(program, feeds, fetches));
  NamedArrays by_place;
  for (size_t i = 0; i < fetches.size(); ++i)
    by_place[absl::StrCat("output_", i)] = named.at(fetches[i]);
  return by_place;
}

// The inference model of a network that was trained with quant { }.
absl::StatusOr<InferenceModel> FreezeQuantized(const ExportOptions& options,
                                               const LoadedModel& loaded,
                                               const FeedFetch& names) {
  const bool onnx = options.to == "onnx";
  PD_ASSIGN_OR_RETURN(LearnedQuantization learned,
                      LearnQuantization(loaded.program, names, loaded.params,
                                        onnx || options.optimize));
  Quantization& q = learned.quantization;
  if (learned.only_simulated.empty() && q.plan.ops.empty())
    learned.only_simulated = "no product is left to quantize";
  if (!learned.only_simulated.empty()) {
    if (onnx || options.to == "paddle-fake")
      return FailedPrecondition("--to %s needs integers, but %s", options.to,
                                learned.only_simulated);
    LogWarning("'%s' is written with fake-quantize operators, in float32: %s",
               options.model, learned.only_simulated);
    return FreezeSimulated(loaded.program, names, loaded.params);
  }
  LogInfo("%d operators multiply integers, %d stay in floating point",
          q.plan.ops.size(), q.plan.left.size());
  if (options.to == "paddle-fake" || options.to == "paddle-legacy")
    return WithFakeQuantize(learned.model, q);
  if (!onnx) return WithQuantizeLinear(learned.model, q);
  // In ONNX every pair rounds: only the pairs of the training are written.
  std::map<std::string, double> thresholds;
  for (const QuantOp& op : q.plan.ops)
    for (const std::string& name : op.activations)
      thresholds[name] = q.thresholds.at(name);
  q.thresholds = std::move(thresholds);
  RoundBeforeMoves(learned.model, &q);
  InferenceModel model = WithQuantizeLinear(learned.model, q, false);
  MoveConvBiases(&model);
  return model;
}

absl::Status Compare(const NamedArrays& got, const NamedArrays& want,
                     const std::string& who, std::ostream& out) {
  for (const Comparison& c : CompareArrays(got, want, {1e-5, 1e-6, true})) {
    out << who << c.ToString() << "\n";
    if (!c.ok())
      return AnswerNo(absl::StrCat(who, "the written model answers otherwise"));
  }
  return absl::OkStatus();
}

// The same for ONNX Runtime's answers, where the machine has it. It refuses
// arrays that the model does not read.
absl::Status VerifyInOnnxRuntime(const LoadedModel& written,
                                 const NamedArrays& arrays,
                                 const NamedArrays& want, std::ostream& out) {
  const auto runtime = OnnxRuntime::Open();
  if (!runtime.ok()) {
    LogInfo("only our own reader was asked: %s", runtime.status().message());
    return absl::OkStatus();
  }
  NamedArrays feeds;
  for (const std::string& name : written.feeds)
    if (const auto it = arrays.find(name); it != arrays.end())
      feeds.insert(*it);
  PD_ASSIGN_OR_RETURN(const NamedArrays named,
                      runtime->Run(written.path, feeds, written.fetches));
  NamedArrays by_place;
  for (size_t i = 0; i < written.fetches.size(); ++i)
    by_place[absl::StrCat("output_", i)] = named.at(written.fetches[i]);
  return Compare(by_place, want,
                 absl::StrCat("ONNX Runtime ", runtime->version(), ": "), out);
}

// Reads back what was written and compares its answers.
absl::Status Verify(const ExportOptions& options, const OpRegistry& registry,
                    const InferenceModel& model, std::ostream& out) {
  PD_ASSIGN_OR_RETURN(NamedArrays feeds, ReadNpz(options.verify));
  PD_ASSIGN_OR_RETURN(const LoadedModel written,
                      LoadModel(options.out, &feeds));
  PD_RETURN_IF_ERROR(
      FitFeedsOf(written, written.fetches, options.verify, &feeds));
  PD_ASSIGN_OR_RETURN(const NamedArrays want,
                      Answers(registry, model.program, model.params, feeds,
                              model.names.fetches));
  PD_ASSIGN_OR_RETURN(const NamedArrays got,
                      Answers(registry, written.program, written.params, feeds,
                              written.fetches));
  PD_RETURN_IF_ERROR(Compare(got, want, "", out));
  return options.to == "onnx" ? VerifyInOnnxRuntime(written, feeds, want, out)
                              : absl::OkStatus();
}

// Converters and passes read slots and attributes by name. A drawing shows the
// program as the file has it.
absl::Status CheckOps(const ExportOptions& options, const OpRegistry& registry,
                      ProgramDesc* program) {
  ProgramDesc normalized = *program;
  const absl::Status status = NormalizeOps(registry, &normalized);
  if (options.to == "dot")
    return absl::IsInvalidArgument(status) ? status : absl::OkStatus();
  if (status.ok()) *program = std::move(normalized);
  return status;
}

}  // namespace

absl::Status RunExport(const ExportOptions& options, std::ostream& out) {
  FeedFetch names;
  PD_ASSIGN_OR_RETURN(const InputsAsked inputs,
                      ParseInputs(options.inputs, &names));
  PD_ASSIGN_OR_RETURN(auto registry, MakeRegistry(options.common.place));
  NetworkOfJob network;
  LoadedModel loaded;
  bool of_job = true;  // the network is a job's, not a model's own
  if (options.model.empty()) {
    PD_ASSIGN_OR_RETURN(loaded,
                        UntrainedNetwork(*registry, options.config, &network));
  } else {
    PD_ASSIGN_OR_RETURN(loaded,
                        LoadModel(options.model, nullptr, inputs.shapes));
    of_job = loaded.kind == LoadedModel::Kind::kRun ||
             loaded.kind == LoadedModel::Kind::kParameters;
    PD_RETURN_IF_ERROR(
        UseNetworkOfJob(*registry, options.config, &loaded, &network));
  }
  // A mere copy of a program stays as it is.
  const bool quantized = of_job && SimulatesQuantization(loaded.program);
  if (options.to == "onnx" || options.to == "dot" || options.optimize ||
      quantized)
    PD_RETURN_IF_ERROR(
        OfModel(loaded, CheckOps(options, *registry, &loaded.program)));
  if (options.inputs.empty()) names.feeds = loaded.feeds;
  names.fetches = loaded.fetches;
  names.classes = loaded.classes;
  if (!options.fetch.empty())
    names.fetches = FetchesAsked(options.fetch, loaded.program, network.layers);
  if (options.to == "dot")
    return Draw(options, loaded, names, network.layers, *registry,
                inputs.shapes);
  if (names.fetches.empty())
    return CommandLineError("this model names no outputs: give --fetch");
  if (!quantized && options.to == "paddle-fake")
    return CommandLineError(
        "--to paddle-fake is for networks that were trained with quant { }; "
        "pd-quant quantizes others");
  // A label that only a metric reads is no input of what is exported.
  if (of_job && options.inputs.empty())
    PD_RETURN_IF_ERROR(OfModel(loaded, KeepNeeded(loaded.program, &names)));
  auto frozen = quantized ? FreezeQuantized(options, loaded, names)
                          : Freeze(loaded.program, names, loaded.params);
  if (!frozen.ok()) return OfModel(loaded, frozen.status());
  InferenceModel& model = *frozen;
  PD_RETURN_IF_ERROR(OfModel(loaded, SetInputs(*registry, inputs, &model)));
  if (options.optimize)
    PD_RETURN_IF_ERROR(OfModel(
        loaded, OptimizeModel(MakePassOptions(options.passes), &model)));
  PD_RETURN_IF_ERROR(FinishEnds(options, *registry, loaded, network, &model));
  std::vector<PaddleMethod> methods;
  for (const std::string& text : options.methods) {
    PD_ASSIGN_OR_RETURN(PaddleMethod method,
                        MethodAsked(text, *registry, inputs, loaded, network));
    methods.push_back(std::move(method));
  }
  PD_RETURN_IF_ERROR(Write(options, *registry, loaded, model, methods));
  size_t bytes = 0;
  for (const auto& [name, value] : model.params) bytes += value.size_bytes();
  const size_t ops = model.program.global().ops.size();
  if (options.common.json()) {
    const nlohmann::ordered_json line = {{"out", options.out},
                                         {"to", options.to},
                                         {"inputs", model.names.feeds},
                                         {"outputs", model.names.fetches},
                                         {"ops", ops},
                                         {"parameter_bytes", bytes}};
    out << DumpJson(line) << "\n";
  } else {
    out << "wrote " << options.out << " (" << options.to << "): " << ops
        << " operators, " << bytes << " bytes of parameters, inputs "
        << absl::StrJoin(model.names.feeds, ", ") << ", outputs "
        << absl::StrJoin(model.names.fetches, ", ") << "\n";
  }
  if (options.verify.empty()) return absl::OkStatus();
  return Verify(options, *registry, model, out);
}

}  // namespace pd
