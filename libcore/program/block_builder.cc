// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/block_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

std::string Describe(const OpDesc& op) {
  for (const auto& [slot, names] : op.outputs)
    for (const std::string& name : names)
      if (name != kEmptyVar)
        return absl::StrCat("op '", op.type, "' that makes '", name, "'");
  return absl::StrCat("op '", op.type, "'");
}

TensorMeta MetaOf(const VarDesc& var) {
  TensorMeta meta;
  meta.dtype = var.dtype;
  meta.shape = var.shape;
  for (int64_t& extent : meta.shape) extent = std::max<int64_t>(extent, -1);
  meta.lod_level = var.lod_level;
  meta.kind = var.kind;
  return meta;
}

// Infers a normalized op with variables looked up and stored by the two
// functions.
template <typename FindVar, typename SetVar>
absl::Status Infer(const OpDef& def, const OpDesc& op, int64_t version,
                   const FindVar& find_var, const SetVar& set_var) {
  std::map<std::string, TensorMeta> metas;
  for (const auto& [slot, names] : op.inputs) {
    for (const std::string& name : names) {
      if (name == kEmptyVar) continue;
      const VarDesc* var = find_var(name);
      if (var == nullptr)
        return NotFound("input '%s' names variable '%s', which does not exist",
                        slot, name);
      metas[name] = MetaOf(*var);
    }
  }
  InferContext context(
      op, version,
      [&](const std::string& name) -> const TensorMeta* {
        const auto it = metas.find(name);
        return it == metas.end() ? nullptr : &it->second;
      },
      [&](const std::string& name, TensorMeta meta) {
        set_var(name, std::move(meta));
      });
  return def.InferOutputs(&context);
}

void Assign(TensorMeta meta, VarDesc* var) {
  var->dtype = meta.dtype;
  var->shape = std::move(meta.shape);
  var->lod_level = meta.lod_level;
  var->kind = meta.kind;
}

}  // namespace

BlockBuilder::BlockBuilder(const OpRegistry* registry, ProgramDesc* program,
                           int32_t block)
    : registry_(registry), program_(program), levels_{{block, {}}} {
  Refresh();
}

void BlockBuilder::Refresh() {
  PD_INVARIANT(levels_.size() == 1);
  levels_[0].index.clear();
  const auto& vars = block().vars;
  for (size_t i = 0; i < vars.size(); ++i) levels_[0].index[vars[i].name] = i;
}

int32_t BlockBuilder::Enter() {
  BlockDesc inside;
  inside.idx = static_cast<int32_t>(program_->blocks.size());
  inside.parent_idx = block_index();
  levels_.push_back({inside.idx, {}});
  program_->blocks.push_back(std::move(inside));
  return block_index();
}

void BlockBuilder::Leave() {
  PD_INVARIANT(levels_.size() > 1);
  levels_.pop_back();
}

void BlockBuilder::Drop() {
  const auto gone = static_cast<size_t>(block_index());
  Leave();
  program_->blocks.resize(gone);
}

int BlockBuilder::NextNumber(absl::string_view kind) {
  return numbers_[std::string(kind)]++;
}

std::string BlockBuilder::UniqueTemporary(absl::string_view op_type) {
  std::string name;
  do {
    name = absl::StrCat(op_type, "_", NextNumber(absl::StrCat(op_type, ".tmp")),
                        ".tmp_0");
  } while (FindVar(name) != nullptr);
  return name;
}

VarDesc* BlockBuilder::AddTo(Level* level, VarDesc var) {
  PD_INVARIANT(level->index.find(var.name) == level->index.end());
  std::vector<VarDesc>& vars = BlockOf(*level).vars;
  level->index[var.name] = vars.size();
  vars.push_back(std::move(var));
  return &vars.back();
}

VarDesc* BlockBuilder::AddVar(VarDesc var) {
  return AddTo(var.persistable ? &levels_.front() : &levels_.back(),
               std::move(var));
}

