// SPDX-License-Identifier: Apache-2.0
// The arithmetic between a job's records and its network's inputs, as far as a
// program has operators for it, so that an exported model can be fed pixels and
// unscaled columns.
#ifndef PD_LIBCORE_TRAIN_INPUT_STAGES_H_
#define PD_LIBCORE_TRAIN_INPUT_STAGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/deploy/model_ends.h"
#include "libcore/exec/plan.h"
#include "libcore/nn/job.h"

namespace pd {
namespace job {
class DataSet;
}

struct InputStages {
  std::vector<InputStage> stages;  ///< of inputs that have any steps
  /// A sentence for everything that stays with whoever feeds the model:
  /// other transforms of pictures, words, hashes.
  std::vector<std::string> outside;
};

/// The steps of `set`, a part of `job`, for the network's inputs: of pictures
/// Resize (bilinear) and CenterCrop to known extents, to_tensor, normalize and
/// transpose, of rows mean, std and log1p. Pictures
/// are fed as uint8 [records, height, width, channels], where they are resized
/// of any size, rows as float32 as they stand in the file. InvalidArgument for
/// transforms that are random and for steps that do not fit pictures.
absl::StatusOr<InputStages> InputStagesOf(const LoadedJob& job,
                                          const job::DataSet& set,
                                          const std::vector<FeedSpec>& inputs);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_INPUT_STAGES_H_
