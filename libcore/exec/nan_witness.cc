// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/nan_witness.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace pd {
namespace {

struct Rule {
  const char* input;
  const char* output;
};

// Every element of the input is a summand of an element of the output, times
// something at most: NaN stays NaN, an infinity stays one or becomes NaN
// against another infinity or zero.
const std::multimap<std::string, Rule>& Rules() {
  static const auto* rules = new std::multimap<std::string, Rule>{
      {"batch_norm", {"X", "SavedMean"}},
      {"batch_norm_grad", {"Y@GRAD", "Bias@GRAD"}},
      {"conv2d", {"Input", "Output"}},
      {"conv2d_grad", {"Output@GRAD", "Filter@GRAD"}},
      {"elementwise_add", {"X", "Out"}},
      {"elementwise_add", {"Y", "Out"}},
      {"elementwise_sub", {"X", "Out"}},
      {"elementwise_sub", {"Y", "Out"}},
      {"fused_batch_norm_act", {"X", "SavedMean"}},
      {"layer_norm", {"X", "Mean"}},
      {"layer_norm_grad", {"Y@GRAD", "Bias@GRAD"}},
      {"matmul_v2", {"X", "Out"}},
      {"matmul_v2", {"Y", "Out"}},
      {"matmul_v2_grad", {"Out@GRAD", "X@GRAD"}},
      {"matmul_v2_grad", {"Out@GRAD", "Y@GRAD"}},
      {"mean", {"X", "Out"}},
      {"mul", {"X", "Out"}},
      {"mul_grad", {"Out@GRAD", "Y@GRAD"}},
      {"reduce_mean", {"X", "Out"}},
      {"reduce_sum", {"X", "Out"}},
      {"sum", {"X", "Out"}}};
  return *rules;
}

bool AllOnes(const std::vector<int32_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [](int32_t n) { return n == 1; });
}

// Whether an op's attributes meet the assumptions of the rules above.
bool Holds(const OpDesc& op) {
  if (op.type == "batch_norm" || op.type == "fused_batch_norm_act")
    return !op.AttrOr<bool>("is_test", false) &&
           !op.AttrOr<bool>("use_global_stats", false);
  if (op.type == "batch_norm_grad")
    return !op.AttrOr<bool>("is_test", false) &&
           !op.AttrOr<bool>("use_global_stats", false);
  // Larger strides may step over elements.
  if (op.type == "conv2d")
    return AllOnes(op.AttrOr<std::vector<int32_t>>("strides", {1})) &&
           AllOnes(op.AttrOr<std::vector<int32_t>>("dilations", {1})) &&
           op.AttrOr<std::string>("fuse_activation", "").empty();
  return true;
}

}  // namespace

std::string WitnessSlot(const OpDesc& op, const std::string& slot,
                        const Tensor& input) {
  // Halves are computed with as float, and rounded.
  if (input.dtype() != DType::kFloat32 && input.dtype() != DType::kFloat64)
    return "";
  if (input.kind() != VarKind::kLodTensor || !Holds(op)) return "";
  const auto [begin, end] = Rules().equal_range(op.type);
  for (auto rule = begin; rule != end; ++rule)
    if (slot == rule->second.input && !op.Output(rule->second.output).empty() &&
        op.Output(rule->second.output)[0] != kEmptyVar)
      return rule->second.output;
  return "";
}

std::vector<std::vector<bool>> ValuesToCheck(
    const Plan& plan, const std::vector<std::vector<bool>>& looked_at) {
  std::vector<std::vector<bool>> result = looked_at;
  // Values that later steps bear witness to, going backwards.
  std::unordered_set<const Tensor*> witnessed;
  // A variable is one tensor for several values.
  std::unordered_map<const Tensor*, int> writers;
  for (size_t i = 0; i < plan.steps().size(); ++i) {
    for (const auto& [name, tensor] : plan.variables(i).outputs)
      ++writers[plan.ValueOf(tensor)];
    for (const auto& [name, tensor] : plan.variables(i).inputs)
      for (const auto& [other, out] : plan.variables(i).outputs)
        if (tensor == out) writers[tensor] = 2;
  }
  for (size_t i = plan.steps().size(); i-- > 0;) {
    const StepVariables& step = plan.variables(i);
    std::map<std::string, bool> seen;  // outputs whose bad numbers show
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      const auto& [name, tensor] = step.outputs[k];
      const Tensor* value = plan.ValueOf(tensor);
      seen[name] = looked_at[i][k];
      if (witnessed.count(value) > 0 && writers[value] == 1)
        result[i][k] = false;
    }
    for (const auto& [slot, names] : step.op.inputs)
      for (const std::string& name : names)
        for (const auto& [input_name, tensor] : step.inputs) {
          if (input_name != name) continue;
          const std::string witness = WitnessSlot(step.op, slot, *tensor);
          if (witness.empty()) continue;
          const auto it = seen.find(step.op.Output(witness)[0]);
          if (it != seen.end() && it->second)
            witnessed.insert(plan.ValueOf(tensor));
        }
  }
  return result;
}

}  // namespace pd
