// SPDX-License-Identifier: Apache-2.0
#include "cmd/train_preview.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/link_option.h"
#include "cmd/common/text.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.pb.h"
#include "libcore/profile/measure_step.h"
#include "libcore/report/dry_run.h"
#include "libcore/report/model_summary.h"
#include "libcore/train/resumed_job.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

// "61,706".
std::string Grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (int i = static_cast<int>(text.size()) - 3; i > 0 && text[i - 1] != '-';
       i -= 3)
    text.insert(static_cast<size_t>(i), ",");
  return text;
}

// "416.5 MFLOPs".
std::string FlopsText(int64_t flops) {
  double value = static_cast<double>(flops);
  for (const char* unit : {"", "k", "M", "G", "T"}) {
    if (value < 1000 || *unit == 'T')
      return absl::StrFormat("%.4g %sFLOPs", value, unit);
    value /= 1000;
  }
  return "";
}

std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::string InputsText(const std::vector<Shape>& shapes) {
  std::vector<std::string> texts;
  for (const Shape& shape : shapes) texts.push_back(ShapeText(shape));
  return absl::StrCat("[", absl::StrJoin(texts, ", "), "]");
}

std::string OutputsText(const std::vector<Shape>& shapes) {
  return shapes.size() == 1 ? ShapeText(shapes[0]) : InputsText(shapes);
}

std::string Centred(const std::string& text, size_t width) {
  if (text.size() >= width) return text;
  const size_t left = (width - text.size()) / 2;
  return std::string(left, ' ') + text +
         std::string(width - text.size() - left, ' ');
}

Json SummaryJson(const ModelSummary& summary) {
  Json json = {{"layers", Json::array()}};
  for (const LayerRow& row : summary.rows)
    json["layers"].push_back({{"type", row.type},
                              {"name", row.name},
                              {"input_shape", row.inputs},
                              {"output_shape", row.outputs},
                              {"params", row.parameters},
                              {"trainable_params", row.trainable},
                              {"flops", row.flops}});
  json["total_params"] = summary.parameters;
  json["trainable_params"] = summary.trainable;
  json["non_trainable_params"] = summary.parameters - summary.trainable;
  json["flops"] = summary.flops;
  json["input_mb"] = summary.input_mb;
  json["forward_backward_mb"] = summary.pass_mb;
  json["params_mb"] = summary.parameters_mb;
  json["estimated_total_mb"] = summary.total_mb;
  for (const auto& [name, shape] : summary.assumed)
    json["assumed_shapes"][name] = shape;
  return json;
}

void PrintTable(const ModelSummary& summary, std::ostream& out) {
  std::vector<std::vector<std::string>> lines = {{"Layer (type)", "Input Shape",
                                                  "Output Shape", "Param #",
                                                  "FLOPs", "Name"}};
  for (const LayerRow& row : summary.rows)
    lines.push_back({row.type, InputsText(row.inputs), OutputsText(row.outputs),
                     Grouped(row.parameters), Grouped(row.flops), row.name});
  // PaddlePaddle's widths, wider where a value is; the name goes to the end.
  std::vector<size_t> widths = {15, 20, 20, 15, 15, 0};
  size_t total = 0;
  for (size_t c = 0; c < widths.size(); ++c) {
    for (const auto& line : lines)
      widths[c] = std::max(widths[c], line[c].size());
    total += widths[c] + 1;
  }
  const std::string thin(total, '-'), thick(total, '=');
  out << thin << "\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    for (size_t c = 0; c + 1 < widths.size(); ++c)
      out << Centred(lines[i][c], widths[c]) << " ";
    out << lines[i].back() << "\n";
    if (i == 0) out << thick << "\n";
  }
  out << thick << "\nTotal params: " << Grouped(summary.parameters)
      << "\nTrainable params: " << Grouped(summary.trainable)
      << "\nNon-trainable params: "
      << Grouped(summary.parameters - summary.trainable)
      << "\nTotal FLOPs: " << Grouped(summary.flops)
      << " (two for each multiply-add)\n"
      << thin << "\n"
      << absl::StrFormat(
             "Input size (MB): %.2f\nForward/backward pass size (MB): "
             "%.2f\nParams size (MB): %.2f\nEstimated Total Size (MB): %.2f\n",
             summary.input_mb, summary.pass_mb, summary.parameters_mb,
             summary.total_mb)
      << thin << "\n";
  for (const auto& [name, shape] : summary.assumed)
    out << "input '" << name << "' was taken as " << ShapeText(shape) << "\n";
}

