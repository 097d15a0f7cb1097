// SPDX-License-Identifier: Apache-2.0
// Calibration records of pd-quant: an npz file, a set of a job, or pictures,
// which a job's data set makes into what the model is fed.
#ifndef PD_CMD_QUANT_CALIBRATION_H_
#define PD_CMD_QUANT_CALIBRATION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cmd/quant_options.h"
#include "libcore/data/loader.h"
#include "libcore/deploy/inference_model.h"

namespace pd {

/// How many batches are read where no option says it; 0: all.
int64_t DefaultBatches(const QuantOptions& options);

/// The records. `job` is the model's own, in the run or beside the export, and
/// says how pictures are read; the file may be missing.
absl::StatusOr<std::unique_ptr<Loader>> OpenCalibration(
    const QuantOptions& options, const InferenceModel& model,
    const std::string& job);

}  // namespace pd

#endif  // PD_CMD_QUANT_CALIBRATION_H_
