// SPDX-License-Identifier: Apache-2.0
// Models as PaddlePaddle's save_inference_model writes them. Their files
// replace the old ones together (FileSet): a failure leaves the old model as it
// was.
#ifndef PD_LIBCORE_DEPLOY_PADDLE_EXPORT_H_
#define PD_LIBCORE_DEPLOY_PADDLE_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "libcore/deploy/inference_model.h"

namespace pd {

/// Writes PREFIX.pdmodel, with feed and fetch ops, and PREFIX.pdiparams, the
/// parameters in name order; a model without parameters has no such file.
/// Folders on the way are made. InvalidArgument where the prefix is standard
/// output, a device or a pipe.
absl::Status WritePaddleModel(const InferenceModel& model,
                              const std::string& prefix);

/// Writes the older form: FOLDER/__model__ and a file for each parameter, named
/// after it. InvalidArgument for a parameter whose name leaves the folder.
absl::Status WritePaddleLegacyModel(const InferenceModel& model,
                                    const std::string& folder);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_PADDLE_EXPORT_H_
