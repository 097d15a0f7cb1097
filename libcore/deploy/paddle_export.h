// SPDX-License-Identifier: Apache-2.0
// Models as PaddlePaddle's save_inference_model and paddle.jit.save write them.
// Their files replace the old ones together (FileSet): a failure leaves the old
// model as it was.
#ifndef PD_LIBCORE_DEPLOY_PADDLE_EXPORT_H_
#define PD_LIBCORE_DEPLOY_PADDLE_EXPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/deploy/inference_model.h"

namespace pd {

/// A function of a saved layer beside `forward`, under its name.
struct PaddleMethod {
  std::string name;
  InferenceModel model;
};

/// Writes PREFIX.pdmodel, with feed and fetch ops, PREFIX.pdiparams, the
/// parameters in name order, and PREFIX.pdiparams.info, which says what
/// paddle.jit.load makes of each of them; a model without parameters has
/// neither of the two. Each of `methods` becomes PREFIX.NAME.pdmodel with its
/// own PREFIX.NAME.pdiparams; the table is one of all parameters. Folders on
/// the way are made. InvalidArgument where the prefix is standard output, a
/// device or a pipe, where a method's name is no name of Python's, stands twice
/// or is "forward", and where only methods have parameters, which
/// paddle.jit.load refuses.
absl::Status WritePaddleModel(const InferenceModel& model,
                              const std::string& prefix,
                              const std::vector<PaddleMethod>& methods = {});

/// Writes the older form: FOLDER/__model__ and a file for each parameter, named
/// after it. InvalidArgument for a parameter whose name leaves the folder.
absl::Status WritePaddleLegacyModel(const InferenceModel& model,
                                    const std::string& folder);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_PADDLE_EXPORT_H_
