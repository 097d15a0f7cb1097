// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/pipeline_stage.h"

#include <cmath>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "libcore/ir/op_names.h"

namespace pd {
namespace {

constexpr char kMerged[] = "@GRAD@MERGED";
constexpr double kMostMicroBatches = 1 << 20;

bool IsStage(const ProgramDesc& program) {
  for (const OpDesc& op : program.global().ops)
    if (op.type == "fill_constant" && RoleOf(op) == kRoleLRSched &&
        absl::EndsWith(op.Out("Out"), kMerged))
      return true;
  return false;
}

// 0: before the micro-batches, 1: in each, 2: after them.
int PartOf(const OpDesc& op) {
  const int32_t role = RoleOf(op);
  if ((role & kRoleLRSched) != 0) return 0;
  return (role & kRoleOptimize) != 0 ? 2 : 1;
}

}  // namespace

int64_t MicroBatchesOf(const ProgramDesc& program) {
  if (!IsStage(program)) return 1;
  for (const OpDesc& op : program.global().ops) {
    if (op.type != "fill_constant" || RoleOf(op) != (kRoleBackward | kRoleLoss))
      continue;
    const double count = 1.0 / static_cast<double>(op.AttrOr("value", 0.0f));
    const double rounded = std::round(count);
    if (rounded >= 1 && rounded <= kMostMicroBatches &&
        std::abs(count - rounded) < 1e-3 * rounded)
      return static_cast<int64_t>(rounded);
  }
  return 0;
}

PipelineStage CutPipelineStage(const ProgramDesc& program) {
  PipelineStage stage{program, program, program};
  ProgramDesc* const parts[] = {&stage.before, &stage.micro_batch,
                                &stage.after};
  for (ProgramDesc* part : parts) part->global().ops.clear();
  std::set<std::string> touched[3];
  for (const OpDesc& op : program.global().ops) {
    const int part = PartOf(op);
    parts[part]->global().ops.push_back(op);
    for (const auto* slots : {&op.inputs, &op.outputs})
      for (const auto& [slot, names] : *slots)
        touched[part].insert(names.begin(), names.end());
  }
  for (ProgramDesc* part : parts)
    for (VarDesc& var : part->global().vars) {
      int parts_with = 0;
      for (const auto& names : touched) parts_with += names.count(var.name) > 0;
      if (parts_with > 1) var.persistable = true;
    }
  return stage;
}

}  // namespace pd
