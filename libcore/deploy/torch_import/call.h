// SPDX-License-Identifier: Apache-2.0
// One call of an ATen operator on its way to nodes of ONNX: what an importer
// reads from and writes with. The first error sticks: after it names are "" and
// nothing is appended, so importers read as formulas.
#ifndef PD_LIBCORE_DEPLOY_TORCH_IMPORT_CALL_H_
#define PD_LIBCORE_DEPLOY_TORCH_IMPORT_CALL_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/onnx_file.h"
#include "formats/torch_export.h"
#include "libcore/deploy/onnx_attrs.h"

namespace pd {

/// The graph in the making.
struct TorchBuild {
  const TorchExport* exported = nullptr;
  OnnxFileGraph graph;
  /// By value of PyTorch's graph: that of ours.
  std::map<std::string, std::string> values;
  std::set<std::string> read;  ///< values that a node or the user reads
  int64_t next = 0;            ///< number of the next value without a name
};

class TorchCall {
 public:
  using Names = std::vector<std::string>;
  using Ints = std::vector<int64_t>;
  using Attrs = std::map<std::string, OnnxFileAttr>;

  TorchCall(const TorchNode& node, const char* onnx_type, TorchBuild* build)
      : node_(node),
        onnx_type_(onnx_type),
        build_(build),
        first_node_(build->graph.nodes.size()) {}

  const char* onnx_type() const { return onnx_type_; }  ///< the table's word
  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  void Fail(const absl::Status& status) {
    if (ok()) status_ = status;
  }

  // Arguments, by the names of ATen's parameters.

  bool Has(const char* name) const;        ///< it is given and not None
  std::string Tensor(const char* name);    ///< an error where it is not given
  std::string TensorOr(const char* name);  ///< "" where it is not given
  /// "" where it is a number.
  std::string TensorIfAny(const char* name);
  Names Tensors(const char* name);
  int64_t Int(const char* name, int64_t otherwise);
  /// A list, or one number as a list. Empty where it is not given.
  Ints IntList(const char* name);
  /// The same, one number as many.
  Ints IntsOf(const char* name, size_t count, int64_t otherwise);
  double Number(const char* name, double otherwise);
  std::string Text(const char* name, const char* otherwise);

  // Facts that the file says of the values of PyTorch's graph.

  const Shape& ShapeOf(const char* name);  ///< of a tensor argument
  DType TypeOf(const char* name);
  const Shape& OutShape(size_t i = 0);
  DType OutType(size_t i = 0);
  int64_t Rank(const char* name) {
    return static_cast<int64_t>(ShapeOf(name).size());
  }
  /// `axis` in [-rank, rank) made non-negative.
  int64_t Axis(int64_t axis, int64_t rank);
  /// The extent of an axis of a tensor argument; an error for a symbol.
  int64_t Extent(const char* name, int64_t axis);

  // Nodes.

  /// Appends a node with one output and gives its name.
  std::string Emit(const char* op_type, const Names& inputs, Attrs attrs = {});
  Names EmitMany(const char* op_type, const Names& inputs, size_t outputs,
                 Attrs attrs = {});
  std::string Constant(const Array& array);
  std::string ConstInts(const Ints& values);
  std::string Scalar(double value, DType dtype);
  std::string Cast(const std::string& x, DType dtype);
  /// Into the shape that the file says of output `i`: a symbol, of which there
  /// is one at most, is what is left. A first extent that stays is taken from
  /// `x`, whatever batch it has.
  std::string Reshape(const std::string& x, size_t i = 0);
  std::string Transpose(const std::string& x, const Ints& perm);
  /// A matrix with its axes exchanged: of a weight now, as NAME.T.
  std::string TransposedWeight(const char* name);
  /// The array of a weight; null for another value.
  const Array* Weight(const char* name) const;

  /// Says the value of output `i`; elements of lists of outputs count. A value
  /// that this call has made gets the output's name.
  void Give(const std::string& value, size_t i = 0);
  /// Whether anything reads output `i`: others need not be given.
  bool Wants(size_t i);
  /// Names of the outputs, lists taken apart.
  const Names& outputs();

 private:
  const TorchArgument* Find(const char* name) const;
  const TorchValue* ValueOf(const std::string& name);
  const TorchValue* ArgumentValue(const char* name);  // null: no tensor
  const TorchValue* OutValue(size_t i);               // null: no such output
  DType TypeOfValue(const TorchValue* value);

  const TorchNode& node_;
  const char* onnx_type_;
  TorchBuild* build_;
  size_t first_node_;  // of those that this call appends
  absl::Status status_;
  Names outputs_;
};

struct TorchImportEntry {
  const char* target;  ///< "conv2d.default"
  /// Errors go to TorchCall::Fail.
  void (*import)(TorchCall* call);
  /// For functions that serve several operators: ONNX's.
  const char* onnx_type = "";
};

using TorchImportEntries = std::vector<TorchImportEntry>;

// The parts, by family.
TorchImportEntries TorchCompareImports();
TorchImportEntries TorchElementwiseImports();
TorchImportEntries TorchNetworkImports();
TorchImportEntries TorchRecurrentImports();
TorchImportEntries TorchShapeImports();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TORCH_IMPORT_CALL_H_
