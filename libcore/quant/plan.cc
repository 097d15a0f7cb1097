// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/plan.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/linalg/product_attrs.h"
#include "libcore/quant/op_table.h"

namespace pd {
namespace {

bool Matches(const std::string& pattern, const std::string& name) {
  return pattern == name || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::vector<std::string> AllNames(const OpDesc& op) {
  std::vector<std::string> names;
  for (const SlotList* slots : {&op.inputs, &op.outputs})
    for (const auto& [slot, variables] : *slots)
      names.insert(names.end(), variables.begin(), variables.end());
  return names;
}

class Planner {
 public:
  Planner(const InferenceModel& model, const SkipList& skips)
      : model_(model), block_(model.program.global()), skips_(skips) {}

  absl::StatusOr<QuantPlan> Run() {
    PD_RETURN_IF_ERROR(CheckIsFloat());
    PD_RETURN_IF_ERROR(CheckSkips());
    for (size_t i = 0; i < block_.ops.size(); ++i) AddOp(i);
    DropSharedWeights();
    Observe();
    for (size_t b = 1; b < model_.program.blocks.size(); ++b)
      for (const OpDesc& op : model_.program.blocks[b].ops)
        if (MayHoldWeight(op.type)) Leave(op, "it is in a sub-block");
    return std::move(plan_);
  }

 private:
  absl::Status CheckIsFloat() const {
    for (const OpDesc& op : block_.ops)
      if (absl::StartsWith(op.type, "fake_") ||
          absl::StrContains(op.type, "quantize_linear"))
        return FailedPrecondition(
            "the model is quantized already: it has the op '%s' on '%s'",
            op.type, op.inputs.empty() ? "" : op.In("X"));
    // An imported QuantizeLinear is many ops, but its weights are integers.
    for (const auto& [name, value] : model_.params)
      if (value.dtype == DType::kInt8 && value.shape.size() >= 2)
        return FailedPrecondition(
            "the model is quantized already: the parameter '%s' is int8", name);
    return absl::OkStatus();
  }

  absl::Status CheckSkips() const {
    for (const std::string& skip : skips_) {
      std::set<std::string> names;
      for (const OpDesc& op : block_.ops) {
        names.insert(op.type);
        for (const std::string& name : AllNames(op)) names.insert(name);
      }
      if (std::any_of(names.begin(), names.end(),
                      [&](const auto& n) { return Matches(skip, n); }))
        continue;
      const std::string nearest = Nearest(skip, names);
      return NotFound(
          "'%s' is no op type or variable of the model, nor a pattern that "
          "matches one%s",
          skip,
          nearest.empty() ? ""
                          : absl::StrCat(", did you mean '", nearest, "'?"));
    }
    return absl::OkStatus();
  }

  bool IsParam(const std::string& name) const {
    return model_.params.count(name) > 0;
  }

  void Leave(const OpDesc& op, const std::string& why) {
    const std::vector<std::string> outputs = QuantOutputs(op);
    plan_.left.push_back({op.type, outputs.empty() ? "" : outputs[0], why});
  }

  // The axis of the weight's scales, -1 where one scale has to do.
  int AxisOf(const OpDesc& op, const std::string& weight) const {
    if (op.type == "conv2d" || op.type == "depthwise_conv2d") return 0;
    if (op.type == "conv2d_transpose") return 1;
    const bool second = op.In("Y") == weight && op.In("X") != weight;
    if (!second || model_.params.at(weight).shape.size() != 2) return -1;
    return ProductAttrsOf(op).trans_y ? 0 : 1;
  }

  void AddOp(size_t i) {
    const OpDesc& op = block_.ops[i];
    if (!MayHoldWeight(op.type)) return;
    QuantOp found;
    found.op = i;
    const std::vector<std::string> inputs = QuantInputs(op);
    for (const std::string& name : inputs) {
      const VarDesc* var = block_.FindVar(name);
      if (var == nullptr || var->dtype != DType::kFloat32)
        return Leave(op, absl::StrCat("'", name, "' is not float32"));
      if (!IsParam(name))
        found.activations.push_back(name);
      else if (found.weight.empty())
        found.weight = name;
      else
        return Leave(op, "both inputs are parameters");
    }
    if (!op.In("Bias").empty()) return Leave(op, "it adds a bias of its own");
    const std::string skip = SkippedBy(skips_, op);
    if (!skip.empty())
      return Leave(op, absl::StrCat("skipped by '", skip, "'"));
    if (found.weight.empty() && !IsProduct(op.type))
      return Leave(op, "its filter is computed");
    if (found.activations.empty()) return Leave(op, "it reads no activation");
    found.output = QuantOutputs(op)[0];
    if (!found.weight.empty()) found.axis = AxisOf(op, found.weight);
    plan_.ops.push_back(std::move(found));
  }

  // A weight becomes integers where all its readers take them alike.
  void DropSharedWeights() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t k = 0; k < plan_.ops.size() && !changed; ++k) {
        const QuantOp& found = plan_.ops[k];
        if (found.weight.empty()) continue;
        const std::string other = OtherReader(found);
        if (other.empty()) continue;
        Leave(block_.ops[found.op], absl::StrCat("its weight '", found.weight,
                                                 "' is read by ", other));
        plan_.ops.erase(plan_.ops.begin() + static_cast<std::ptrdiff_t>(k));
        changed = true;
      }
    }
  }

