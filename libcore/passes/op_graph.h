// SPDX-License-Identifier: Apache-2.0
// The writers and readers of each variable of block 0, for passes that replace
// chains of ops.
#ifndef PD_LIBCORE_PASSES_OP_GRAPH_H_
#define PD_LIBCORE_PASSES_OP_GRAPH_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "libcore/passes/pipeline.h"

namespace pd {

/// The number of an op that is not there.
constexpr int kNone = -1;
/// The number of an op that is.
inline size_t At(int i) { return static_cast<size_t>(i); }

class OpGraph {
 public:
  /// Both outlive it. `program` may change only through Replace.
  OpGraph(const PassContext& context, ProgramDesc* program);

  size_t size() const { return block_.ops.size(); }
  const OpDesc& op(size_t i) const { return block_.ops[i]; }
  bool IsRemoved(size_t i) const { return removed_[i]; }
  const VarDesc* Var(const std::string& name) const;

  /// The only op of block 0 that reads `name`, when nothing else needs it: it
  /// is written once, is no fetch, not persistable, and seen by no other
  /// block. -1 otherwise.
  int OnlyReader(const std::string& name) const;
  /// The ops that read `name`, in order; the list changes with the graph.
  const std::vector<size_t>& Readers(const std::string& name) const;
  /// The only op that writes it; -1 for none or several.
  int OnlyWriter(const std::string& name) const;
  /// Whether an op in (first, last) writes one of `names`.
  bool IsWrittenBetween(const std::vector<std::string>& names, size_t first,
                        size_t last) const;

  /// Puts `op` in the place of op `at` and removes `others`.
  void Replace(size_t at, OpDesc op, const std::vector<size_t>& others);
  void Remove(size_t at);
  /// Adds a variable to block 0 where it is not there.
  void Declare(const VarDesc& var);
  /// The ops that write it, likewise.
  const std::vector<size_t>& Writers(const std::string& name) const;
  /// Whether no op of any block writes the variable.
  bool IsUnwritten(const std::string& name) const;
  /// Whether the variable is a fetch, persistable, or another block's.
  bool IsWanted(const std::string& name) const;
  /// Whether the variable is persistable, or a cast of one: a parameter in
  /// mixed precision.
  bool IsParameter(const std::string& name) const;
  /// Drops the removed ops, and the variables that nobody names any more.
  void Finish();

 private:
  struct Uses {
    std::vector<size_t> readers, writers;
    bool elsewhere = false;  // in another block
  };
  const Uses* Find(const std::string& name) const;
  void Add(size_t i);
  void Drop(size_t i);

  const PassContext& context_;
  ProgramDesc* program_;
  BlockDesc& block_;
  std::map<std::string, Uses> uses_;
  std::map<std::string, const VarDesc*> vars_;
  std::vector<bool> removed_;
};

/// The names of a slot list that are variables.
std::vector<std::string> NamesOf(const SlotList& slots);

/// Gives a fused_conv2d, or its gradient op, its activation: relu, or relu6
/// with its bound. Null: none.
void SetFusedActivation(const OpDesc* activation, OpDesc* fused);

/// Copies op_role, op_device and the like, and op_role_var of all ops.
void CopyOpAttrs(const std::vector<const OpDesc*>& from, OpDesc* to);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_OP_GRAPH_H_
