// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/gradient_gaps.h"

#include <map>
#include <utility>

#include "libcore/base/error.h"

namespace pd {
namespace {

// Floating-point variables that something is known to flow into, by name.
template <typename Value>
class Flow {
 public:
  explicit Flow(const ProgramDesc& program) : program_(program) {}

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
  void OutOf(const OpDesc& op, int32_t block, const Value& value) {
    for (const auto& [slot, names] : op.outputs)
      for (const std::string& name : names) {
        const VarDesc* var = program_.FindVar(block, name);
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
  const ProgramDesc& program_;
  std::map<std::string, Value> values_;
};

// An op without a gradient and a parameter that reaches it.
struct Gap {
  const NamedOp* op;
  std::string parameter;
};

// Follows parameters and gaps through the ops of a program.
class Walk {
 public:
  Walk(const OpRegistry& registry, const BuiltModel& built,
       const std::vector<NamedOp>& ops)
      : registry_(registry),
        program_(built.main),
        parameters_(program_),
        gaps_(program_) {
    for (const NamedOp& op : ops) named_[{op.block, op.op}] = &op;
    for (const ParameterSettings& p : built.parameters)
      if (p.trainable) parameters_.Start(p.name, p.name);
  }

  void Block(int32_t index) {
    const auto& ops = program_.blocks[static_cast<size_t>(index)].ops;
    for (size_t i = 0; i < ops.size(); ++i) Op(index, i, ops[i]);
  }
  const Gap* At(const std::string& variable) const {
    return gaps_.At(variable);
  }

 private:
  void Op(int32_t block, size_t at, const OpDesc& op) {
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr) return;
    if (def->runs_blocks()) return Inside(op);
    const std::string* parameter = parameters_.Into(op);
    const Gap* gap = gaps_.Into(op);
    if (def->has_grad()) {
      if (parameter != nullptr)
        parameters_.OutOf(op, block, std::string(*parameter));
      if (gap != nullptr) gaps_.OutOf(op, block, Gap(*gap));
    } else if (const auto it = named_.find({block, at});
               it != named_.end() && parameter != nullptr) {
      gaps_.OutOf(op, block, {it->second, *parameter});
    }
  }

  // A block writes variables around it under their own names. A second pass
  // takes what one run of a loop hands on to the next.
  void Inside(const OpDesc& op) {
    const Attribute* attr = op.FindAttr("sub_block");
    const auto* ref = attr == nullptr ? nullptr : std::get_if<BlockRef>(attr);
    if (ref == nullptr) return;
    for (int pass = 0; pass < 2; ++pass) Block(ref->index);
  }

  const OpRegistry& registry_;
  const ProgramDesc& program_;
  std::map<std::pair<int32_t, size_t>, const NamedOp*> named_;
  Flow<std::string> parameters_;
  Flow<Gap> gaps_;
};

}  // namespace

absl::Status CheckGradientGaps(const OpRegistry& registry,
                               const BuiltModel& built,
                               const std::vector<NamedOp>& ops) {
  if (ops.empty() || built.loss.empty()) return absl::OkStatus();
  Walk walk(registry, built, ops);
  walk.Block(0);
  const Gap* gap = walk.At(built.loss);
  if (gap == nullptr) return absl::OkStatus();
  const BlockDesc& block =
      built.main.blocks[static_cast<size_t>(gap->op->block)];
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
