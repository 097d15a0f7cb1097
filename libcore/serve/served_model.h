// SPDX-License-Identifier: Apache-2.0
// One version of a model, ready to answer.
#ifndef PD_LIBCORE_SERVE_SERVED_MODEL_H_
#define PD_LIBCORE_SERVE_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/inference/shared_model.h"
#include "libcore/serve/batcher.h"
#include "libcore/serve/metrics.h"
#include "libcore/serve/signature.h"

namespace pd {
namespace serve {

struct ServedModel {
  std::string name;
  int64_t version = 1;
  std::string format;  ///< of its file: "onnx"
  Signature signature;
  std::shared_ptr<ModelMetrics> metrics;
  std::unique_ptr<Batcher> batcher;

  /// Reads the MODEL at `path`. Unimplemented for one that names no inputs and
  /// outputs, or has types that the protocol does not; the readers' errors.
  static absl::StatusOr<std::shared_ptr<ServedModel>> Load(
      const std::string& name, int64_t version, const std::string& path,
      const inference::ModelOptions& model, const BatchOptions& batch,
      Metrics* metrics);
};

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_SERVED_MODEL_H_
