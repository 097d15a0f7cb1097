// SPDX-License-Identifier: Apache-2.0
// TensorFlow's graphs as plain structs: a GraphDef (a frozen `.pb`), and the
// `saved_model.pb` of a SavedModel, whose variables lie in files beside it
// (tensor_bundle.h). Reading checks sizes against the bytes that are there;
// whether nodes make sense together is the importer's question.
#ifndef PD_FORMATS_TENSORFLOW_FILE_H_
#define PD_FORMATS_TENSORFLOW_FILE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/array.h"

namespace pd {

/// An attribute of a node: the member that `kind` says.
struct TfAttr {
  enum class Kind {
    kInt,  ///< also of bool and, by TensorFlow's number, dtypes
    kFloat,
    kString,  ///< in `text`, also of functions, by their name
    kShape,
    kTensor,
    kStrings,  ///< lists and tensors of texts, lists of functions' names
    kInts,     ///< also of bool and dtypes; an empty list of anything
    kFloats,
    kPlaceholder,  ///< in a function: the caller's attribute `text`
    kOther,        ///< tensors of a dtype that the tree lacks
  };
  Kind kind = Kind::kOther;
  int64_t i = 0;
  double f = 0;
  std::string text;
  std::optional<Shape> shape;  ///< -1: open; nothing: not even the rank
  Array tensor;
  std::vector<std::string> strings;
  std::vector<int64_t> ints;
  std::vector<float> floats;
};

struct TfNode {
  std::string name;
  std::string op;  ///< "Conv2D"
  /// "NODE", "NODE:1", "^NODE" to come after it; in functions an argument's
  /// name or "NODE:OUTPUT:0".
  std::vector<std::string> inputs;
  std::map<std::string, TfAttr> attrs;
};

/// A function that nodes call by its name.
struct TfFunction {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;  ///< values of its nodes
  std::vector<TfNode> nodes;
};

struct TfGraph {
  int64_t producer = 0;  ///< TensorFlow's version of the format
  std::vector<TfNode> nodes;
  std::map<std::string, TfFunction> functions;
};

/// An input or output as a signature declares it.
struct TfEnd {
  std::string value;  ///< "NODE:0"
  int32_t dtype = 0;
  std::optional<Shape> shape;
};

struct TfSignature {
  std::map<std::string, TfEnd> inputs, outputs;
};

struct TfSavedModel {
  std::string version;  ///< of TensorFlow
  TfGraph graph;
  std::map<std::string, TfSignature> signatures;
  std::string restore;  ///< the node that reads the variables; may be ""
};

/// Whether bytes may be a GraphDef or a SavedModel: messages with the fields
/// of one.
bool IsTensorflowGraph(absl::string_view bytes);
bool IsTensorflowSavedModel(absl::string_view bytes);

/// The dtype of TensorFlow's number; nothing for those that the tree lacks.
/// References count as what they refer to.
std::optional<DType> DTypeFromTensorflow(int64_t number);

/// "DT_STRING" and the like, for messages.
std::string TensorflowTypeName(int64_t number);

/// DataLoss when the bytes are none or sizes contradict each other.
absl::StatusOr<TfGraph> ParseTensorflowGraph(absl::string_view bytes);

/// The graph that is for serving, or the only one.
absl::StatusOr<TfSavedModel> ParseTensorflowSavedModel(absl::string_view bytes);

}  // namespace pd

#endif  // PD_FORMATS_TENSORFLOW_FILE_H_
