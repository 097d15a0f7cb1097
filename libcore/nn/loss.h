// SPDX-License-Identifier: Apache-2.0
// Losses of a job as ops, and checks of what metrics judge. Internal to
// libcore/nn.
#ifndef PD_LIBCORE_NN_LOSS_H_
#define PD_LIBCORE_NN_LOSS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/block_builder.h"

namespace pd {

/// The dtype and shape of the answers that a loss wants for predictions of
/// this shape: what a label that is no input of the model is declared as.
struct LabelSpec {
  DType dtype = DType::kFloat32;
  Shape shape;
};
LabelSpec LabelOf(const job::Loss& loss, const Shape& prediction);

/// Appends one loss, reduced and weighted; gives its variable, a scalar.
absl::StatusOr<std::string> BuildLoss(const job::Loss& loss,
                                      const std::string& prediction,
                                      const std::string& label,
                                      BlockBuilder* main);

/// OK when these predictions [N, classes] and class numbers can be judged.
absl::Status CheckAccuracy(const job::Accuracy& accuracy,
                           const VarDesc& prediction, const VarDesc& label);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LOSS_H_
