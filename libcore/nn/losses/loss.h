// SPDX-License-Identifier: Apache-2.0
// Losses of a job as ops, and checks of what metrics judge. Internal to
// libcore/nn.
#ifndef PD_LIBCORE_NN_LOSSES_LOSS_H_
#define PD_LIBCORE_NN_LOSSES_LOSS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/job_loss.pb.h"
#include "libcore/nn/layers/layer_context.h"

namespace pd {

/// The declaration of a data set's field that is no input of the model: the
/// dtype and shape of the answers that a loss or metric wants.
struct AnswerSpec {
  DType dtype = DType::kFloat32;
  Shape shape;
};

/// Finds what a loss calls by name: a layer's result, an input, or a field of
/// the data set, which is declared then.
using FindField = std::function<absl::StatusOr<std::string>(
    const std::string& name, const AnswerSpec& spec)>;

/// Appends the job's loss number `number`, reduced and weighted; gives its
/// variable, a scalar. `prediction` is the variable that it looks at.
absl::StatusOr<std::string> BuildLoss(const job::Loss& loss, int number,
                                      const std::string& prediction,
                                      FindField find, const ModelParts& parts);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LOSSES_LOSS_H_