VarDesc* BlockBuilder::AddVarAround(VarDesc var) {
  PD_INVARIANT(levels_.size() > 1);
  return AddTo(&levels_[levels_.size() - 2], std::move(var));
}

VarDesc* BlockBuilder::MutableVar(absl::string_view name) {
  for (const Level* level : {&levels_.back(), &levels_.front()}) {
    const auto it = level->index.find(name);
    if (it == level->index.end()) continue;
    VarDesc* var = &BlockOf(*level).vars[it->second];
    if (level == &levels_.back() || var->persistable) return var;
  }
  return nullptr;
}

const VarDesc* BlockBuilder::FindVar(absl::string_view name) const {
  const Level& level = levels_.back();
  const BlockDesc& block = program_->blocks[static_cast<size_t>(level.block)];
  const auto it = level.index.find(name);
  if (it != level.index.end()) return &block.vars[it->second];
  return block.parent_idx >= 0 ? program_->FindVar(block.parent_idx, name)
                               : nullptr;
}

absl::Status BlockBuilder::Append(OpDesc op) {
  PD_ASSIGN_OR_RETURN(const OpDef* def, registry_->Get(op.type));
  const absl::Status valid = def->Normalize(&op);
  if (!valid.ok()) return Annotate(valid, Describe(op));
  op.attrs.emplace(std::string(kOpRoleAttr), role_);
  for (const SlotDef& slot : def->inputs()) {
    const auto there = [&slot](const auto& input) {
      return input.first == slot.name;
    };
    if (std::none_of(op.inputs.begin(), op.inputs.end(), there))
      op.inputs.emplace_back(slot.name, std::vector<std::string>());
  }
  for (const auto& [slot, names] : op.outputs) {
    for (const std::string& name : names) {
      if (name == kEmptyVar || FindVar(name) != nullptr) continue;
      VarDesc var;
      var.name = name;
      AddVar(std::move(var));
    }
  }
  const absl::Status status = Infer(
      *def, op, program_->version,
      [&](const std::string& n) { return FindVar(n); },
      [&](const std::string& name, TensorMeta meta) {
        // A parameter keeps the shape that it was declared with.
        VarDesc* var = MutableVar(name);
        if (var != nullptr && !var->persistable) Assign(std::move(meta), var);
      });
  if (!status.ok()) return Annotate(status, Describe(op));
  block().ops.push_back(std::move(op));
  return absl::OkStatus();
}

absl::StatusOr<std::string> BlockBuilder::Unary(
    absl::string_view type, const std::string& x,
    std::map<std::string, Attribute> attrs) {
  OpDesc op;
  op.type = std::string(type);
  op.SetInput("X", {x});
  const std::string out = UniqueTemporary(type);
  op.SetOutput("Out", {out});
  op.attrs = std::move(attrs);
  PD_RETURN_IF_ERROR(Append(std::move(op)));
  return out;
}

absl::Status InferOp(const OpRegistry& registry, const OpDesc& op,
                     int32_t block, ProgramDesc* program) {
  BlockDesc& b = program->blocks[static_cast<size_t>(block)];
  const absl::StatusOr<const OpDef*> def = registry.Get(op.type);
  if (!def.ok()) return Annotate(def.status(), Describe(op));
  OpDesc normalized = op;
  absl::Status status = (*def)->Normalize(&normalized);
  if (!status.ok()) return Annotate(status, Describe(op));
  status = Infer(
      **def, normalized, program->version,
      [&](const std::string& n) { return program->FindVar(block, n); },
      [&](const std::string& name, TensorMeta meta) {
        VarDesc* var = b.FindVar(name);
        if (var == nullptr) {
          b.vars.emplace_back();
          var = &b.vars.back();
          var->name = name;
        }
        if (!var->persistable) Assign(std::move(meta), var);
      });
  return status.ok() ? status : Annotate(status, Describe(op));
}

}  // namespace pd
