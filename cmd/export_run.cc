// SPDX-License-Identifier: Apache-2.0
#include "cmd/export_run.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/plugin_option.h"
#include "cmd/common/text.h"
#include "cmd/compare.h"
#include "cmd/export_bundle.h"
#include "cmd/export_ends.h"
#include "cmd/run_network.h"
#include "formats/npz.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_target.h"
#include "libcore/base/log.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/bundle/bundle_writer.h"
#include "libcore/bundle/c_writer.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/deploy/model_ends.h"
#include "libcore/deploy/onnx/onnx_runtime.h"
#include "libcore/deploy/onnx_export.h"
#include "libcore/deploy/optimize.h"
#include "libcore/deploy/paddle_export.h"
#include "libcore/exec/session.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/dot.h"
#include "libcore/program/prune.h"
#include "libcore/program/verifier.h"
#include "libcore/quant/aware.h"
#include "libcore/train/preprocess.h"

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

// Whether nodes of a bundle are made of the program.
bool IsBundle(const ExportOptions& options) {
  return options.to == "bundle" || options.to == "c";
}

// Removes the inputs that no output depends on from `names`.
absl::Status KeepNeeded(const ProgramDesc& program, FeedFetch* names) {
  PD_ASSIGN_OR_RETURN(names->feeds,
                      FeedsNeeded(program, names->feeds, names->fetches));
  return absl::OkStatus();
}

// The part of --input that is about what `model` is fed.
InputsAsked OfModelInputs(const InputsAsked& asked,
                          const InferenceModel& model) {
  InputsAsked own;
  for (const std::string& feed : model.names.feeds) {
    if (const auto it = asked.shapes.find(feed); it != asked.shapes.end())
      own.shapes.insert(*it);
    if (const auto it = asked.dtypes.find(feed); it != asked.dtypes.end())
      own.dtypes.insert(*it);
  }
  return own;
}

// "OUTPUTS" or "OUTPUTS from INPUTS".
absl::StatusOr<InferenceModel> FunctionAsked(const std::string& text,
                                             const OpRegistry& registry,
                                             const InputsAsked& inputs,
                                             const LoadedModel& loaded,
                                             const NetworkOfJob& network) {
  const std::pair<std::string, std::string> ends =
      absl::StrSplit(text, absl::MaxSplits(" from ", 1));
  PD_ASSIGN_OR_RETURN(const Ends outputs, EndsNamed(SplitNames(ends.first),
                                                    loaded.program, network));
  Ends fed;
  FeedFetch names;
  names.classes = loaded.classes;
  names.fetches = outputs.variables;
  names.feeds = loaded.feeds;
  if (ends.second.empty()) {
    PD_RETURN_IF_ERROR(KeepNeeded(loaded.program, &names));
  } else {
    PD_ASSIGN_OR_RETURN(
        fed, EndsNamed(SplitNames(ends.second), loaded.program, network));
    names.feeds = fed.variables;
  }
  PD_ASSIGN_OR_RETURN(InferenceModel model,
                      Freeze(loaded.program, names, loaded.params));
  PD_RETURN_IF_ERROR(SetInputs(registry, OfModelInputs(inputs, model), &model));
  NameEnds(network, fed, outputs, &model);
  return model;
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
  PaddleMethod method;
  method.name = text.substr(0, at);
  auto model =
      FunctionAsked(text.substr(at + 1), registry, inputs, loaded, network);
  if (!model.ok())
    return Annotate(model.status(),
                    absl::StrCat("--method '", method.name, "'"));
  method.model = *std::move(model);
  return method;
}

absl::Status FindEnds(const ExportOptions& options, const InputsAsked& asked,
                      const LoadedModel& loaded, const NetworkOfJob& network,
                      Ends* inputs, Ends* outputs) {
  auto in = EndsNamed(asked.names, loaded.program, network);
  if (!in.ok()) return OfModel(loaded, Annotate(in.status(), "--input"));
  *inputs = *std::move(in);
  if (options.fetch.empty()) return absl::OkStatus();
  auto out = EndsNamed(SplitNames(options.fetch), loaded.program, network);
  if (!out.ok()) return OfModel(loaded, Annotate(out.status(), "--fetch"));
  *outputs = *std::move(out);
  return absl::OkStatus();
}

absl::Status NameOutputs(const std::string& names, InferenceModel* model) {
  const absl::Status named = RenameOutputs(SplitNames(names), model);
  if (named.ok()) return named;
  return CommandLineError(
      absl::StrCat("--output-name '", names, "': ", named.message()));
}

