// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/verifier.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "formats/pdmodel.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/op_names.h"

namespace pd {
namespace {

std::string PlaceOf(const BlockDesc& block, size_t op) {
  return absl::StrCat("block ", block.idx, ", op ", op, " '",
                      block.ops[op].type, "'");
}

std::vector<std::string> DeclaredNames(const BlockDesc& block) {
  std::vector<std::string> names;
  for (const VarDesc& var : block.vars) names.push_back(var.name);
  return names;
}

class BlockVerifier {
 public:
  BlockVerifier(const OpRegistry& registry, const ProgramDesc& program,
                const BlockDesc& block)
      : registry_(registry), program_(program), block_(block) {
    for (const VarDesc& var : block.vars) declared_[var.name] = &var;
    for (size_t i = 0; i < block.ops.size(); ++i)
      for (const auto& slot : block.ops[i].outputs)
        for (const std::string& name : slot.second) first_.emplace(name, i);
  }

  absl::Status Verify() {
    for (size_t i = 0; i < block_.ops.size(); ++i) {
      const absl::Status status = VerifyOp(i);
      if (!status.ok()) return Annotate(status, PlaceOf(block_, i));
    }
    return absl::OkStatus();
  }

 private:
  const VarDesc* FindVar(const std::string& name) const {
    const auto it = declared_.find(name);
    if (it != declared_.end()) return it->second;
    // A gradient block works on the variables of its forward block.
    if (block_.forward_block_idx > 0) {
      const VarDesc* var = program_.FindVar(block_.forward_block_idx, name);
      if (var != nullptr) return var;
    }
    return block_.parent_idx >= 0 ? program_.FindVar(block_.parent_idx, name)
                                  : nullptr;
  }

  absl::Status VerifyOp(size_t index) {
    const OpDesc& op = block_.ops[index];
    if (!IsFeedOrFetch(op)) {
      PD_ASSIGN_OR_RETURN(const OpDef* def, registry_.Get(op.type));
      normalized_ = op;
      PD_RETURN_IF_ERROR(def->Normalize(&normalized_));
    }
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        PD_RETURN_IF_ERROR(VerifyInput(slot, name, index));
    absl::flat_hash_set<absl::string_view> outputs;
    for (const auto& [slot, names] : op.outputs) {
      for (const std::string& name : names) {
        if (name == kEmptyVar) continue;
        if (FindVar(name) == nullptr) return Undeclared("output", slot, name);
        if (!outputs.insert(name).second)
          return InvalidArgument(
              "output '%s' writes '%s', which another output of the op writes "
              "too",
              slot, name);
      }
    }
    return absl::OkStatus();
  }

  absl::Status VerifyInput(const std::string& slot, const std::string& name,
                           size_t index) const {
    if (name == kEmptyVar) return absl::OkStatus();
    const VarDesc* var = FindVar(name);
    if (var == nullptr) return Undeclared("input", slot, name);
    // A variable of an outer block may have been made by an earlier turn of a
    // loop; persistables have values before the first op, and tensor arrays and
    // the like start empty.
    if (var->persistable || var->kind != VarKind::kLodTensor ||
        declared_.count(name) == 0)
      return absl::OkStatus();
    const auto made = first_.find(name);
    if (made == first_.end() || made->second < index) return absl::OkStatus();
    if (made->second == index && WritesInPlace(block_.ops[index], name))
      return absl::OkStatus();
    return InvalidArgument(
        "input '%s' reads '%s', which op %d '%s' makes only later", slot, name,
        made->second, block_.ops[made->second].type);
  }

  // A fed variable that its reader overwrites (a loop's variable, a counter).
  static bool WritesInPlace(const OpDesc& op, const std::string& name) {
    for (const auto& slot : op.inputs)
      for (const std::string& input : slot.second)
        if (input == name) return true;
    return false;
  }

  absl::Status Undeclared(const char* what, const std::string& slot,
                          const std::string& name) const {
    const std::string nearest = Nearest(name, DeclaredNames(block_));
    return NotFound("%s '%s' names variable '%s', which is not declared%s",
                    what, slot, name,
                    nearest.empty()
                        ? ""
                        : absl::StrCat("; the nearest is '", nearest, "'"));
  }

  const OpRegistry& registry_;
  const ProgramDesc& program_;
  const BlockDesc& block_;
  // By name: the variables of this block, and the op that first makes each.
  absl::flat_hash_map<absl::string_view, const VarDesc*> declared_;
  absl::flat_hash_map<absl::string_view, size_t> first_;
  OpDesc normalized_;  // one for all ops: most fit into its memory
};

}  // namespace

absl::Status VerifyProgram(const OpRegistry& registry,
                           const ProgramDesc& program) {
  PD_RETURN_IF_ERROR(CheckProgramStructure(program));
  for (const BlockDesc& block : program.blocks)
    PD_RETURN_IF_ERROR(BlockVerifier(registry, program, block).Verify());
  return absl::OkStatus();
}

absl::Status NormalizeOps(const OpRegistry& registry, ProgramDesc* program) {
  for (BlockDesc& block : program->blocks)
    for (size_t i = 0; i < block.ops.size(); ++i) {
      const OpDef* def = registry.Find(block.ops[i].type);
      if (def == nullptr) continue;
      const absl::Status status = def->Normalize(&block.ops[i]);
      if (!status.ok()) return Annotate(status, PlaceOf(block, i));
    }
  return absl::OkStatus();
}

absl::Status CheckFeeds(const ProgramDesc& program,
                        const std::vector<std::string>& feeds) {
  absl::flat_hash_set<absl::string_view> known(feeds.begin(), feeds.end());
  for (const std::string& name : feeds)
    if (program.FindVar(0, name) == nullptr)
      return NotFound("feed '%s' is not a variable of the program", name);
  for (const BlockDesc& block : program.blocks) {
    for (const VarDesc& var : block.vars)
      if (var.persistable || var.kind != VarKind::kLodTensor)
        known.insert(var.name);  // tensor arrays and the like start empty
    for (const OpDesc& op : block.ops)
      for (const auto& slot : op.outputs)
        known.insert(slot.second.begin(), slot.second.end());
  }
  for (const BlockDesc& block : program.blocks)
    for (size_t i = 0; i < block.ops.size(); ++i)
      for (const auto& [slot, names] : block.ops[i].inputs)
        for (const std::string& name : names)
          if (name != kEmptyVar && known.count(name) == 0)
            return InvalidArgument(
                "%s: input '%s' reads '%s', which is neither fed nor made",
                PlaceOf(block, i), slot, name);
  return absl::OkStatus();
}

}  // namespace pd
