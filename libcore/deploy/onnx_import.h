// SPDX-License-Identifier: Apache-2.0
// ONNX models as Programs of PaddlePaddle's ops. Needs no library of ONNX's.
#ifndef PD_LIBCORE_DEPLOY_ONNX_IMPORT_H_
#define PD_LIBCORE_DEPLOY_ONNX_IMPORT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/onnx_file.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/ops/registry.h"

namespace pd {

/// The last opset that is read.
inline constexpr int64_t kMaxOnnxImportOpset = 28;

/// Facts on a model's inputs that are known at import, by name.
struct OnnxKnownInputs {
  /// Shapes that take the place of those declared: a structure may hang on
  /// extents that the file leaves open.
  std::map<std::string, Shape> shapes;
  /// Values of inputs that are taken for constants (axes, sizes). They stay
  /// feeds, which nothing reads.
  NamedArrays values;
};

/// The program that computes what `file` says: feeds and fetches have the names
/// of the graph's inputs and outputs, weights become parameters, what depends
/// on constants only is computed now. Errors name the node. Unimplemented: an
/// operator, an element type or a use of one that PaddlePaddle's ops cannot
/// express; FailedPrecondition: a structure that hangs on an input's value or
/// on extents that are not known.
absl::StatusOr<InferenceModel> FromOnnx(const OpRegistry& registry,
                                        const OnnxFile& file,
                                        const OnnxKnownInputs& known = {});

/// FromOnnx for a feed: with `shapes` only if that can be done, else for the
/// feed's shapes, else also for the values of its small inputs. Null: there is
/// no feed.
absl::StatusOr<InferenceModel> ImportOnnx(
    const OpRegistry& registry, const OnnxFile& file, const NamedArrays* feeds,
    const std::map<std::string, Shape>& shapes = {});

/// The operators that are read, in name order; those outside of ONNX's own
/// domain as "domain:Name".
std::vector<std::string> OnnxImportTypes();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_IMPORT_H_
