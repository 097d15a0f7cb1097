// SPDX-License-Identifier: Apache-2.0
// A run as a model that answers: the network of its job with the values of its
// checkpoint, as pd-export would write it.
#ifndef PD_LIBCORE_SERVE_RUN_MODEL_H_
#define PD_LIBCORE_SERVE_RUN_MODEL_H_

#include "absl/status/statusor.h"
#include "libcore/model/load_model.h"

namespace pd {
namespace serve {

/// InvalidArgument where the job does not build, or is of another network than
/// the checkpoint.
absl::StatusOr<LoadedModel> ModelOfRun(const LoadedModel& run);

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_RUN_MODEL_H_
