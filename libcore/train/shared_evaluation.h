// SPDX-License-Identifier: Apache-2.0
// Several processes evaluate together: each computes every size()-th batch, and
// all learn the results of all batches in the order of one process, so that
// losses and metrics are the same to the bit.
#ifndef PD_LIBCORE_TRAIN_SHARED_EVALUATION_H_
#define PD_LIBCORE_TRAIN_SHARED_EVALUATION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/dist/communicator.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// A batch that one of the processes computed.
struct BatchOutcome {
  Batch batch;  ///< with the fields that were handed on
  std::vector<Tensor> outputs;
};

class SharedEvaluation {
 public:
  /// `processes` outlives this. Only fields for which `wanted` is true are
  /// handed on.
  SharedEvaluation(const Communicator* processes,
                   std::function<bool(const std::string& field)> wanted)
      : processes_(*processes), wanted_(std::move(wanted)) {}

  /// A round: this process's next batch with its outputs, row-major; null
  /// where it has none any more, with `left_out` of its loader. `see` is called
  /// with the batches of all processes in ascending order; false at the end of
  /// all. The values are valid during the call.
  absl::StatusOr<bool> Round(
      const Batch* batch, const std::vector<const Tensor*>& outputs,
      const BadRecords& left_out,
      const std::function<absl::Status(const BatchOutcome&)>& see);

  /// At the end: the records that were left out in all processes.
  const BadRecords& left_out() const { return left_out_; }

 private:
  const Communicator& processes_;
  const std::function<bool(const std::string&)> wanted_;
  BadRecords left_out_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_SHARED_EVALUATION_H_