Json DataJson(const DataPlan& data) {
  Json fields = Json::array();
  for (const BatchField& field : data.fields)
    fields.push_back({{"name", field.name},
                      {"dtype", std::string(Name(field.dtype))},
                      {"shape", field.shape}});
  const bool known = data.records > 0;  // not of a stream
  return {{"records", known ? Json(data.records) : Json(nullptr)},
          {"batches", known ? Json(data.batches) : Json(nullptr)},
          {"batch_size", data.batch_size},
          {"fields", std::move(fields)},
          {"activation_bytes", data.activation_bytes},
          {"unshared_bytes", data.unshared_bytes}};
}

// A step in each number of processes that the dry run names.
absl::StatusOr<std::vector<StepPrediction>> PredictSteps(
    const TrainOptions& options, const OpRegistry& registry,
    const LoadedJob& job, const DryRun& dry) {
  std::vector<StepPrediction> steps;
  if (options.link.empty()) return steps;
  const absl::Status needs = job.Require({"distributed"}, "--link");
  if (!needs.ok()) return UsageError(needs);
  PD_ASSIGN_OR_RETURN(const LinkModel link, ParseLink(options.link));
  MeasureOptions measuring;
  measuring.seconds = 1;
  measuring.passes = MakePassOptions(options.passes);
  const auto measured = MeasureStep(registry, job, measuring);
  if (!measured.ok()) return MarkJobErrors(job, measured.status());
  steps.push_back(PredictStep(measured->timeline, 1, link));
  for (const ExchangePlan::Sent& sent : dry.exchange->sent)
    steps.push_back(PredictStep(measured->timeline, sent.processes, link));
  return steps;
}

Json DryJson(const DryRun& dry, const std::vector<StepPrediction>& steps) {
  Json json = {{"parameters", dry.parameters},
               {"trainable", dry.trainable},
               {"parameter_bytes", dry.parameter_bytes},
               {"state_bytes", dry.state_bytes},
               {"train", DataJson(dry.train)}};
  for (const PhasePlan& phase : dry.phases)
    json["phases"].push_back(
        {{"name", phase.name},
         {"runs", phase.runs},
         {"operators", phase.operators},
         {"activation_bytes", phase.activation_bytes},
         {"unshared_bytes", phase.unshared_bytes},
         {"flops",
          phase.flops.has_value() ? Json(*phase.flops) : Json(nullptr)}});
  if (dry.eval.has_value()) json["eval"] = DataJson(*dry.eval);
  json["epochs"] = dry.epochs;
  json["steps"] = dry.steps > 0 ? Json(dry.steps) : Json(nullptr);
  json["step_flops"] =
      dry.step_flops.has_value() ? Json(*dry.step_flops) : Json(nullptr);
  if (dry.exchange.has_value()) {
    Json sent = Json::array();
    for (const ExchangePlan::Sent& one : dry.exchange->sent) {
      sent.push_back({{"processes", one.processes}, {"bytes", one.bytes}});
      if (one.states > 0) sent.back()["states"] = one.states;
    }
    json["distributed"] = {{"shards", dry.exchange->shards},
                           {"bytes", dry.exchange->bytes},
                           {"sent", std::move(sent)}};
    for (const StepPrediction& step : steps)
      json["distributed"]["predicted"].push_back(
          {{"processes", step.processes},
           {"step_ms", step.step * 1e3},
           {"exchange_ms", step.communication * 1e3},
           {"waiting_ms", step.waiting * 1e3},
           {"efficiency", step.efficiency}});
  }
  json["warnings"] = dry.warnings;
  return json;
}

