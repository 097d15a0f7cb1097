// SPDX-License-Identifier: Apache-2.0
// Loss scaling of mixed precision: the loss is multiplied so that gradients do
// not vanish in float16, gradients are divided again, and a step whose
// gradients are not finite changes no parameter and makes the factor smaller.
// Ops, names and attributes are those of paddle.static.amp.decorate.
#ifndef PD_LIBCORE_OPTIM_LOSS_SCALING_H_
#define PD_LIBCORE_OPTIM_LOSS_SCALING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/optim/optimizer.h"

namespace pd {

/// paddle.amp.GradScaler's arguments and defaults.
struct LossScalingSpec {
  double init_loss_scaling = 32768;
  bool use_dynamic_loss_scaling = true;
  int32_t incr_every_n_steps = 1000;
  int32_t decr_every_n_nan_or_inf = 2;
  double incr_ratio = 2, decr_ratio = 0.5;

  /// Whether there is anything to scale.
  bool IsOn() const {
    return use_dynamic_loss_scaling || init_loss_scaling != 1;
  }
};

/// The variables of the program that it keeps from step to step.
struct LossScalingVars {
  std::string scale;  ///< float32 [1]
  // int32 [1]; "" where the factor does not change.
  std::string good_steps, bad_steps;
};

/// Before the gradients: adds the variables and appends the multiplication of
/// the float32 variable `*loss`, which is then the product.
absl::StatusOr<LossScalingVars> ScaleLoss(const LossScalingSpec& spec,
                                          BlockBuilder* main,
                                          BlockBuilder* startup,
                                          std::string* loss);

/// After the gradients: divides them, looks for NaN and Inf, moves the factor.
/// Gives the variable that says whether any was found.
absl::StatusOr<std::string> UnscaleGradients(
    const LossScalingSpec& spec, const LossScalingVars& vars,
    const std::vector<ParamGrad>& params_grads, BlockBuilder* main);

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_LOSS_SCALING_H_
