// SPDX-License-Identifier: Apache-2.0
// A network's answers to records, batch by batch: nothing is kept, so memory
// does not grow with the number of records.
#ifndef PD_LIBCORE_TRAIN_PREDICT_H_
#define PD_LIBCORE_TRAIN_PREDICT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/exec/session.h"
#include "libcore/train/prediction_data.h"

namespace pd {

/// The program to run. Variables have their values in the session's scope.
struct Predictor {
  ProgramDesc program;
  std::vector<FeedSpec> inputs;  ///< first extents -1
  /// One row a record, or detected boxes and how many each record has.
  std::vector<std::string> outputs;
  /// By output: its rows are boxes, which another output counts.
  std::vector<bool> counted;
};

/// Sees a batch, its data set and the outputs, row-major; all are valid during
/// the call. Its error ends the prediction.
using PredictionSink =
    std::function<absl::Status(const Batch& batch, const Dataset& data,
                               const std::vector<const Tensor*>& outputs)>;

/// Runs everything that `data` gives. Records that could not be read are added
/// to `skipped` where the job's data set says that they are left out. The
/// number of records.
absl::StatusOr<int64_t> Predict(const Predictor& predictor, Session* session,
                                PredictionData* data,
                                const PredictionSink& sink,
                                BadRecords* skipped);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_PREDICT_H_
