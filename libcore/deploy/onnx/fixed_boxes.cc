// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx/fixed_boxes.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"

namespace pd {
namespace {

// A model that asks for more boxes is left to be refused.
constexpr int64_t kMostCells = int64_t{1} << 20;

bool LaysOutBoxes(const OpDesc& op) {
  return op.type == "prior_box" || op.type == "density_prior_box" ||
         op.type == "anchor_generator";
}

// Whether the inputs' heights and widths are known. The other extents change
// no box.
bool HasKnownExtents(const BlockDesc& block, const OpDesc& op) {
  for (const auto& [slot, names] : op.inputs)
    for (const std::string& name : names) {
      const VarDesc* var = block.FindVar(name);
      if (var == nullptr || var->shape.size() != 4) return false;
      const int64_t height = var->shape[2], width = var->shape[3];
      if (height < 1 || width < 1 || height > kMostCells / width) return false;
    }
  return true;
}

absl::StatusOr<NamedArrays> Compute(const OpRegistry& registry,
                                    const BlockDesc& block, const OpDesc& op,
                                    int64_t version) {
  ProgramDesc program;
  program.version = version;
  program.blocks.emplace_back();
  program.global().ops.push_back(op);
  NamedArrays feeds;
  for (const auto& [slot, names] : op.inputs)
    for (const std::string& name : names) {
      VarDesc var = *block.FindVar(name);
      var.persistable = false;
      var.shape[0] = var.shape[1] = 1;
      std::byte* bytes = nullptr;
      PD_ASSIGN_OR_RETURN(feeds[name], NewArray(var.dtype, var.shape, &bytes));
      std::memset(bytes, 0, feeds[name].size_bytes());
      program.global().vars.push_back(std::move(var));
    }
  std::vector<std::string> made;
  for (const auto& [slot, names] : op.outputs)
    for (const std::string& name : names) {
      if (name == kEmptyVar) continue;
      made.push_back(name);
      VarDesc var = *block.FindVar(name);
      var.persistable = false;
      program.global().vars.push_back(std::move(var));
    }
  Session session(&registry);
  return session.Run(program, feeds, made);
}

}  // namespace

absl::Status ComputeFixedBoxes(const OpRegistry& registry,
                               InferenceModel* model) {
  BlockDesc& block = model->program.global();
  std::vector<OpDesc> left;
  for (OpDesc& op : block.ops) {
    if (!LaysOutBoxes(op) || !HasKnownExtents(block, op)) {
      left.push_back(std::move(op));
      continue;
    }
    PD_ASSIGN_OR_RETURN(const NamedArrays boxes,
                        Compute(registry, block, op, model->program.version));
    for (const auto& [name, values] : boxes) {
      VarDesc* var = block.FindVar(name);
      var->persistable = true;
      var->shape = values.shape;
      model->params[name] = values;
    }
  }
  block.ops = std::move(left);
  return absl::OkStatus();
}

}  // namespace pd