  std::string OtherReader(const QuantOp& found) const {
    for (const BlockDesc& block : model_.program.blocks)
      for (size_t i = 0; i < block.ops.size(); ++i) {
        const OpDesc& op = block.ops[i];
        const std::vector<std::string> names = AllNames(op);
        if (std::count(names.begin(), names.end(), found.weight) == 0) continue;
        const auto same = std::find_if(
            plan_.ops.begin(), plan_.ops.end(), [&](const QuantOp& q) {
              return block.idx == 0 && q.op == i && q.weight == found.weight;
            });
        if (same == plan_.ops.end()) return absl::StrCat("'", op.type, "' too");
        if (same->axis != found.axis)
          return absl::StrCat("'", op.type, "' along another axis");
      }
    return "";
  }

  void See(const std::string& name) {
    const VarDesc* var = block_.FindVar(name);
    if (var == nullptr || IsParam(name) || var->dtype != DType::kFloat32 ||
        var->kind != VarKind::kLodTensor || !seen_.insert(name).second)
      return;
    plan_.observed.push_back(name);
  }

  // Inputs too, so that a NaN is found where it comes from.
  void Observe() {
    for (const std::string& feed : model_.names.feeds) See(feed);
    for (size_t i = 0; i < block_.ops.size(); ++i) {
      const OpDesc& op = block_.ops[i];
      if (MayHoldWeight(op.type))
        for (const std::string& name : QuantInputs(op)) See(name);
      for (const std::string& name : QuantOutputs(op)) See(name);
    }
  }

  const InferenceModel& model_;
  const BlockDesc& block_;
  const SkipList& skips_;
  QuantPlan plan_;
  std::set<std::string> seen_;
};

}  // namespace

std::string SkippedBy(const SkipList& skips, const OpDesc& op) {
  for (const std::string& skip : skips) {
    if (Matches(skip, op.type)) return skip;
    for (const std::string& name : AllNames(op))
      if (Matches(skip, name)) return skip;
  }
  return "";
}

absl::StatusOr<QuantPlan> PlanQuantization(const InferenceModel& model,
                                           const SkipList& skips) {
  return Planner(model, skips).Run();
}

bool IsAnswer(const InferenceModel& model, const std::string& name) {
  static const auto* const kPass = new std::set<std::string>{
      "scale", "assign", "softmax", "sigmoid", "arg_max", "cast"};
  std::string result;
  for (const OpDesc& op : model.program.global().ops)
    for (const auto& [slot, names] : op.inputs) {
      if (std::count(names.begin(), names.end(), name) == 0) continue;
      if (!result.empty() || kPass->count(op.type) == 0) return false;
      result = op.Out("Out");
      if (result == name) return false;
    }
  const auto& fetches = model.names.fetches;
  return result.empty() ? std::count(fetches.begin(), fetches.end(), name) > 0
                        : IsAnswer(model, result);
}

void LeaveInFloat(const InferenceModel& model, const std::string& output,
                  const std::string& why, QuantPlan* plan) {
  // A weight that several ops read stays with all of them.
  std::set<std::string> weights;
  for (const QuantOp& op : plan->ops)
    if (op.output == output && !op.weight.empty()) weights.insert(op.weight);
  std::vector<QuantOp> kept;
  for (QuantOp& op : plan->ops) {
    if (op.output != output && weights.count(op.weight) == 0) {
      kept.push_back(std::move(op));
      continue;
    }
    plan->left.push_back(
        {model.program.global().ops[op.op].type, op.output, why});
  }
  plan->ops = std::move(kept);
}

}  // namespace pd
