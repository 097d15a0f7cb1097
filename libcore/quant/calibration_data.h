// SPDX-License-Identifier: Apache-2.0
// Calibration records from a file of arrays.
#ifndef PD_LIBCORE_QUANT_CALIBRATION_DATA_H_
#define PD_LIBCORE_QUANT_CALIBRATION_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/quant/observe.h"

namespace pd {

/// The number of records that all batches must have; -1 where the model takes
/// any.
int64_t FixedBatch(const InferenceModel& model);

/// Batches of `batch` records of a .npz or .npy file, with the dtypes that the
/// model declares; the last one may be smaller unless the model's is fixed. An
/// array that is called like no input may stand for one that no array is called
/// after. InvalidArgument for a shape or dtype that an input does not take,
/// FailedPrecondition for a file without records.
absl::StatusOr<std::unique_ptr<Loader>> OpenCalibrationArrays(
    const InferenceModel& model, const std::string& path, int64_t batch);

/// The model's inputs with the extents that the model leaves open and the
/// loader's records have.
std::vector<FeedSpec> FeedsOfRecords(const InferenceModel& model,
                                     const Loader& loader);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_CALIBRATION_DATA_H_