void PrintData(const char* name, const DataPlan& data, std::ostream& out) {
  std::vector<std::string> fields;
  for (const BatchField& field : data.fields)
    fields.push_back(absl::StrCat(field.name, " ",
                                  std::string(Name(field.dtype)),
                                  ToString(field.shape)));
  // The program that writes a stream's records is not started for a look.
  const std::string count =
      data.records == 0 ? "a stream of records, in batches"
                        : absl::StrCat(Grouped(data.records), " records, ",
                                       Grouped(data.batches), " batches");
  out << absl::StrFormat("%-12s %s of %d: %s\n", name, count, data.batch_size,
                         absl::StrJoin(fields, ", "));
}

void PrintMemory(const char* name, const DataPlan& data, std::ostream& out) {
  out << absl::StrFormat("%-12s activations %s (%s without sharing)\n", name,
                         Megabytes(data.activation_bytes),
                         Megabytes(data.unshared_bytes));
}

void PrintPredictions(const std::vector<StepPrediction>& steps,
                      const std::string& link, std::ostream& out) {
  if (steps.empty()) return;
  out << absl::StrFormat("%-12s %s: a step takes %.2f ms in one process\n",
                         "link", link, steps[0].step * 1e3);
  for (size_t i = 1; i < steps.size(); ++i)
    out << absl::StrFormat(
        "%-12s %.2f ms in each of %d, %.2f ms of it waiting for others; "
        "efficiency %.2f\n",
        "", steps[i].step * 1e3, steps[i].processes, steps[i].waiting * 1e3,
        steps[i].efficiency);
}

// A run of the phase.
void PrintPhase(const PhasePlan& phase, std::ostream& out) {
  out << absl::StrFormat(
      "%-12s phase '%s'%s: %d operators, activations %s (%s without sharing)",
      "", phase.name,
      phase.runs > 1 ? absl::StrCat(", ", phase.runs, " runs a step") : "",
      phase.operators, Megabytes(phase.activation_bytes),
      Megabytes(phase.unshared_bytes));
  if (phase.flops.has_value()) out << ", " << FlopsText(*phase.flops);
  out << "\n";
}

void PrintExchange(const ExchangePlan& plan, std::ostream& out) {
  std::vector<std::string> sent;
  for (const ExchangePlan::Sent& one : plan.sent)
    sent.push_back(absl::StrFormat("%s in each of %d processes",
                                   Megabytes(static_cast<size_t>(one.bytes)),
                                   one.processes));
  out << absl::StrFormat("%-12s %d, each with %s of gradients and statistics\n",
                         "shards", plan.shards, Megabytes(plan.bytes));
  if (!sent.empty())
    out << absl::StrFormat("%-12s a step sends %s\n", "",
                           absl::StrJoin(sent, ", "));
  for (const ExchangePlan::Sent& one : plan.sent)
    if (one.states > 0)
      out << absl::StrFormat(
          "%-12s of %d processes each holds %s of states at most\n", "",
          one.processes, Megabytes(static_cast<size_t>(one.states)));
}

}  // namespace

absl::StatusOr<SoundInput> SoundInputOf(const std::string& text) {
  SoundInput sound;
  if (text.empty()) return sound;
  constexpr int32_t kMostHertz = 768000;
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 ||
      !absl::SimpleAtoi(text.substr(at + 1), &sound.rate) || sound.rate < 1 ||
      sound.rate > kMostHertz)
    return CommandLineError(
        absl::StrCat("--log-audio '", text,
                     "': expected INPUT=HERTZ, a number of 1 to ", kMostHertz));
  sound.name = text.substr(0, at);
  return sound;
}