absl::Status Write(const ExportOptions& options, const OpRegistry& registry,
                   const LoadedModel& loaded, const InferenceModel& model,
                   const std::vector<PaddleMethod>& methods) {
  if (options.to == "onnx") {
    const auto bytes = ToOnnx(registry, model, static_cast<int>(options.opset));
    if (!bytes.ok()) return OfModel(loaded, bytes.status());
    return WriteOnnxBytes(*bytes, options.out);
  }
  if (options.to == "bundle")
    return OfModel(loaded, WriteBundle(registry, model, options.out));
  if (options.to == "c")
    return OfModel(loaded, WriteSourceFolder(registry, model, options.out));
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

// Whether the model has the inputs and outputs of what was loaded.
bool HasEndsOf(const LoadedModel& loaded, const InferenceModel& model) {
  const auto as_loaded = [&](const std::string& name) {
    const VarDesc* before = loaded.program.global().FindVar(name);
    const VarDesc* now = model.program.global().FindVar(name);
    return std::count(loaded.feeds.begin(), loaded.feeds.end(), name) > 0 &&
           before != nullptr && now != nullptr && before->dtype == now->dtype;
  };
  const auto& feeds = model.names.feeds;
  return std::all_of(feeds.begin(), feeds.end(), as_loaded) &&
         model.names.fetches.size() == loaded.fetches.size();
}

// Writes how data become what the model is fed, where that is known and stays
// as it is; else removes what an earlier export left.
absl::Status Preprocess(const ExportOptions& options, const LoadedModel& loaded,
                        const NetworkOfJob& network,
                        const InferenceModel& model) {
  // Nothing reads records for a bundle.
  if (IsDirectTarget(options.out) || IsBundle(options)) return absl::OkStatus();
  const std::string path = PreprocessPath(
      options.to == "paddle-legacy" ? absl::StrCat(options.out, "/__model__")
                                    : options.out);
  std::optional<LoadedJob> job = network.job;
  std::string names = network.run;
  if (!job.has_value()) {
    const std::string beside = PreprocessPath(loaded.path);
    if (beside == path) return absl::OkStatus();
    if (IsFile(beside)) {
      PD_ASSIGN_OR_RETURN(job, ReadJob(beside));
      names = NamesOfPreprocess(beside);
    }
  }
  if (!job.has_value() || !job->proto().has_model() ||
      !job->proto().has_data() || !options.fetch.empty() ||
      options.with_transforms || !HasEndsOf(loaded, model))
    return RemovePreprocess(path);
  LogInfo("'%s' says how data become what the model is fed", path);
  return WritePreprocess(*job, names, path);
}

void PrintSummary(const ExportOptions& options, const InferenceModel& model,
                  std::ostream& out) {
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
  return WithQuantizeLinear(learned.model, q, false);
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

absl::Status VerifyBundle(const ExportOptions& options,
                          const OpRegistry& registry,
                          const InferenceModel& model, const NamedArrays& feeds,
                          std::ostream& out) {
  NamedArrays read;  // feeds of other inputs are no harm
  for (const std::string& name : model.names.feeds)
    if (const auto it = feeds.find(name); it != feeds.end()) read.insert(*it);
  PD_ASSIGN_OR_RETURN(const NamedArrays got, RunBundle(options.out, read));
  PD_ASSIGN_OR_RETURN(const NamedArrays want,
                      Answers(registry, model.program, model.params, read,
                              model.names.fetches));
  return Compare(got, want, "", out);
}

// Reads back what was written and compares its answers.
absl::Status Verify(const ExportOptions& options, const OpRegistry& registry,
                    const InferenceModel& model, std::ostream& out) {
  PD_ASSIGN_OR_RETURN(NamedArrays feeds, ReadNpz(options.verify));
  if (options.to == "bundle")
    return VerifyBundle(options, registry, model, feeds, out);
  LoadOptions reading;
  reading.feeds = &feeds;
  PD_ASSIGN_OR_RETURN(const LoadedModel written,
                      LoadModel(options.out, reading));
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
  PD_ASSIGN_OR_RETURN(const InputsAsked asked, ParseInputs(options.inputs));
  PD_ASSIGN_OR_RETURN(auto registry, RegistryFor(options.common));
  NetworkOfJob network;
  LoadedModel loaded;
  bool of_job = true;  // the network is a job's, not a model's own
  if (options.model.empty()) {
    PD_ASSIGN_OR_RETURN(loaded,
                        UntrainedNetwork(*registry, options.config, &network));
  } else {
    LoadOptions reading;
    reading.shapes = asked.shapes;
    reading.params = options.params_file;
    PD_ASSIGN_OR_RETURN(loaded, LoadModel(options.model, reading));
    of_job = loaded.kind == LoadedModel::Kind::kRun ||
             loaded.kind == LoadedModel::Kind::kParameters;
    PD_RETURN_IF_ERROR(
        UseNetworkOfJob(*registry, options.config, &loaded, &network));
  }
  // A mere copy of a program stays as it is.
  const bool quantized = of_job && SimulatesQuantization(loaded.program);
  if (options.to == "onnx" || options.to == "dot" || options.optimize ||
      quantized || IsBundle(options))
    PD_RETURN_IF_ERROR(
        OfModel(loaded, CheckOps(options, *registry, &loaded.program)));
  Ends fed, outputs;
  PD_RETURN_IF_ERROR(FindEnds(options, asked, loaded, network, &fed, &outputs));
  names.feeds = options.inputs.empty() ? loaded.feeds : fed.variables;
  names.fetches = options.fetch.empty() ? loaded.fetches : outputs.variables;
  names.classes = loaded.classes;
  const InputsAsked inputs = OfVariables(asked, fed);
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
  PD_RETURN_IF_ERROR(AddAround(options, *registry, loaded, network, &model));
  NameEnds(network, fed, outputs, &model);
  if (!options.output_name.empty())
    PD_RETURN_IF_ERROR(NameOutputs(options.output_name, &model));
  std::vector<PaddleMethod> methods;
  for (const std::string& text : options.methods) {
    PD_ASSIGN_OR_RETURN(PaddleMethod method,
                        MethodAsked(text, *registry, inputs, loaded, network));
    methods.push_back(std::move(method));
  }
  PD_RETURN_IF_ERROR(Write(options, *registry, loaded, model, methods));
  PD_RETURN_IF_ERROR(Preprocess(options, loaded, network, model));
  PrintSummary(options, model, out);
  if (options.verify.empty()) return absl::OkStatus();
  return Verify(options, *registry, model, out);
}

}  // namespace pd
