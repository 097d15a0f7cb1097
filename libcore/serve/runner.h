// SPDX-License-Identifier: Apache-2.0
// One engine of a model: arrays in, arrays out, of one request or of several
// that are joined along the first axis. One thread at a time uses it.
#ifndef PD_LIBCORE_SERVE_RUNNER_H_
#define PD_LIBCORE_SERVE_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/inference/engine.h"
#include "libcore/ir/array.h"

namespace pd {
namespace serve {

/// One array for each output of the model, in their order.
using Outputs = std::vector<Array>;

class Runner {
 public:
  explicit Runner(std::shared_ptr<inference::SharedModel> model)
      : engine_(std::move(model)) {}

  /// The engine's errors.
  absl::StatusOr<Outputs> Run(const NamedArrays& inputs);
  /// The outputs of each request, by its rows. All requests have the same
  /// JoinKey. FailedPrecondition where an output has another number of rows
  /// than the inputs.
  absl::StatusOr<std::vector<Outputs>> RunJoined(
      const std::vector<const NamedArrays*>& requests);

 private:
  inference::Engine engine_;
};

/// Requests with the same key can be joined: the inputs' names, types and
/// shapes but for the first extent. "" for one that can be joined with none,
/// since its inputs differ in the first extent or are scalars.
std::string JoinKey(const NamedArrays& inputs);

/// The first extent of a request that has a JoinKey.
int64_t Rows(const NamedArrays& inputs);

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_RUNNER_H_
