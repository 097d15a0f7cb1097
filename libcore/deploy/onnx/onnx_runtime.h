// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime, where the machine has it: another program's word on an ONNX
// model. It is looked for when it is asked for; nothing is linked with it.
#ifndef PD_LIBCORE_DEPLOY_ONNX_ONNX_RUNTIME_H_
#define PD_LIBCORE_DEPLOY_ONNX_ONNX_RUNTIME_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/array.h"

namespace pd {

class OnnxRuntime {
 public:
  /// The library libonnxruntime, in the folders of FLAGS_onnxruntime_dir and
  /// those of the system. Unavailable says where it was looked for.
  static absl::StatusOr<OnnxRuntime> Open();

  /// "1.20.1".
  const std::string& version() const { return version_; }

  /// Runs the model in the file `path` on the CPU and gives the outputs
  /// `outputs`. FailedPrecondition with ONNX Runtime's own words where it
  /// refuses the model or the feeds; Unimplemented for an output of an element
  /// type that arrays do not have.
  absl::StatusOr<NamedArrays> Run(
      const std::string& path, const NamedArrays& feeds,
      const std::vector<std::string>& outputs) const;

 private:
  struct Functions;

  std::shared_ptr<const Functions> functions_;
  std::string version_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_ONNX_RUNTIME_H_
