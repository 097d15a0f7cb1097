// SPDX-License-Identifier: Apache-2.0
// Networks of Keras on their way to Programs: as graphs of ONNX's operators,
// which FromOnnx imports (keras_import/ has a function for each layer).
#ifndef PD_LIBCORE_DEPLOY_KERAS_GRAPH_H_
#define PD_LIBCORE_DEPLOY_KERAS_GRAPH_H_

#include "absl/status/statusor.h"
#include "formats/keras_file.h"
#include "formats/onnx_file.h"

namespace pd {

/// The graph of the network in `file`, which has one. Inputs and outputs have
/// the names of their layers, weights "LAYER/kernel" with axes as ONNX has
/// them. Unimplemented names all layers that are not supported at once.
absl::StatusOr<OnnxFile> KerasAsOnnx(const KerasFile& file);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_KERAS_GRAPH_H_
