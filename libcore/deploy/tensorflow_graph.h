// SPDX-License-Identifier: Apache-2.0
// Networks of TensorFlow on their way to Programs: as graphs of ONNX's
// operators, which FromOnnx imports (tensorflow_import/ has a function for each
// operator).
#ifndef PD_LIBCORE_DEPLOY_TENSORFLOW_GRAPH_H_
#define PD_LIBCORE_DEPLOY_TENSORFLOW_GRAPH_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/onnx_file.h"
#include "formats/tensorflow_file.h"

namespace pd {

/// The network of a frozen graph: its placeholders are the inputs, nodes that
/// nothing reads the outputs. Unimplemented names every node whose operator is
/// not supported at once.
absl::StatusOr<OnnxFile> TensorflowAsOnnx(const TfGraph& graph);

/// The key of every variable of a SavedModel by the node that makes it.
absl::StatusOr<std::map<std::string, std::string>> TensorflowVariables(
    const TfSavedModel& model);

/// The network of a SavedModel's signature 'serving_default', or of its only
/// one; inputs and outputs are called as the signature has them.
/// InvalidArgument names the signatures where there are others. `variables` are
/// by the nodes that make them.
absl::StatusOr<OnnxFile> TensorflowAsOnnx(const TfSavedModel& model,
                                          const NamedArrays& variables);

/// The operators that are read: "Conv2D".
std::vector<std::string> TensorflowImportTypes();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TENSORFLOW_GRAPH_H_
