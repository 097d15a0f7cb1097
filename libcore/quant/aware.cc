// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/aware.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/optimize.h"

namespace pd {
namespace {

constexpr int32_t kBits = 8;  // of activations in all forms

bool IsFake(const OpDesc& op) {
  return absl::StartsWith(op.type, "fake_") &&
         absl::StrContains(op.type, "quantize_dequantize");
}

bool IsObserver(const OpDesc& op) {
  return op.type == "moving_average_abs_max_scale";
}

bool IsParam(const ProgramDesc& program, const std::string& name) {
  const VarDesc* var = program.global().FindVar(name);
  return var != nullptr && var->persistable;
}

// Takes fake-quantize ops out of a program and keeps what they say.
class Learner {
 public:
  explicit Learner(const NamedArrays& params) : params_(params) {}

  absl::StatusOr<ProgramDesc> Strip(ProgramDesc program) {
    const std::vector<OpDesc> ops = std::move(program.global().ops);
    program.global().ops.clear();
    std::map<std::string, std::string> instead;
    for (OpDesc op : ops) {
      if (IsFake(op)) {
        instead[op.Out("Out")] = op.In("X");
        PD_RETURN_IF_ERROR(Note(program, op));
        continue;
      }
      if (IsObserver(op)) {
        PD_ASSIGN_OR_RETURN(observed_[op.In("X")], Scale(op.Out("OutScale")));
        continue;
      }
      for (auto& [slot, names] : op.inputs)
        for (std::string& name : names) {
          const auto it = instead.find(name);
          if (it != instead.end()) name = it->second;
        }
      program.global().ops.push_back(std::move(op));
    }
    return program;
  }

  absl::Status Fill(LearnedQuantization* learned) const {
    Quantization& q = learned->quantization;
    q.algorithm = "qat";
    learned->only_simulated = only_simulated_;
    PD_ASSIGN_OR_RETURN(q.plan, PlanQuantization(learned->model, {}));
    std::vector<QuantOp> kept;
    for (QuantOp& op : q.plan.ops) {
      const bool known = bits_.count(op.weight) > 0 &&
                         op.activations.size() == 1 &&
                         scales_.count(op.activations[0]) > 0;
      if (known)
        kept.push_back(std::move(op));
      else
        q.plan.left.push_back({learned->model.program.global().ops[op.op].type,
                               op.output, "training left it in float"});
    }
    q.plan.ops = std::move(kept);
    for (const auto& [name, scale] : observed_)
      if (scale > 0) q.thresholds[name] = scale;
    for (const auto& [name, scale] : scales_) q.thresholds[name] = scale;
    for (const QuantOp& op : q.plan.ops) {
      WeightOptions options;
      options.bits = bits_.at(op.weight);
      options.per_channel = per_channel_;
      auto weight =
          QuantizeWeight(learned->model.params.at(op.weight), op.axis, options);
      if (!weight.ok())
        return Annotate(weight.status(),
                        absl::StrCat("parameter '", op.weight, "'"));
      q.weights[op.weight] = *std::move(weight);
    }
    return absl::OkStatus();
  }

  bool per_channel() const { return per_channel_; }

 private:
  absl::StatusOr<double> Scale(const std::string& name) const {
    const auto it = params_.find(name);
    if (it == params_.end())
      return NotFound("there is no value for the scale '%s'", name);
    if (it->second.dtype != DType::kFloat32 || it->second.size() != 1)
      return InvalidArgument("the scale '%s' is %s%s; expected one float32",
                             name, Name(it->second.dtype),
                             ToString(it->second.shape));
    const double scale = it->second.data<float>()[0];
    if (!std::isfinite(scale) || scale < 0)
      return FailedPrecondition(
          "the scale '%s' is %g; expected a positive number", name, scale);
    return scale;
  }

