// SPDX-License-Identifier: Apache-2.0
#include "cmd/quant_run.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/plugin_option.h"
#include "cmd/common/progress.h"
#include "cmd/quant_calibration.h"
#include "cmd/quant_compare.h"
#include "cmd/quant_text.h"
#include "cmd/run_network.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/parallel.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_export.h"
#include "libcore/deploy/optimize.h"
#include "libcore/deploy/paddle_export.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/verifier.h"
#include "libcore/quant/calibration_data.h"
#include "libcore/quant/dynamic.h"
#include "libcore/quant/equalize.h"
#include "libcore/quant/float_search.h"
#include "libcore/quant/fold.h"
#include "libcore/quant/quantize.h"
#include "libcore/report/quant_report.h"
#include "libcore/train/bench.h"
#include "libcore/train/preprocess.h"

namespace pd {
namespace {

// Number of records for measuring errors of layers and sensitivities, in whole
// batches.
constexpr int64_t kErrorRecords = 32;
// An answer that is nearer to its noise is worth a warning.
constexpr double kFewDb = 20;

absl::StatusOr<InferenceModel> ReadModel(const QuantOptions& options,
                                         const OpRegistry& registry,
                                         size_t* bytes, std::string* job) {
  LoadOptions reading;
  reading.params = options.params_file;
  PD_ASSIGN_OR_RETURN(LoadedModel loaded, LoadModel(options.model, reading));
  PD_RETURN_IF_ERROR(UseNetworkOfJob(registry, options.config, &loaded));
  *job = !options.config.empty() ? options.config
         : !loaded.run.empty()   ? absl::StrCat(loaded.run, "/job.pbtxt")
                                 : PreprocessPath(loaded.path);
  PD_RETURN_IF_ERROR(
      Annotate(NormalizeOps(registry, &loaded.program), options.model));
  if (loaded.fetches.empty())
    return InvalidArgument(
        "'%s' names no outputs: export it with pd-export --fetch first",
        options.model);
  auto model =
      Freeze(loaded.program, {loaded.feeds, loaded.fetches, loaded.classes},
             loaded.params);
  if (!model.ok()) return Annotate(model.status(), options.model);
  *bytes = ParameterBytes(*model);
  if (options.fold_batch_norms || options.equalize || options.to == "onnx") {
    PD_ASSIGN_OR_RETURN(const int folded, FoldBatchNorms(&*model));
    LogInfo("%d batch norms folded", folded);
  }
  if (options.equalize)
    LogInfo("%d pairs of layers equalised", EqualizeLayers(&*model));
  return model;
}

QuantizeOptions OptionsOf(const QuantOptions& options) {
  QuantizeOptions q;
  q.calibration.algorithm = *ParseQuantAlgorithm(options.algo);
  q.calibration.percentile = options.percentile;
  q.calibration.histograms = !options.report.empty();
  q.calibration.most_batches =
      options.batches.value_or(DefaultBatches(options));
  q.weights.per_channel = absl::StartsWith(options.weights, "channel_wise");
  q.weights.mse = absl::EndsWith(options.weights, "mse");
  q.weights.keep_mean = options.bias_correction;
  q.weights.bits = options.bits == "16" ? 16 : 8;
  q.skips = options.skip;
  q.learn_rounding = options.round == "adaround";
  q.form = options.to == "onnx"          ? QuantizeOptions::Form::kOnnx
           : options.to == "paddle-fake" ? QuantizeOptions::Form::kFake
                                         : QuantizeOptions::Form::kLinear;
  return q;
}

class QuantRun {
 public:
  QuantRun(const QuantOptions& options, OpRegistry* registry)
      : options_(options), registry_(registry) {}

