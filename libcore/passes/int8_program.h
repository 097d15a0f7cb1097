// SPDX-License-Identifier: Apache-2.0
// State that the parts of the pass int8_chains share (see int8_chains.cc).
#ifndef PD_LIBCORE_PASSES_INT8_PROGRAM_H_
#define PD_LIBCORE_PASSES_INT8_PROGRAM_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/op_graph.h"

namespace pd {

class Int8Program {
 public:
  /// `program` changes when Finish is called.
  Int8Program(const PassContext& context, ProgramDesc* program)
      : context_(context), program_(program) {}

  /// Part 1: quantizing and dequantizing ops with constant scales become
  /// int8_quantize and int8_dequantize. Returns whether there were any.
  bool Lower();
  /// Part 2: int8_quantize moves ahead of maximum pooling and ops that only
  /// move bytes; one behind an int8_dequantize reads what that reads. An
  /// int8_dequantize moves behind a split.
  void MoveQuantizers();
  /// Part 3: products of a dequantized tensor and constant 8-bit weights.
  void TakeProducts();
  /// Part 4: sums, products and averages of dequantized tensors.
  void TakeElementwise();
  /// Part 5: tensors that are never negative are kept without the offset of
  /// 128.
  void DropOffsets();
  void Finish();

 private:
  using Attrs = std::map<std::string, Attribute>;

  // Lowering, in int8_lower.cc.
  bool LowerOp(const OpDesc& op, std::vector<OpDesc>* ops);
  std::optional<float> ScaleOf(const std::string& name) const;
  bool IsReadByDequantizers(const std::string& name) const;

  // A persistable variable that the program does not write; else null.
  const Tensor* Constant(const std::string& name) const;
  // The op that writes `name` where it is of this type; kNone otherwise.
  int WriterOf(const std::string& name, const char* type) const;
  int OnlyReader(const std::string& name) const {
    return graph_->OnlyReader(name);
  }
  const OpDesc& op(int i) const { return graph_->op(At(i)); }
  // A new variable of the shape of `like`, uint8.
  std::string NewBytes(const std::string& like);
  void MakeBytes(const std::string& name) { bytes_.insert(name); }
  // Puts `op` in the place of `at`, without `others`, and without the
  // int8_dequantize ops that nobody reads any more.
  void Put(int at, OpDesc op, const std::vector<size_t>& others);
  void DropUnread(const std::vector<std::string>& names);
  const Shape* ShapeOf(const std::string& name) const;

  bool MoveQuantizersOnce();
  bool MoveOver(size_t at);
  // Several tensors, in int8_joins.cc.
  bool MoveOverJoins();
  int QuantizerBehind(const OpDesc& concat) const;
  bool MoveOverConcat(size_t at, std::set<size_t>* dropped,
                      std::vector<OpDesc>* ops);
  bool MoveUnderSplit(size_t at, std::vector<std::string>* unread,
                      std::vector<OpDesc>* ops);
  bool JoinQuantizer(size_t at);
  void RenameReads(const std::string& from, const std::string& to);

  // Products and what follows them, in int8_products.cc.
  struct Chain;
  bool FindProduct(size_t at, Chain* chain) const;
  bool FindWeights(const std::string& name, Chain* chain) const;
  bool FindScales(Chain* chain) const;
  bool ReadsWeights(const Chain& chain) const;
  void Follow(Chain* chain) const;
  bool TakeBias(const OpDesc& add, Chain* chain) const;
  bool TakeResidual(const OpDesc& add, Chain* chain) const;
  bool TakeNorm(const OpDesc& norm, Chain* chain) const;
  bool TakeNext(int next, Chain* chain) const;
  bool IsSafe(const Chain& chain) const;
  void GiveBoth(Chain* chain) const;
  void PutChain(const Chain& chain);
  bool FindPair(size_t at, Chain* chain) const;
  bool FindAverage(size_t at, Chain* chain) const;
  bool FindActivation(size_t at, Chain* chain) const;

  bool CollectReaders(const std::string& name,
                      std::vector<std::pair<size_t, std::string>>* readers,
                      std::vector<size_t>* pools) const;

  const PassContext& context_;
  ProgramDesc* program_;
  std::optional<OpGraph> graph_;
  std::map<std::string, VarDesc> made_;
  std::set<std::string> bytes_;  // variables that are uint8 now
};

/// Copies attributes of these names that are there.
void CopyAttrs(const OpDesc& from, const std::vector<const char*>& names,
               OpDesc* to);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_INT8_PROGRAM_H_