absl::StatusOr<std::vector<LogKind>> LogKindsOf(
    const std::vector<std::string>& texts) {
  std::vector<LogKind> kinds;
  for (const std::string& text : texts)
    for (const std::string& word :
         std::vector<std::string>(absl::StrSplit(text, ','))) {
      if (word != "visualdl" && word != "tensorboard")
        return CommandLineError(
            absl::StrCat("--log '", text, "': '", word,
                         "' is none of visualdl, tensorboard"));
      const LogKind kind =
          word == "visualdl" ? LogKind::kVisualDl : LogKind::kTensorBoard;
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
        kinds.push_back(kind);
    }
  return kinds;
}

absl::Status PrintSummary(const TrainOptions& options,
                          const OpRegistry& registry, const LoadedJob& job,
                          std::ostream& out) {
  const absl::StatusOr<ModelSummary> summary = SummarizeModel(registry, job);
  if (!summary.ok()) return MarkJobErrors(job, summary.status());
  if (options.common.json())
    out << DumpJson(SummaryJson(*summary)) << "\n";
  else
    PrintTable(*summary, out);
  return absl::OkStatus();
}

absl::Status PrintDryRun(const TrainOptions& options,
                         const OpRegistry& registry, const LoadedJob& job,
                         std::ostream& out) {
  const bool goes_on =
      !options.out.empty() && NewestCheckpoint(options.out).ok();
  if (goes_on && options.resume) {
    const auto changes = ChangesSince(options.out, job, options.weights_only);
    if (!changes.ok()) return UsageError(changes.status());
    ReportChanges(*changes);
  }
  if (goes_on && !options.resume)
    return UsageError(AlreadyExists(
        "'%s' holds checkpoints: --resume goes on from the newest, another "
        "--out starts anew",
        options.out));
  std::vector<InitialParameters> sources = InitialSources(options);
  if (sources.empty() && !goes_on) sources = InitialParametersOf(job);
  const absl::StatusOr<DryRun> dry =
      RunDry(registry, job, MakePassOptions(options.passes), sources);
  if (absl::StartsWith(dry.status().message(), "--init-"))
    return UsageError(dry.status());
  if (!dry.ok()) return MarkJobErrors(job, dry.status());
  PD_ASSIGN_OR_RETURN(const auto steps,
                      PredictSteps(options, registry, job, *dry));
  for (const std::string& text : dry->warnings) LogWarning("%s", text);
  if (options.common.json()) {
    out << DumpJson(DryJson(*dry, steps)) << "\n";
    return absl::OkStatus();
  }
  out << absl::StrFormat("%-12s %s\n", "job", job.proto().name())
      << absl::StrFormat("%-12s %s (%s), %s trainable\n", "parameters",
                         Grouped(dry->parameters),
                         Megabytes(dry->parameter_bytes),
                         Grouped(dry->trainable))
      << absl::StrFormat("%-12s %s of optimizer and statistics\n", "state",
                         Megabytes(dry->state_bytes));
  PrintData("train", dry->train, out);
  PrintMemory("", dry->train, out);
  for (const PhasePlan& phase : dry->phases) PrintPhase(phase, out);
  if (dry->eval.has_value()) {
    PrintData("eval", *dry->eval, out);
    PrintMemory("", *dry->eval, out);
  }
  out << absl::StrFormat("%-12s %s in %s epochs\n", "steps",
                         dry->steps > 0 ? Grouped(dry->steps)
                                        : "as many as the stream has batches",
                         Grouped(dry->epochs));
  if (dry->step_flops.has_value())
    out << absl::StrFormat("%-12s %s, two for each multiply-add\n", "a step",
                           FlopsText(*dry->step_flops));
  if (dry->exchange.has_value()) PrintExchange(*dry->exchange, out);
  PrintPredictions(steps, options.link, out);
  return absl::OkStatus();
}

}  // namespace pd