  absl::Status Run(std::ostream& out) {
    summary_.model = options_.model;
    PD_RETURN_IF_ERROR(CheckTarget());
    PD_ASSIGN_OR_RETURN(
        model_, ReadModel(options_, *registry_, &summary_.bytes_before, &job_));
    if (!options_.compare.empty()) {
      PD_ASSIGN_OR_RETURN(judge_, QuantJudge::Open(registry_, options_.compare,
                                                   options_.metric));
    }
    if (options_.weight_only || options_.dynamic) {
      PD_RETURN_IF_ERROR(PlanWeights());
    } else {
      PD_RETURN_IF_ERROR(CalibrateModel());
    }
    summary_.weights = quantization().weights;
    PD_RETURN_IF_ERROR(Fold());
    PD_RETURN_IF_ERROR(KeepSqnr());
    const absl::Status judged = Judge();
    if (!judged.ok() && !summary_.search.empty())
      PrintQuantSearch(summary_, options_.common.json(), out);
    PD_RETURN_IF_ERROR(judged);
    PD_RETURN_IF_ERROR(MeasureErrors());
    PD_RETURN_IF_ERROR(Write());
    PD_RETURN_IF_ERROR(MeasureLatency());
    summary_.operators = model_.program.global().ops.size();
    if (options_.common.json())
      PrintQuantJson(summary_, out);
    else
      PrintQuantSummary(summary_, out);
    return Report();
  }

 private:
  Quantization& quantization() { return summary_.result.quantization; }

  int64_t ErrorBatches() const {
    const int64_t batch =
        summary_.result.calibration.records /
        std::max<int64_t>(1, summary_.result.calibration.batches);
    return std::max<int64_t>(1, kErrorRecords / std::max<int64_t>(1, batch));
  }

  // The model that was read must not be overwritten.
  absl::Status CheckTarget() const {
    std::error_code none;
    for (const char* suffix : {"", ".pdmodel"})
      for (const char* end : {"", ".pdmodel"})
        if (IsFile(options_.model + suffix) &&
            std::filesystem::equivalent(options_.model + suffix,
                                        options_.out + end, none))
          return CommandLineError(
              absl::StrFormat("--out '%s' would write over the model '%s'",
                              options_.out, options_.model));
    return absl::OkStatus();
  }

  // A plan's status: what is not found is an entry of --skip.
  absl::Status Planned(const absl::Status& status) const {
    if (!options_.skip.empty() && absl::IsNotFound(status))
      return CommandLineError(absl::StrCat("--skip ", status.message()));
    return Annotate(status, options_.model);
  }

  absl::Status PlanWeights() {
    Quantization& q = quantization();
    if (options_.dynamic) {
      PD_RETURN_IF_ERROR(Planned(
          PlanDynamic(model_, options_.skip, OptionsOf(options_).weights, &q)));
      return options_.to == "onnx" ? CheckOnnxDynamic() : absl::OkStatus();
    }
    return Planned(PlanWeightsOnly(model_, options_.skip,
                                   OptionsOf(options_).weights,
                                   options_.to == "paddle-lite", &q));
  }

  absl::Status CheckOnnxDynamic() {
    for (const QuantOp& op : quantization().plan.ops)
      if (model_.program.global().ops[op.op].type == "rnn")
        return Unimplemented(
            "'%s': op 'rnn' that makes '%s' cannot be written as ONNX; --to "
            "paddle can hold it",
            options_.model, op.output);
    return absl::OkStatus();
  }

  absl::Status CalibrateModel() {
    PD_ASSIGN_OR_RETURN(loader_, OpenCalibration(options_, model_, job_));
    QuantizeOptions q = OptionsOf(options_);
    const absl::Time start = absl::Now();
    Progress progress(Progress::Standard());
    int64_t total = loader_->batches();
    if (q.calibration.most_batches > 0)
      total = std::min(total, q.calibration.most_batches);
    progress.Begin("calibrating", total);
    q.calibration.progress = [&](int64_t batches, int64_t records) {
      summary_.calibration_s = absl::ToDoubleSeconds(absl::Now() - start);
      progress.Update(batches, records);
      return true;
    };
    q.rounding_progress = [&](int64_t done, int64_t items) {
      if (done == 1) {
        progress.End();
        progress.Begin("learning roundings", 0, 0, "weights");
      }
      progress.Update(done, items);
      return true;
    };
    auto result = QuantizeModel(registry_, model_, loader_.get(), q);
    progress.End();
    if (absl::IsAborted(result.status()))
      return AnswerNo(result.status().message());
    PD_RETURN_IF_ERROR(Planned(result.status()));
    summary_.result = *std::move(result);
    return absl::OkStatus();
  }