  absl::Status Note(const ProgramDesc& program, const OpDesc& op) {
    const std::string& x = op.In("X");
    const auto bits = op.AttrOr<int32_t>("bit_length", kBits);
    if (IsParam(program, x)) {
      bits_[x] = bits;
      per_channel_ = absl::StrContains(op.type, "channel_wise");
      return absl::OkStatus();
    }
    if (!absl::StrContains(op.type, "moving_average")) {
      only_simulated_ = "activations have a scale for each batch";
      return absl::OkStatus();
    }
    if (bits != kBits)
      only_simulated_ = absl::StrCat("activations have ", bits, " bits, not 8");
    PD_ASSIGN_OR_RETURN(const double scale, Scale(op.In("InScale")));
    if (!(scale > 0))
      return FailedPrecondition("the scale '%s' is 0: was it ever trained?",
                                op.In("InScale"));
    scales_[x] = scale;
    return absl::OkStatus();
  }

  const NamedArrays& params_;
  std::map<std::string, double> scales_, observed_;  // of variables
  std::map<std::string, int32_t> bits_;              // of weights
  bool per_channel_ = false;
  std::string only_simulated_;
};

}  // namespace

bool SimulatesQuantization(const ProgramDesc& program) {
  for (const OpDesc& op : program.global().ops)
    if (IsFake(op) && IsParam(program, op.In("X"))) return true;
  return false;
}

absl::StatusOr<LearnedQuantization> LearnQuantization(
    const ProgramDesc& program, const FeedFetch& names,
    const NamedArrays& params, bool fold) {
  Learner learner(params);
  LearnedQuantization learned;
  PD_ASSIGN_OR_RETURN(const ProgramDesc stripped, learner.Strip(program));
  PD_ASSIGN_OR_RETURN(learned.model, Freeze(stripped, names, params));
  if (fold && learner.per_channel())
    PD_RETURN_IF_ERROR(FoldBatchNorms(&learned.model).status());
  PD_RETURN_IF_ERROR(learner.Fill(&learned));
  return learned;
}

void RoundBeforeMoves(const InferenceModel& model, Quantization* q) {
  static const auto* const kMoves =
      new std::set<std::string>{"reshape2",   "flatten_contiguous_range",
                                "flatten2",   "squeeze2",
                                "unsqueeze2", "reshape",
                                "transpose2"};
  const std::vector<OpDesc>& ops = model.program.global().ops;
  std::map<std::string, int> readers;
  for (const OpDesc& op : ops)
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names) ++readers[name];
  for (const std::string& name : model.names.fetches) ++readers[name];
  for (const std::string& name : model.names.feeds) ++readers[name];
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    const bool maximum =
        op->type == "pool2d" && op->Attr<std::string>("pooling_type") == "max";
    if (!maximum && kMoves->count(op->type) == 0) continue;
    const auto it = q->thresholds.find(op->Out("Out"));
    if (it != q->thresholds.end() && readers[op->In("X")] == 1)
      q->thresholds.emplace(op->In("X"), it->second);
  }
  for (const OpDesc& op : ops) {
    if (op.type != "relu") continue;
    const auto it = q->thresholds.find(op.Out("Out"));
    if (it != q->thresholds.end())
      q->ends[it->first] = {0.0f, static_cast<float>(it->second)};
  }
}

absl::StatusOr<InferenceModel> FreezeSimulated(const ProgramDesc& program,
                                               const FeedFetch& names,
                                               const NamedArrays& params) {
  ProgramDesc without = program;
  for (OpDesc& op : without.global().ops) {
    if (!IsFake(op)) continue;
    const auto drop = [](SlotList* slots,
                         const std::vector<std::string>& gone) {
      for (const std::string& name : gone)
        for (auto it = slots->begin(); it != slots->end();)
          it = it->first == name ? slots->erase(it) : std::next(it);
    };
    drop(&op.inputs, {"InState", "InAccum"});
    drop(&op.outputs, {"OutState", "OutAccum"});
  }
  return Freeze(without, names, params);
}

}  // namespace pd
