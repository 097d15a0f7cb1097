// SPDX-License-Identifier: Apache-2.0
// An op that other ops do together (OpDef::Expand), and that has no fast kernel
// of its own -> those ops
//
//   fused_attention -> layer_norm, matmul_v2, ..., softmax, dropout, ...
//
// PaddlePaddle has such ops for GPUs, where one kernel does it all. Here the
// parts have fast kernels, and the passes behind this one fuse them as they
// fuse a network that was written in plain ops. An op stays where its parts
// cannot be made from what the program says of its variables; the plan then
// reports what is wrong with it, or runs its reference kernel.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libcore/ir/op_names.h"
#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

class Expander {
 public:
  Expander(const PassContext& context, ProgramDesc* program, size_t block)
      : context_(context), program_(program), block_(block) {}

  void Run() {
    const std::vector<OpDesc>& all = program_->blocks[block_].ops;
    if (std::none_of(all.begin(), all.end(), [this](const OpDesc& op) {
          return Expandable(op) != nullptr;
        }))
      return;
    for (const OpDesc& op : all)
      for (std::string& name : NamesOf(op.inputs))
        read_.insert(std::move(name));
    std::vector<OpDesc> ops;
    for (OpDesc& op : program_->blocks[block_].ops)
      if (!Expand(op, &ops)) ops.push_back(std::move(op));
    program_->blocks[block_].ops = std::move(ops);
  }

 private:
  // Null: the op stays.
  const OpDef* Expandable(const OpDesc& op) const {
    const OpDef* def = context_.registry->Find(op.type);
    return def != nullptr && def->expand() != nullptr &&
                   def->implementations().size() == 1
               ? def
               : nullptr;
  }

  // Appends the parts of the op, and theirs; false where it stays.
  bool Expand(const OpDesc& op, std::vector<OpDesc>* ops) {
    const OpDef* def = Expandable(op);
    if (def == nullptr) return false;
    OpDesc normal = op;
    if (!def->Normalize(&normal).ok()) return false;
    auto expansion = def->expand()(
        normal, [this](const std::string& name) { return Meta(name); });
    if (!expansion.ok() || !WritesWhatIsWanted(op, *expansion) ||
        !KeepsInputs(op, *expansion))
      return false;
    for (const auto& [name, meta] : expansion->inside) {
      VarDesc var;
      var.name = name;
      var.shape = meta.shape;
      var.dtype = meta.dtype;
      program_->blocks[block_].vars.push_back(std::move(var));
    }
    FillUnwritten(op, *expansion, ops);
    for (OpDesc& part : expansion->parts) {
      CopyOpAttrs({&op}, &part);
      if (!Expand(part, ops)) ops->push_back(std::move(part));
    }
    return true;
  }

  const TensorMeta* Meta(const std::string& name) {
    const VarDesc* var = program_->FindVar(static_cast<int32_t>(block_), name);
    if (var == nullptr || var->kind != VarKind::kLodTensor) return nullptr;
    TensorMeta& meta = metas_[name];
    meta.shape = var->shape;
    meta.dtype = var->dtype;
    return &meta;
  }

  // Outputs of the op that no part writes: PaddlePaddle's kernel keeps them for
  // another form of the op.
  static std::vector<std::string> Unwritten(const OpDesc& op,
                                            const Expansion& expansion) {
    std::set<std::string> written;
    for (const OpDesc& part : expansion.parts)
      for (std::string& name : NamesOf(part.outputs))
        written.insert(std::move(name));
    std::vector<std::string> unwritten;
    for (std::string& name : NamesOf(op.outputs))
      if (written.count(name) == 0) unwritten.push_back(std::move(name));
    return unwritten;
  }

  bool WritesWhatIsWanted(const OpDesc& op, const Expansion& expansion) const {
    for (const std::string& name : Unwritten(op, expansion))
      if (context_.keep.count(name) > 0) return false;
    return true;
  }

  // A gradient op may name them all the same: they have no elements then.
  void FillUnwritten(const OpDesc& op, const Expansion& expansion,
                     std::vector<OpDesc>* ops) const {
    for (const std::string& name : Unwritten(op, expansion)) {
      if (read_.count(name) == 0) continue;
      OpDesc fill;
      fill.type = "fill_constant";
      fill.SetOutput("Out", {name});
      fill.attrs["shape"] = std::vector<int64_t>{0};
      CompleteAttrs(context_, &fill);
      CopyOpAttrs({&op}, &fill);
      ops->push_back(std::move(fill));
    }
  }

  // No part reads an input that the op itself overwrites after another part has
  // done so.
  static bool KeepsInputs(const OpDesc& op, const Expansion& expansion) {
    const std::vector<std::string> inputs = NamesOf(op.inputs);
    const std::set<std::string> read(inputs.begin(), inputs.end());
    std::set<std::string> overwritten;
    for (const OpDesc& part : expansion.parts) {
      for (const std::string& name : NamesOf(part.inputs))
        if (overwritten.count(name) > 0) return false;
      for (const std::string& name : NamesOf(part.outputs))
        if (read.count(name) > 0) overwritten.insert(name);
    }
    return true;
  }

  const PassContext& context_;
  ProgramDesc* program_;
  size_t block_;
  std::map<std::string, TensorMeta> metas_;
  std::set<std::string> read_;  // by ops of the block
};

}  // namespace

absl::Status ExpandFused(const PassContext& context, ProgramDesc* program) {
  if (context.registry == nullptr) return absl::OkStatus();
  const bool gradients = HasGradientOps(*program);
  for (size_t block = 0; block < program->blocks.size(); ++block)
    if (block == 0 || !gradients) Expander(context, program, block).Run();
  return absl::OkStatus();
}

}  // namespace pd
