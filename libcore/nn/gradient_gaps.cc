// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/gradient_gaps.h"

#include <map>

#include "libcore/base/error.h"

namespace pd {
namespace {

// Floating-point variables that something is known to flow into, by name.
template <typename Value>
class Flow {
 public:
  explicit Flow(const BlockDesc& block) : block_(block) {}

  void Start(const std::string& variable, Value value) {
    values_.emplace(variable, std::move(value));
  }
  // The value of the first input that has one; null without.
  const Value* Into(const OpDesc& op) const {
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        if (const Value* value = At(name)) return value;
    return nullptr;
  }
  void OutOf(const OpDesc& op, const Value& value) {
    for (const auto& [slot, names] : op.outputs)
      for (const std::string& name : names) {
        const VarDesc* var = block_.FindVar(name);
        if (var != nullptr && !var->stop_gradient &&
            (IsFloating(var->dtype) || IsComplex(var->dtype)))
          values_.emplace(name, value);
      }
  }
  const Value* At(const std::string& variable) const {
    const auto it = values_.find(variable);
    return it == values_.end() ? nullptr : &it->second;
  }

 private:
  const BlockDesc& block_;
  std::map<std::string, Value> values_;
};

// An op without a gradient and a parameter that reaches it.
struct Gap {
  const NamedOp* op;
  std::string parameter;
};

}  // namespace

absl::Status CheckGradientGaps(const OpRegistry& registry,
                               const BuiltModel& built,
                               const std::vector<NamedOp>& ops) {
  if (ops.empty() || built.loss.empty()) return absl::OkStatus();
  const BlockDesc& block = built.main.global();
  std::map<size_t, const NamedOp*> named;
  for (const NamedOp& op : ops) named[op.op] = &op;
  Flow<std::string> parameters(block);
  for (const ParameterSettings& p : built.parameters)
    if (p.trainable) parameters.Start(p.name, p.name);
  Flow<Gap> gaps(block);
  for (size_t i = 0; i < block.ops.size(); ++i) {
    const OpDesc& op = block.ops[i];
    const OpDef* def = registry.Find(op.type);
    if (def == nullptr) continue;
    const std::string* parameter = parameters.Into(op);
    const Gap* gap = gaps.Into(op);
    if (def->has_grad()) {
      if (parameter != nullptr) parameters.OutOf(op, std::string(*parameter));
      if (gap != nullptr) gaps.OutOf(op, Gap(*gap));
    } else if (const auto it = named.find(i);
               it != named.end() && parameter != nullptr) {
      gaps.OutOf(op, {it->second, *parameter});
    }
  }
  const Gap* gap = gaps.At(built.loss);
  if (gap == nullptr) return absl::OkStatus();
  return Annotate(
      InvalidArgument("layer '%s': operator '%s' has no gradient, and the "
                      "parameter '%s' reaches the loss through it; put a layer "
                      "detach {} before it where nothing is to be learned "
                      "through it",
                      gap->op->layer, block.ops[gap->op->op].type,
                      gap->parameter),
      gap->op->place);
}

}  // namespace pd
