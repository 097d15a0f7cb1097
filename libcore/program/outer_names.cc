// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/outer_names.h"

namespace pd {
namespace {

// Deeper sub-blocks are refused when they run.
constexpr int kMaxDepth = 64;

void Collect(const ProgramDesc& program, const OpDesc& op, int depth,
             OuterNames* names);

void CollectBlock(const ProgramDesc& program, int32_t index, int depth,
                  OuterNames* names) {
  if (index < 0 || static_cast<size_t>(index) >= program.blocks.size() ||
      depth > kMaxDepth)
    return;
  const BlockDesc& block = program.blocks[static_cast<size_t>(index)];
  OuterNames inside;
  for (const OpDesc& op : block.ops) Collect(program, op, depth + 1, &inside);
  // A gradient block works on the variables of its forward block.
  const int32_t forward = block.forward_block_idx;
  const BlockDesc* also =
      forward > 0 && static_cast<size_t>(forward) < program.blocks.size()
          ? &program.blocks[static_cast<size_t>(forward)]
          : nullptr;
  std::set<std::string> local;
  for (const VarDesc& var : block.vars) local.insert(var.name);
  if (also != nullptr)
    for (const VarDesc& var : also->vars) local.insert(var.name);
  for (const std::string& name : inside.reads)
    if (local.count(name) == 0) names->reads.insert(name);
  for (const std::string& name : inside.writes)
    if (local.count(name) == 0) names->writes.insert(name);
}

void Collect(const ProgramDesc& program, const OpDesc& op, int depth,
             OuterNames* names) {
  for (const auto& [slot, list] : op.inputs)
    names->reads.insert(list.begin(), list.end());
  for (const auto& [slot, list] : op.outputs)
    names->writes.insert(list.begin(), list.end());
  for (const auto& [name, attr] : op.attrs) {
    if (const auto* ref = std::get_if<BlockRef>(&attr))
      CollectBlock(program, ref->index, depth, names);
    if (const auto* refs = std::get_if<BlockRefs>(&attr))
      for (int32_t index : refs->indices)
        CollectBlock(program, index, depth, names);
  }
  names->reads.erase(std::string(kEmptyVar));
  names->writes.erase(std::string(kEmptyVar));
}

}  // namespace

OuterNames OuterNamesOf(const ProgramDesc& program, const OpDesc& op) {
  OuterNames names;
  Collect(program, op, 0, &names);
  return names;
}

}  // namespace pd
