// SPDX-License-Identifier: Apache-2.0
// The program in the making: the values of the ONNX graph by name, the blocks
// that ops are appended to, the parameters.
#ifndef PD_LIBCORE_DEPLOY_ONNX_IMPORT_IMPORTER_H_
#define PD_LIBCORE_DEPLOY_ONNX_IMPORT_IMPORTER_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/onnx_file.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/program/block_builder.h"

namespace pd {

/// The value of an ONNX name: a variable of the program, or a constant that
/// becomes a parameter when an op reads it, or a list of such (sequences).
struct OnnxValue {
  std::string variable;
  std::optional<Array> constant;
  bool is_list = false;
  std::vector<OnnxValue> list;
  int32_t unsigned_bits = 0;  ///< not 0: unsigned integers, held as signed ones
};

struct OnnxUnsignedRule;

class OnnxImporter {
 public:
  OnnxImporter(const OpRegistry& registry, const OnnxFile& file,
               const OnnxKnownInputs& known);

  absl::StatusOr<InferenceModel> Import();

  // Functions for nodes.

  /// The value of a name in this graph or one around it; null when nothing has
  /// made it yet.
  OnnxValue* Find(const std::string& name);
  /// Says what a name stands for from now on.
  absl::Status Define(const std::string& name, OnnxValue value);
  /// The variable of a value; a constant becomes a parameter called `hint`.
  std::string VariableOf(OnnxValue* value, const std::string& hint);
  /// A new parameter.
  std::string AddParam(const std::string& hint, const Array& array);
  /// A new name, which Define may change at the end.
  std::string NewVariable();
  const VarDesc* FindVar(const std::string& name) {
    return builder().FindVar(name);
  }
  /// The block that nodes are imported into.
  BlockBuilder& builder() { return *builders_[static_cast<size_t>(current_)]; }
  BlockBuilder& builder_of(int32_t block) {
    return *builders_[static_cast<size_t>(block)];
  }
  int32_t current_block() const { return current_; }
  /// A new block inside of the current one, which it becomes; and back.
  int32_t PushBlock();
  void PopBlock() { current_ = parent_block(); }
  void EnterBlock(int32_t block) { current_ = block; }
  int32_t parent_block() const {
    return model_.program.blocks[static_cast<size_t>(current_)].parent_idx;
  }

  /// The value of a parameter; null for other variables.
  const Array* ParamOf(const std::string& variable) const;
  /// Computes the op that was appended last when it reads parameters only, and
  /// takes it away: `outs`, its outputs, become parameters.
  void FoldLast(std::vector<std::string>* outs);
  /// Off: ops stay, even those over parameters only.
  void set_folding(bool on) { folding_ = on; }

  /// Imports a sub-graph into the current block. `inputs` are the values of its
  /// inputs, in order; gives those of its outputs.
  absl::StatusOr<std::vector<OnnxValue>> ImportGraph(
      const OnnxFileGraph& graph, std::vector<OnnxValue> inputs);

  const OpRegistry& registry() const { return registry_; }

 private:
  using Scope = std::map<std::string, OnnxValue>;

  absl::Status DeclareInputs();
  absl::Status DeclareOutputs();
  absl::Status ImportNodes(const std::vector<OnnxFileNode>& nodes,
                           const std::map<std::string, int64_t>& opsets);
  absl::Status ImportNode(const OnnxFileNode& node,
                          const std::map<std::string, int64_t>& opsets);
  /// How the node treats unsigned integers; null where it meets none, which
  /// leaves `bits` 0.
  absl::StatusOr<const OnnxUnsignedRule*> UnsignedRuleOf(
      const OnnxFileNode& node, int32_t* bits);
  absl::StatusOr<bool> ImportCall(const OnnxFileNode& node);
  absl::StatusOr<NamedArrays> Compute(const OpDesc& op,
                                      const std::vector<std::string>& wanted);
  InferenceModel Finish();

  const OpRegistry& registry_;
  const OnnxFile& file_;
  const OnnxKnownInputs& known_;
  InferenceModel model_;
  std::vector<std::unique_ptr<BlockBuilder>> builders_;  // by block
  int32_t current_ = 0;
  std::vector<Scope> scopes_;   // innermost last
  std::vector<size_t> closed_;  // functions: scopes below are out of sight
  std::map<std::string, int64_t> opsets_;  // in force
  std::set<std::string> taken_;            // names that variables will have
  std::map<std::string, std::string> renames_;  // variable -> final name
  std::set<std::string> outputs_;               // names of the fetches
  int next_variable_ = 0;
  int depth_ = 0;
  bool folding_ = true;
};

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_IMPORT_IMPORTER_H_
