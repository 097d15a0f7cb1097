// SPDX-License-Identifier: Apache-2.0
// One node of TensorFlow on its way to nodes of ONNX: what an importer reads
// from and writes with. The first error sticks: after it names are "" and
// nothing is appended, so importers read as formulas.
//
// TensorFlow keeps the channels of pictures last, PaddlePaddle's and ONNX's
// operators want them first. A value may have both forms: importers of
// operators that take either ask for the one that is there, and a Transpose is
// made where the other one is needed, once.
#ifndef PD_LIBCORE_DEPLOY_TENSORFLOW_IMPORT_CALL_H_
#define PD_LIBCORE_DEPLOY_TENSORFLOW_IMPORT_CALL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "formats/onnx_file.h"
#include "formats/tensorflow_file.h"
#include "libcore/deploy/onnx_attrs.h"

namespace pd {

/// A TensorList or TensorArray. One that is made of a tensor stays that tensor
/// and is only read; another one is a tensor array of the program, which each
/// write changes in place, so that only its newest value may be used.
struct TfList {
  bool written = false;
  int64_t version = 0;
  std::string size;  ///< how many elements it was made for; "": it grows
};

/// A value of TensorFlow's graph and the names that it has in ours.
struct TfValue {
  std::string name;
  std::string plain;  ///< as TensorFlow has it; "" where nothing made it yet
  std::string first;  ///< with the channels first; "" where nothing made it
  int64_t rank = -1;  ///< -1: not known
  std::shared_ptr<TfList> list;  ///< null for tensors
  int64_t version = 0;           ///< of the list, that this value is
};

/// A table of keys and their values.
struct TfLookupTable {
  Array keys, values;
  bool texts = false;  ///< texts are among them, which no array holds
};

/// For a graph and the functions that its nodes run.
struct TfShared {
  const TfGraph* graph = nullptr;
  int64_t next = 0;    ///< number of the next value without a name
  int64_t bodies = 0;  ///< that were imported
  int64_t nodes = 0;   ///< in these bodies together
  int depth = 0;       ///< of the one that is imported now, in others
  /// By function that a loop runs: whether output i is argument i as it is.
  std::map<std::string, std::vector<bool>> handed_on;
  /// By TfTableName; nothing until one is asked for.
  std::optional<std::map<std::string, TfLookupTable>> tables;
};

/// The graph in the making, or the one in a node of it.
struct TfBuild {
  OnnxFileGraph graph;
  const TfBuild* outer = nullptr;
  std::shared_ptr<TfShared> shared;
  /// By name, "NODE" or "NODE:1". Nodes that hand a value on share it.
  std::map<std::string, std::shared_ptr<TfValue>> values;
  std::map<std::string, const TfNode*> nodes;  ///< by name
  std::set<std::string> read;  ///< values that a node or the user reads
  NamedArrays variables;       ///< by the node that makes one

  /// A constant of this graph or of one around it; null for other names.
  const Array* Constant(const std::string& name) const;
};

/// Imports nodes, each of which stands after those that it reads.
absl::Status ImportTfNodes(const std::vector<TfNode>& nodes, TfBuild* build);

/// Appends the Transpose of a value that is there with the channels first, if
/// TensorFlow's form of it is not.
void MakePlain(TfValue* value, TfBuild* build);

class TfCall {
 public:
  using Names = std::vector<std::string>;
  using Ints = std::vector<int64_t>;
  using Attrs = std::map<std::string, OnnxFileAttr>;

  TfCall(const TfNode& node, const char* onnx_type, TfBuild* build)
      : node_(node),
        onnx_type_(onnx_type),
        build_(build),
        first_node_(build->graph.nodes.size()) {}

  const char* onnx_type() const { return onnx_type_; }  ///< the table's word
  const TfNode& node() const { return node_; }
  TfBuild& build() { return *build_; }
  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  void Fail(const absl::Status& status) {
    if (ok()) status_ = status;
  }

  // Inputs.

  size_t InputCount() const { return node_.inputs.size(); }
  TfValue* Value(size_t i);  ///< null and an error where it is not given
  std::string In(size_t i);  ///< as TensorFlow has it; no list
  int64_t Rank(size_t i);    ///< -1: not known
  /// With the channels first; for values of four or five axes.
  std::string InFirst(size_t i);
  bool IsFirst(size_t i);  ///< it is there with the channels first
  /// The array of a constant or a variable; null for another value.
  const Array* Known(size_t i);
  std::optional<Ints> KnownInts(size_t i);
  Ints NeedInts(size_t i);  ///< an error where it is not known
  /// A shape or another list of integers, which is int64 in ONNX.
  std::string InInt64(size_t i);
  /// The node that makes input `i` of `of`, past those that hand it on; null
  /// where it is of another type.
  const TfNode* Maker(const TfNode& of, size_t i, const char* op) const;

  // Attributes; TensorFlow may leave out those that have their defaults.

  int64_t Int(const char* name, int64_t otherwise);
  bool Bool(const char* name, bool otherwise = false) {
    return Int(name, otherwise ? 1 : 0) != 0;
  }
  double Float(const char* name, double otherwise);
  std::string Text(const char* name, const char* otherwise);
  Ints IntList(const char* name);
  std::vector<std::string> TextList(const char* name);
  DType Type(const char* name, DType otherwise = DType::kFloat32);

  // Nodes.

  /// Appends a node with one output and gives its name. "tensorflow:NAME" is
  /// of the domain "tensorflow".
  std::string Emit(const char* op_type, const Names& inputs, Attrs attrs = {});
  Names EmitMany(const char* op_type, const Names& inputs, size_t outputs,
                 Attrs attrs = {});
  std::string Constant(const Array& array);
  std::string ConstInts(const Ints& values);
  std::string Scalar(double value, DType dtype);
  std::string Cast(const std::string& x, DType dtype);
  std::string Transpose(const std::string& x, const Ints& perm);
  /// A filter with its axes exchanged: a weight now, as NAME with the ending.
  std::string TransposedFilter(size_t i, const Ints& perm,
                               const char* ending = ".T");

  // Outputs.

  /// Says the value of output `i`.
  void Give(const std::string& value, int64_t rank = -1, size_t i = 0);
  /// The same of one with the channels first.
  void GiveFirst(const std::string& value, int64_t rank, size_t i = 0);
  void GiveValue(TfValue value, size_t i = 0);
  /// Output `i` is an input as it is.
  void GiveSame(size_t input, size_t i = 0);
  bool Wants(size_t i) const;  ///< anything reads output `i`
  std::string OutName(size_t i) const;

 private:
  const TfAttr* Find(const char* name) const;
  std::string Named(const std::string& value, const std::string& name);

  const TfNode& node_;
  const char* onnx_type_;
  TfBuild* build_;
  size_t first_node_;  // of those that this call appends
  absl::Status status_;
};

struct TfImportEntry {
  const char* op;  ///< "Conv2D"
  /// Errors go to TfCall::Fail.
  void (*import)(TfCall* call);
  /// For functions that serve several operators: ONNX's.
  const char* onnx_type = "";
};

using TfImportEntries = std::vector<TfImportEntry>;

// The parts, by family.
TfImportEntries TfControlFlowImports();
TfImportEntries TfElementwiseImports();
TfImportEntries TfListImports();
TfImportEntries TfNetworkImports();
TfImportEntries TfPictureImports();
TfImportEntries TfShapeImports();
TfImportEntries TfTableImports();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TENSORFLOW_IMPORT_CALL_H_
