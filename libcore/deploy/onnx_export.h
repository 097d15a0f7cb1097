// SPDX-License-Identifier: Apache-2.0
// Models as ONNX files, through ONNX's own library: its protobuf classes, its
// checker, its shape inference. It is a library of its own, libpd_onnx.so, so
// that tools that write no ONNX do not pay for loading it.
#ifndef PD_LIBCORE_DEPLOY_ONNX_EXPORT_H_
#define PD_LIBCORE_DEPLOY_ONNX_EXPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/deploy/inference_model.h"

namespace pd {

class OpRegistry;

/// The opsets that can be written.
inline constexpr int kMinOnnxOpset = 9;
inline constexpr int kMaxOnnxOpset = 17;

/// The bytes of an ONNX model of exactly this opset, checked by ONNX's checker
/// and strict shape inference. Inputs and outputs have the names of the feeds
/// and fetches; extents of -1 are symbolic, the first one "batch".
/// Attributes that ops leave out have the defaults of their schemas in
/// `registry`. OutOfRange for an opset outside the two above; Unimplemented
/// names the op that has no converter, or that needs a later opset and which.
absl::StatusOr<std::string> ToOnnx(const OpRegistry& registry,
                                   InferenceModel model, int opset);

/// Writes what ToOnnx gave to a file; folders on the way are made, and the old
/// file survives a failure.
absl::Status WriteOnnxBytes(const std::string& bytes, const std::string& path);

/// ToOnnx and WriteOnnxBytes.
absl::Status WriteOnnxModel(const OpRegistry& registry, InferenceModel model,
                            int opset, const std::string& path);

/// The op types that have a converter, in name order.
std::vector<std::string> OnnxOpTypes();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_EXPORT_H_
