// SPDX-License-Identifier: Apache-2.0
// Files of torch.export.save (.pt2) as plain structs: the graph of a network as
// calls of ATen's operators, and its weights. Reading checks sizes against the
// bytes that are there; whether the calls make sense is the importer's
// question. The layouts are those of PyTorch 2.15 and of 2.2 to 2.5.
#ifndef PD_FORMATS_TORCH_EXPORT_H_
#define PD_FORMATS_TORCH_EXPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

/// A value that an operator is given, or gives.
struct TorchArgument {
  enum class Kind {
    kNone,
    kTensor,   ///< a name in `names`
    kTensors,  ///< names; "" for None
    kInt,      ///< also of bool, dtypes and memory formats
    kInts,
    kFloat,
    kFloats,
    kString,  ///< in `text`
    kSymbol,  ///< an integer that is known when the network runs: a name
    kOther,   ///< graphs, objects, devices
  };
  Kind kind = Kind::kNone;
  std::vector<std::string> names;
  /// Of kInts an element is kTorchSymbol where a symbol stands.
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::string text;
};

inline constexpr int64_t kTorchSymbol = INT64_MIN;

struct TorchNode {
  std::string target;  ///< "torch.ops.aten.conv2d.default"
  std::vector<std::pair<std::string, TorchArgument>> inputs;  ///< by parameter
  std::vector<TorchArgument> outputs;
};

struct TorchValue {
  int64_t scalar_type = 0;  ///< PyTorch's number of the dtype: 7 is float32
  Shape shape;              ///< -1: a symbol
};

struct TorchExport {
  std::string version;  ///< of PyTorch; "" where the file does not say it
  std::vector<std::string> inputs, outputs;       ///< values of the graph
  std::map<std::string, std::string> parameters;  ///< value -> its weight
  NamedArrays weights;  ///< by the network's names: "conv1.weight"
  std::vector<TorchNode> nodes;
  std::map<std::string, TorchValue> values;  ///< by name
};

/// Whether bytes begin as a file of torch.export.save does.
bool IsTorchExport(absl::string_view bytes);

/// The dtype of PyTorch's number. Unimplemented for those that the tree lacks.
absl::StatusOr<DType> DTypeFromTorch(int64_t scalar_type);

/// DataLoss when the file is damaged or sizes contradict each other,
/// Unimplemented for element types without a DType and for weights that are
/// pickled, FailedPrecondition for a network that changes its buffers.
absl::StatusOr<TorchExport> ParseTorchExport(const FileBytes& file);

}  // namespace pd

#endif  // PD_FORMATS_TORCH_EXPORT_H_
