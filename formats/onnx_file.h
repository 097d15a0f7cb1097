// SPDX-License-Identifier: Apache-2.0
// `.onnx` files as plain structs. Reading checks every count and size against
// the bytes that are there, so that what comes out can be indexed; whether
// nodes and names make sense is the importer's question.
#ifndef PD_FORMATS_ONNX_FILE_H_
#define PD_FORMATS_ONNX_FILE_H_

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

/// Whether bytes may be a ModelProto: messages with the fields of one.
bool IsOnnx(absl::string_view bytes);

struct OnnxFileGraph;

/// An attribute of a node: the member that `kind` says.
struct OnnxFileAttr {
  enum class Kind {
    kFloat,
    kInt,
    kString,
    kTensor,
    kGraph,
    kFloats,
    kInts,
    kStrings,
    kOther,  ///< types, sparse tensors, lists of graphs: nobody asks for them
  };
  Kind kind = Kind::kOther;
  float f = 0;
  int64_t i = 0;
  std::string s;
  Array tensor;
  int32_t unsigned_bits = 0;  ///< of the tensor, see OnnxUnsignedBits
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<OnnxFileGraph> graph;  ///< one, of kGraph
  /// In a function: the attribute of the caller that stands here.
  std::string reference;
};

struct OnnxFileNode {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  ///< "": an optional one, absent
  std::map<std::string, OnnxFileAttr> attrs;
};

/// A graph's input or output as declared.
struct OnnxFileValue {
  std::string name;
  bool is_tensor = false;      ///< false: a sequence, a map, an optional
  int32_t element_type = 0;    ///< ONNX's number, 0 when it is not said
  std::optional<Shape> shape;  ///< -1: symbolic; nothing: not even the rank
};

struct OnnxFileGraph {
  std::string name;
  std::vector<OnnxFileNode> nodes;
  NamedArrays initializers;
  /// Bits of those initializers that are unsigned integers.
  std::map<std::string, int32_t> unsigned_bits;
  std::vector<OnnxFileValue> inputs, outputs;
};

/// An operator that the file defines by other operators.
struct OnnxFileFunction {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, OnnxFileAttr> defaults;
  std::vector<OnnxFileNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct OnnxFile {
  int64_t ir_version = 0;
  std::string producer, producer_version;
  std::map<std::string, int64_t> opsets;  ///< by domain; "" is ONNX's own
  OnnxFileGraph graph;
  std::vector<OnnxFileFunction> functions;
  std::map<std::string, std::string> metadata;  ///< metadata_props
};

/// The dtype of ONNX's element type number; nothing for those that the tree
/// lacks (uint16, uint32, uint64, strings, 8-bit floats, 4-bit integers).
std::optional<DType> DTypeFromOnnx(int32_t element_type);

/// 16, 32 or 64 for ONNX's numbers of uint16, uint32 and uint64; 0 for others.
int32_t OnnxUnsignedBits(int64_t element_type);

/// DTypeFromOnnx, and what holds those unsigned integers: int32 and int64 their
/// numbers, int64 the bits of uint64.
std::optional<DType> HolderFromOnnx(int32_t element_type);

/// "float", "uint16", ...: ONNX's word for its number.
std::string OnnxTypeName(int32_t element_type);

/// The model in the bytes of a file. Tensors whose data lie in files of their
/// own are read from `folder`, which they must not lead out of; "" refuses
/// them. DataLoss when the bytes are no ONNX model or sizes contradict each
/// other, Unimplemented for element types without a DType.
absl::StatusOr<OnnxFile> ParseOnnx(absl::string_view bytes,
                                   const std::string& folder);

/// A single tensor ("input_0.pb" of ONNX's test data) and its name.
absl::StatusOr<std::pair<std::string, Array>> ParseOnnxTensor(
    absl::string_view bytes);

}  // namespace pd

#endif  // PD_FORMATS_ONNX_FILE_H_
