// SPDX-License-Identifier: Apache-2.0
// Networks of TFLite on their way to Programs: as graphs of ONNX's operators,
// which FromOnnx imports (tflite_import/ has a function for each operator).
#ifndef PD_LIBCORE_DEPLOY_TFLITE_GRAPH_H_
#define PD_LIBCORE_DEPLOY_TFLITE_GRAPH_H_

#include "absl/status/statusor.h"
#include "formats/onnx_file.h"
#include "formats/tflite.h"

namespace pd {

/// The graph of `file`. Inputs and outputs have the names of their tensors.
/// Constants of 16 and 8 bits become float32; tensors of 8 bits that are
/// computed are rounded to their scales, as QuantizeLinear and DequantizeLinear
/// have it. Unimplemented names all operators that are not supported at once.
absl::StatusOr<OnnxFile> TfliteAsOnnx(const TfliteFile& file);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TFLITE_GRAPH_H_
