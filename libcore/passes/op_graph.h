// SPDX-License-Identifier: Apache-2.0
// The writers and readers of each variable of a block, for passes that replace
// chains of ops.
#ifndef PD_LIBCORE_PASSES_OP_GRAPH_H_
#define PD_LIBCORE_PASSES_OP_GRAPH_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libcore/passes/pipeline.h"

namespace pd {

/// Stands for the index of an op where there is none.
constexpr int kNone = -1;
/// An index that is not kNone.
inline size_t At(int i) { return static_cast<size_t>(i); }

/// The blocks whose ops name a variable.
class NameBlocks {
 public:
  explicit NameBlocks(const ProgramDesc& program);
  /// Whether an op of another block than this names, or writes, the variable.
  bool IsNamedElsewhere(const std::string& name, int32_t block) const {
    return IsElsewhere(named_, name, block);
  }
  bool IsWrittenElsewhere(const std::string& name, int32_t block) const {
    return IsElsewhere(written_, name, block);
  }

 private:
  using Blocks = absl::flat_hash_map<std::string, int32_t>;  // -1: several
  static bool IsElsewhere(const Blocks& blocks, const std::string& name,
                          int32_t block);
  Blocks named_, written_;
};

class OpGraph {
 public:
  /// Both outlive it. `program` may change only through Replace.
  OpGraph(const PassContext& context, ProgramDesc* program);
  /// Of another block than the first.
  OpGraph(const PassContext& context, ProgramDesc* program, int32_t block,
          std::shared_ptr<const NameBlocks> names);

  size_t size() const { return block_.ops.size(); }
  const OpDesc& op(size_t i) const { return block_.ops[i]; }
  bool IsRemoved(size_t i) const { return removed_[i]; }
  /// The variable as an op of the block sees it.
  const VarDesc* Var(const std::string& name) const;

  /// The only op of the block that reads `name`, when nothing else needs it: it
  /// is written once and not wanted. -1 otherwise.
  int OnlyReader(const std::string& name) const;
  /// The ops that read `name`, in order, among them ops whose sub-blocks do;
  /// the list changes with the graph.
  const std::vector<size_t>& Readers(const std::string& name) const;
  /// The only op that writes it; -1 for none or several.
  int OnlyWriter(const std::string& name) const;
  /// Whether an op in (first, last) writes one of `names`.
  bool IsWrittenBetween(const std::vector<std::string>& names, size_t first,
                        size_t last) const;

  /// Puts `op`, with the defaults of its schema, in the place of op `at` and
  /// removes `others`.
  void Replace(size_t at, OpDesc op, const std::vector<size_t>& others);
  void Remove(size_t at);
  /// Adds a variable to the block where it is not there.
  void Declare(const VarDesc& var);
  /// The ops that write it, likewise.
  const std::vector<size_t>& Writers(const std::string& name) const;
  /// Whether no op of any block writes the variable.
  bool IsUnwritten(const std::string& name) const;
  /// Whether the variable is a fetch, persistable, named by an op of another
  /// block, or declared outside of this one.
  bool IsWanted(const std::string& name) const;
  /// Whether the variable is persistable, or a cast of one: a parameter in
  /// mixed precision.
  bool IsParameter(const std::string& name) const;
  /// Drops the removed ops, and the variables that nobody names any more.
  void Finish();

 private:
  struct Uses {
    std::vector<size_t> readers, writers;
  };
  // Both tables are made when they are first asked: most programs have no op
  // that most passes look for.
  void MakeUses() const;
  void MakeVars() const;
  const Uses* Find(const std::string& name) const;
  void Add(size_t i) const;
  // Forgets what these ops read and write. Each variable is looked at once, as
  // thousands of updates read one learning rate.
  void Drop(std::vector<size_t> ops);

  const PassContext& context_;
  ProgramDesc* program_;
  const int32_t index_;
  BlockDesc& block_;
  std::shared_ptr<const NameBlocks> names_;
  mutable absl::flat_hash_map<std::string, Uses> uses_;
  mutable absl::flat_hash_map<std::string, const VarDesc*> vars_;
  mutable bool has_uses_ = false, has_vars_ = false;
  std::vector<bool> removed_;
};

/// Calls `rewrite` for the graph of every block that has an op of one of the
/// types and may be rewritten, and finishes the graphs. A block with a gradient
/// block stays as it is, as that does: the gradient reads the values of each
/// iteration by name.
void ForEachGraph(const PassContext& context,
                  const std::set<std::string>& types,
                  const std::function<void(OpGraph* graph)>& rewrite,
                  ProgramDesc* program);

/// The names of a slot list that are variables.
std::vector<std::string> NamesOf(const SlotList& slots);

/// Calls `read` and `write` for the variables that an op reads and writes,
/// those around its sub-blocks among them.
void ForEachUse(const ProgramDesc& program, const OpDesc& op,
                const std::function<void(const std::string&)>& read,
                const std::function<void(const std::string&)>& write);

/// Gives an op that a pass has made the defaults of its schema, so that later
/// passes read it as they read any other.
void CompleteAttrs(const PassContext& context, OpDesc* op);

/// Gives a fused_conv2d, or its gradient op, its activation: relu, or relu6
/// with its bound. Null: none.
void SetFusedActivation(const OpDesc* activation, OpDesc* fused);

/// Copies op_role, op_device and the like, and op_role_var of all ops.
void CopyOpAttrs(const std::vector<const OpDesc*>& from, OpDesc* to);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_OP_GRAPH_H_