  absl::Status Fold() {
    if (options_.dynamic || options_.keep_batch_norms) return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(const int folded,
                        FoldQuantized(&model_, &quantization()));
    if (folded > 0) LogInfo("%d batch norms folded into integers", folded);
    return absl::OkStatus();
  }

  // The model as it runs here whatever is written.
  InferenceModel Quantized(const Quantization& q) const {
    return options_.dynamic ? WithDynamic(model_, q)
                            : WithQuantizeLinear(model_, q);
  }
  InferenceModel Quantized() { return Quantized(quantization()); }

  absl::Status Judge() {
    if (judge_ == nullptr) return absl::OkStatus();
    summary_.metric = judge_->metric();
    PD_ASSIGN_OR_RETURN(summary_.before,
                        judge_->Evaluate(model_, "evaluating before"));
    if (options_.max_drop.has_value()) PD_RETURN_IF_ERROR(Search());
    PD_ASSIGN_OR_RETURN(summary_.after,
                        judge_->Evaluate(Quantized(), "evaluating after"));
    summary_.drop = judge_->Drop(summary_.before, summary_.after);
    return absl::OkStatus();
  }

  // Leaves the operators in float that bring `cost` to `most`. False where it
  // takes all of them.
  absl::StatusOr<bool> LeaveSensitive(const char* option, double most,
                                      const FloatCost& cost) {
    Progress progress(Progress::Standard());
    const auto operators = static_cast<int64_t>(quantization().plan.ops.size());
    progress.Begin("measuring sensitivity", operators, 0, "operators");
    FloatSearch search;
    search.registry = registry_;
    search.model = &model_;
    search.loader = loader_.get();
    search.batches = ErrorBatches();
    search.why = absl::StrCat("sensitive: see ", option);
    search.most = most;
    search.progress = [&](int64_t done, int64_t items) {
      progress.Update(done, items);
      if (done == operators) progress.End();
      return true;
    };
    return SearchFloatOps(search, cost, &quantization(),
                          &summary_.sensitivities);
  }

  absl::Status Search() {
    const auto drop = [&](const Quantization& q,
                          size_t left) -> absl::StatusOr<double> {
      PD_ASSIGN_OR_RETURN(
          const double after,
          judge_->Evaluate(Quantized(q), absl::StrCat("evaluating with ", left,
                                                      " in float")));
      const double drop = judge_->Drop(summary_.before, after);
      summary_.search.push_back({left, after, drop});
      return drop;
    };
    PD_ASSIGN_OR_RETURN(const bool found,
                        LeaveSensitive("--max-drop", *options_.max_drop, drop));
    if (found) return absl::OkStatus();
    return AnswerNo(absl::StrFormat(
        "the metric '%s' drops by more than %g points while anything is "
        "quantized",
        judge_->metric(), *options_.max_drop));
  }

  absl::Status KeepSqnr() {
    if (!options_.min_sqnr.has_value()) return absl::OkStatus();
    const auto noise = [&](const Quantization& q,
                           size_t) -> absl::StatusOr<double> {
      PD_ASSIGN_OR_RETURN(const double sqnr,
                          LeastAnswerSqnr(registry_, model_, Quantized(q),
                                          loader_.get(), ErrorBatches()));
      return -sqnr;
    };
    PD_ASSIGN_OR_RETURN(
        const bool found,
        LeaveSensitive("--min-sqnr", -*options_.min_sqnr, noise));
    if (found) return absl::OkStatus();
    return AnswerNo(absl::StrFormat(
        "the answers' SQNR is below %g dB while anything is quantized",
        *options_.min_sqnr));
  }

