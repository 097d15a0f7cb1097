// SPDX-License-Identifier: Apache-2.0
// Appends ops to a block, or to blocks inside of it: makes unique names,
// declares output variables, infers their shapes and dtypes at once. Layers,
// gradients and optimizers are built with it.
#ifndef PD_LIBCORE_PROGRAM_BLOCK_BUILDER_H_
#define PD_LIBCORE_PROGRAM_BLOCK_BUILDER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

class BlockBuilder {
 public:
  /// Appends to block `block` of `program`; both outlive the builder.
  BlockBuilder(const OpRegistry* registry, ProgramDesc* program,
               int32_t block = 0);

  ProgramDesc* program() { return program_; }
  BlockDesc& block() { return BlockOf(levels_.back()); }
  int32_t block_index() const { return levels_.back().block; }
  const OpRegistry& registry() const { return *registry_; }

  /// "relu" -> "relu_0.tmp_0", then "relu_1.tmp_0": PaddlePaddle's manner.
  std::string UniqueTemporary(absl::string_view op_type);
  /// "conv2d" -> 0, then 1: the number of the next layer of this kind.
  int NextNumber(absl::string_view kind);

  /// Begins a block inside the current one: ops and variables go there from now
  /// on. Gives its number.
  int32_t Enter();
  /// Looks the variables of the block where the builder began up again, after
  /// others have appended to it. Only there, not within another block.
  void Refresh();
  /// Goes back to the block around the current one.
  void Leave();
  /// Leave, and the block and those inside of it are gone again.
  void Drop();

  /// Declares a variable (replaces nothing: the name must be new). A
  /// persistable one goes to the block where the builder began.
  VarDesc* AddVar(VarDesc var);
  /// Declares a variable in the block around the current one.
  VarDesc* AddVarAround(VarDesc var);
  /// Null when this block and its parents have none.
  const VarDesc* FindVar(absl::string_view name) const;
  /// A variable of this block, or a persistable one.
  VarDesc* MutableVar(absl::string_view name);

  /// Appends `op`: checks it against its schema, declares missing output
  /// variables, infers. The op is stored with every attribute of its schema
  /// (PaddlePaddle's kernels ask for them), every input slot, be it empty (its
  /// gradients ask for them) and the op_role in force here. An error names the
  /// op and its first output.
  absl::Status Append(OpDesc op);

  /// Append for one input "X" and one output "Out"; gives the output's name.
  absl::StatusOr<std::string> Unary(
      absl::string_view type, const std::string& x,
      std::map<std::string, Attribute> attrs = {});

  /// op_role of the ops appended from now on.
  void set_role(int32_t role) { role_ = role; }

 private:
  // A block under construction.
  struct Level {
    int32_t block;
    std::map<std::string, size_t, std::less<>> index;  // variable -> its place
  };
  BlockDesc& BlockOf(const Level& level) {
    return program_->blocks[static_cast<size_t>(level.block)];
  }
  VarDesc* AddTo(Level* level, VarDesc var);

  const OpRegistry* registry_;
  ProgramDesc* program_;
  std::vector<Level> levels_;  // from where the builder began to where it is
  int32_t role_ = kRoleForward;
  std::map<std::string, int> numbers_;
};

/// Infers the outputs of one op from the variables of its block and writes
/// them back; missing output variables are declared.
absl::Status InferOp(const OpRegistry& registry, const OpDesc& op,
                     int32_t block, ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_BLOCK_BUILDER_H_
