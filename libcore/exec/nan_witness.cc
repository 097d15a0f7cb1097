// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/nan_witness.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "libcore/ops/non_finite.h"

namespace pd {

std::string WitnessSlot(const OpDesc& op, const std::string& slot,
                        const Tensor& input) {
  // Halves are computed with as float, and rounded.
  if (input.dtype() != DType::kFloat32 && input.dtype() != DType::kFloat64)
    return "";
  if (input.kind() != VarKind::kLodTensor) return "";
  for (const NonFiniteRule& rule : NonFiniteFactsOf(op.type).rules)
    if (slot == rule.input && !op.Output(rule.output).empty() &&
        op.Output(rule.output)[0] != kEmptyVar &&
        (rule.holds == nullptr || rule.holds(op)))
      return rule.output;
  return "";
}

std::vector<std::vector<bool>> ValuesToCheck(
    const Plan& plan, const std::vector<std::vector<bool>>& able) {
  std::vector<std::vector<bool>> result = able;
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
      seen[name] = able[i][k];
      if (witnessed.count(value) > 0 && writers[value] == 1)
        result[i][k] = false;
    }
    if (NonFiniteFactsOf(step.op.type).rules.empty()) continue;
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