  absl::Status MeasureErrors() {
    if (loader_ == nullptr) return absl::OkStatus();
    std::vector<std::string> outputs;
    for (const QuantOp& op : quantization().plan.ops)
      outputs.push_back(op.output);
    for (const std::string& fetch : model_.names.fetches)
      if (std::count(outputs.begin(), outputs.end(), fetch) == 0)
        outputs.push_back(fetch);
    auto errors = CompareModels(registry_, model_, Quantized(), outputs,
                                loader_.get(), ErrorBatches(), nullptr);
    if (!errors.ok()) return Annotate(errors.status(), options_.model);
    summary_.errors = *std::move(errors);
    const auto& fetches = model_.names.fetches;
    for (const ValueError& e : summary_.errors)
      if (e.Sqnr() < kFewDb && !options_.min_sqnr.has_value() &&
          std::count(fetches.begin(), fetches.end(), e.variable) > 0)
        LogWarning(
            "the answer '%s' is %.1f dB above its noise; --min-sqnr %g leaves "
            "the operators that cost most in floating point",
            e.variable, e.Sqnr(), kFewDb);
    return absl::OkStatus();
  }

  absl::Status Write() {
    const Quantization& q = quantization();
    InferenceModel written =
        options_.to == "paddle-fake"   ? WithFakeQuantize(model_, q)
        : options_.to == "paddle-lite" ? WithWeightScales(model_, q)
        : options_.dynamic
            ? Quantized()
            : WithQuantizeLinear(model_, q, options_.to != "onnx");
    summary_.to = options_.to;
    summary_.out = options_.out;
    summary_.bytes_after = ParameterBytes(written);
    if (options_.to == "onnx") {
      const auto bytes =
          ToOnnx(*registry_, written, static_cast<int>(options_.opset));
      if (!bytes.ok()) return Annotate(bytes.status(), options_.model);
      return WriteOnnxBytes(*bytes, options_.out);
    }
    return WritePaddleModel(
        written, std::string(absl::StripSuffix(options_.out, ".pdmodel")));
  }

  absl::Status MeasureLatency() {
    BenchOptions bench;
    bench.seconds = options_.latency.value_or(options_.report.empty() ? 0 : 1);
    if (bench.seconds == 0) return absl::OkStatus();
    bench.batch = std::max<int64_t>(1, FixedBatch(model_));
    const std::vector<FeedSpec> feeds =
        loader_ == nullptr ? FeedsOf(model_) : FeedsOfRecords(model_, *loader_);
    const auto time = [&](const InferenceModel& model) {
      return BenchInference(*registry_, AsLoaded(model, options_.model), feeds,
                            bench);
    };
    const auto before = time(model_), after = time(Quantized());
    for (const auto* report : {&before, &after}) {
      if (report->ok()) continue;
      if (options_.latency.has_value()) return report->status();
      LogWarning("no latency: %s", report->status().message());
      return absl::OkStatus();
    }
    summary_.latency_before = before->step_ms_median;
    summary_.latency_after = after->step_ms_median;
    summary_.latency_batch = bench.batch;
    return absl::OkStatus();
  }

  absl::Status Report() {
    if (options_.report.empty()) return absl::OkStatus();
    QuantReport report;
    report.model = options_.model;
    report.result = &summary_.result;
    report.errors = &summary_.errors;
    report.sensitivities = &summary_.sensitivities;
    report.facts = {
        {"written", absl::StrCat(summary_.out, " (", summary_.to, ")")},
        {"parameters", absl::StrFormat("%d -> %d bytes", summary_.bytes_before,
                                       summary_.bytes_after)}};
    if (summary_.latency_batch > 0)
      report.facts.emplace_back(
          "latency",
          absl::StrFormat("%.3f -> %.3f ms, batch %d, %d threads",
                          summary_.latency_before, summary_.latency_after,
                          summary_.latency_batch, Threads()));
    if (!summary_.metric.empty())
      report.facts.emplace_back(
          summary_.metric,
          absl::StrFormat("%.6g -> %.6g", summary_.before, summary_.after));
    return WriteQuantReport(options_.report, report);
  }

  const QuantOptions& options_;
  OpRegistry* registry_;
  InferenceModel model_;
  std::string job_;  // says how pictures become the model's inputs
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<QuantJudge> judge_;
  QuantSummary summary_;
};

}  // namespace

absl::Status RunQuant(const QuantOptions& options, std::ostream& out) {
  PD_ASSIGN_OR_RETURN(auto registry, RegistryFor(options.common));
  return QuantRun(options, registry.get()).Run(out);
}

}  // namespace pd
