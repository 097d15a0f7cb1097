// SPDX-License-Identifier: Apache-2.0
#include "libcore/autodiff/block_flow.h"

#include <variant>

namespace pd {
namespace {

// An op replaces a tensor, but one element of an array.
bool Replaces(const ProgramDesc& program, int32_t block,
              const std::string& name) {
  const VarDesc* var = program.FindVar(block, name);
  return var != nullptr && var->kind == VarKind::kLodTensor;
}

// The block that an op runs behind block `around`; 0: none.
int32_t BlockOf(const ProgramDesc& program, const OpDesc& op, int32_t around) {
  const Attribute* attr = op.FindAttr("sub_block");
  const auto* ref = attr == nullptr ? nullptr : std::get_if<BlockRef>(attr);
  if (ref == nullptr || ref->index <= around ||
      static_cast<size_t>(ref->index) >= program.blocks.size())
    return 0;
  return ref->index;
}

}  // namespace

std::set<std::string> ReachesEnd(
    const OpRegistry& registry, const ProgramDesc& program, int32_t block,
    const std::function<bool(const std::string&)>& differentiable,
    std::set<std::string> after) {
  const auto& ops = program.blocks[static_cast<size_t>(block)].ops;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (const int32_t inside = BlockOf(program, *op, block); inside > 0) {
      // A block that may not run at all replaces nothing.
      after.merge(
          op->type == "while"
              ? ReachesLoopEnd(registry, program, inside, differentiable, after)
              : ReachesEnd(registry, program, inside, differentiable, after));
      continue;
    }
    bool reaches = false;
    for (const auto& [slot, names] : op->outputs)
      for (const std::string& name : names)
        if (after.count(name) > 0) {
          reaches = true;
          if (Replaces(program, block, name)) after.erase(name);
        }
    const OpDef* def = reaches ? registry.Find(op->type) : nullptr;
    if (def == nullptr || !def->has_grad()) continue;
    for (const auto& [slot, names] : op->inputs)
      for (const std::string& name : names)
        if (differentiable(name)) after.insert(name);
  }
  return after;
}

std::set<std::string> ReachesLoopEnd(
    const OpRegistry& registry, const ProgramDesc& program, int32_t block,
    const std::function<bool(const std::string&)>& differentiable,
    std::set<std::string> after) {
  for (size_t before = 0; before != after.size();) {
    before = after.size();
    after.merge(ReachesEnd(registry, program, block, differentiable, after));
  }
  return after;
}

}  // namespace pd
