// SPDX-License-Identifier: Apache-2.0
// The ONNX graph in the making: values, nodes, constants. Without protobuf's
// types, so that the converters compile without ONNX's headers.
#ifndef PD_LIBCORE_DEPLOY_ONNX_GRAPH_H_
#define PD_LIBCORE_DEPLOY_ONNX_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/deploy/inference_model.h"

namespace pd {

/// A graph inside of a node (a body of Loop, a branch of If).
struct OnnxSubgraph;

using OnnxAttr = std::variant<int64_t, float, std::string, std::vector<int64_t>,
                              std::vector<float>, std::vector<std::string>,
                              std::shared_ptr<const OnnxSubgraph>>;
using OnnxAttrs = std::vector<std::pair<const char*, OnnxAttr>>;

/// Names of values; "" stands for an optional input that is absent.
using OnnxValues = std::vector<std::string>;

/// An op that cannot be written, and why.
struct OnnxFailure {
  int32_t block = 0;
  size_t op = 0;       ///< its place in the block
  std::string type;    ///< of the op
  std::string output;  ///< the first variable that it makes; may be ""
  absl::Status status;

  bool SamePlace(const OnnxFailure& o) const {
    return block == o.block && op == o.op;
  }
};

/// ONNX's number of a dtype, as Cast takes it.
int64_t OnnxNumberOf(DType dtype);

class OnnxGraph {
 public:
  /// An empty graph with the model's inputs. The model outlives it.
  OnnxGraph(const InferenceModel& model, int opset);
  ~OnnxGraph();

  int opset() const { return opset_; }
  const InferenceModel& model() const { return model_; }

  // Where the ops stand that are being converted. Inside of a subgraph nodes
  // and what variables are go to it; constants and parameters stay outside.

  /// The block of the program whose ops are converted.
  int32_t block() const { return block_; }
  void set_block(int32_t block) { block_ = block; }
  /// Nodes from now on belong to a new graph inside of the current one.
  void BeginGraph();
  /// A new input of the current inner graph, which starts with `hint`; its type
  /// is that of what the node is given.
  std::string NewGraphInput(const std::string& hint);
  /// The same, a scalar, for inputs that the node makes itself.
  std::string NewScalarInput(const std::string& hint, DType dtype);
  /// Ends the inner graph, whose outputs are copies of these values; variables
  /// are again what they were before it.
  std::shared_ptr<const OnnxSubgraph> EndGraph(const OnnxValues& outputs);

  /// Ops that could not be converted are collected: all are told at once.
  void AddFailure(OnnxFailure failure);
  const std::vector<OnnxFailure>& failures() const { return failures_; }

  /// Whether a variable has a value by now.
  bool HasValue(const std::string& variable) const;
  /// The value that a variable of the program has now; parameters become
  /// initializers when first asked for. NotFound says which op should have
  /// made it.
  absl::StatusOr<std::string> ValueOf(const std::string& variable);
  /// A new value, which `variable` is from now on: of its own name where ONNX
  /// allows it.
  std::string NewValueOf(const std::string& variable);
  /// From now on `variable` is `value`, which exists.
  void SetAlias(const std::string& variable, const std::string& value);
  /// A new name that starts with `hint`.
  std::string NewValue(const std::string& hint);
  /// Says that `op_type` should have made `variable` and did not.
  void SetAbsent(const std::string& variable, const std::string& op_type);

  /// An initializer with these bytes, shared by equal ones.
  std::string Constant(const Array& array);

  /// Appends a node. Unimplemented when this opset has no such operator.
  absl::Status AddNode(absl::string_view op_type, const std::string& name,
                       const OnnxValues& inputs, const OnnxValues& outputs,
                       const OnnxAttrs& attrs);

  /// Declares the outputs, runs the checker and shape inference, gives the
  /// file's bytes.
  absl::StatusOr<std::string> Finish();

 private:
  struct Proto;
  struct Outer;  // what BeginGraph puts aside

  void DeclareInput(const VarDesc& var);
  absl::Status DeclareOutputs();
  /// Gives outputs whose shape could not be inferred the program's.
  void CompleteOutputs();
  absl::Status Check();

  const InferenceModel& model_;
  int opset_;
  int32_t block_ = 0;
  std::unique_ptr<Proto> proto_;
  std::vector<Outer> outer_;
  std::vector<OnnxFailure> failures_;
  std::map<std::string, std::string> values_;     // variable -> value
  std::map<std::string, std::string> absent_;     // variable -> op type
  std::map<std::string, int> writes_left_;        // by ops not yet converted
  std::map<std::string, int> names_;              // taken; how many start so
  std::map<std::string, std::string> constants_;  // dtype, shape, bytes -> name
};

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_GRAPH_H_
