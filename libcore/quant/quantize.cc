// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/quantize.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Without a threshold there are no integers.
void LeaveUnseen(const InferenceModel& model, Quantization* q) {
  std::vector<std::pair<std::string, std::string>> leave;
  for (const QuantOp& op : q->plan.ops)
    for (const std::string& name : op.activations) {
      const auto it = q->thresholds.find(name);
      if (it == q->thresholds.end())
        leave.emplace_back(op.output, absl::StrCat("the calibration set left '",
                                                   name, "' empty"));
      else if (!(it->second > 0))
        leave.emplace_back(op.output,
                           absl::StrCat("'", name, "' was nothing but zeros"));
    }
  for (const auto& [output, why] : leave)
    LeaveInFloat(model, output, why, &q->plan);
}

void SetThresholds(const InferenceModel& model, const Calibration& calibration,
                   const QuantizeOptions& options, Quantization* q) {
  using Form = QuantizeOptions::Form;
  const bool ends = options.calibration.algorithm == QuantAlgorithm::kMinMax;
  for (const auto& [name, stats] : calibration.variables) {
    const double threshold =
        options.form == Form::kFake ? stats.threshold : stats.signed_threshold;
    q->thresholds[name] = threshold;
    if (options.form != Form::kOnnx) continue;
    if (ends || IsAnswer(model, name))
      q->ends[name] = {stats.range.min, stats.range.max};
    else if (stats.range.min >= 0)
      q->ends[name] = {0, static_cast<float>(threshold)};
  }
}

}  // namespace

absl::Status PlanWeightsOnly(const InferenceModel& model, const SkipList& skips,
                             const WeightOptions& options, bool weight_scales,
                             Quantization* q) {
  PD_ASSIGN_OR_RETURN(q->plan, PlanQuantization(model, skips));
  std::vector<QuantOp> kept;
  for (QuantOp& op : q->plan.ops) {
    op.activations.clear();
    if (!op.weight.empty()) kept.push_back(std::move(op));
  }
  q->plan.ops = std::move(kept);
  if (weight_scales) KeepWeightScaleOps(model, &q->plan);
  q->plan.observed.clear();
  q->algorithm = "weight_only";
  if (q->plan.ops.empty())
    return FailedPrecondition("there are no weights to quantize");
  return QuantizeWeights(model, options, q);
}

absl::Status QuantizeWeights(const InferenceModel& model,
                             const WeightOptions& options, Quantization* q) {
  for (const QuantOp& op : q->plan.ops) {
    if (op.weight.empty() || q->weights.count(op.weight) > 0) continue;
    auto weight = QuantizeWeight(model.params.at(op.weight), op.axis, options);
    if (!weight.ok())
      return Annotate(weight.status(),
                      absl::StrCat("parameter '", op.weight, "'"));
    q->weights[op.weight] = *std::move(weight);
  }
  return absl::OkStatus();
}

absl::StatusOr<QuantizeResult> QuantizeModel(OpRegistry* registry,
                                             const InferenceModel& model,
                                             Loader* loader,
                                             const QuantizeOptions& options) {
  QuantizeResult result;
  Quantization& q = result.quantization;
  PD_ASSIGN_OR_RETURN(q.plan, PlanQuantization(model, options.skips));
  q.algorithm = Name(options.calibration.algorithm);
  PD_RETURN_IF_ERROR(QuantizeWeights(model, options.weights, &q));
  PD_ASSIGN_OR_RETURN(
      result.calibration,
      Calibrate(registry, model, q.plan.observed, loader, options.calibration));
  SetThresholds(model, result.calibration, options, &q);
  LeaveUnseen(model, &q);
  if (q.plan.ops.empty())
    return FailedPrecondition(
        "nothing is left to quantize: %s",
        q.plan.left.empty()
            ? "the model has no convolution and no matrix product"
            : absl::StrCat("'", q.plan.left[0].output, "' stays in float (",
                           q.plan.left[0].why, ")"));
  if (options.learn_rounding) {
    PD_ASSIGN_OR_RETURN(result.roundings,
                        LearnRoundings(registry, model, loader,
                                       options.calibration.most_batches,
                                       options.rounding_progress, &q));
  }
  return result;
}

size_t ParameterBytes(const InferenceModel& model) {
  size_t bytes = 0;
  for (const auto& [name, value] : model.params) bytes += value.size_bytes();
  return bytes;
}

}  // namespace pd
