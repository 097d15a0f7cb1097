// SPDX-License-Identifier: Apache-2.0
// Optimizers as ops: gradient clipping, weight decay and parameter updates are
// appended to a program in the order, with the names and the attributes that
// PaddlePaddle's optimizers use, so that what one saves the other goes on with.
#ifndef PD_LIBCORE_OPTIM_OPTIMIZER_H_
#define PD_LIBCORE_OPTIM_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/program/block_builder.h"

namespace pd {

/// coeff * |p| (l1) or coeff / 2 * p^2 (l2) added to the loss: sign(p) * coeff
/// or p * coeff added to the gradient.
struct WeightDecay {
  enum class Kind { kNone, kL1, kL2 };
  Kind kind = Kind::kNone;
  double coeff = 0;
};

struct GradClip {
  enum class Kind { kNone, kValue, kNorm, kGlobalNorm };
  Kind kind = Kind::kNone;
  double min = -1, max = 1;  ///< kValue
  double clip_norm = 1;      ///< kNorm: of each gradient; kGlobalNorm: of all
};

/// PaddlePaddle's arguments, names and defaults.
struct OptimizerSpec {
  enum class Kind {
    kSgd,
    kMomentum,
    kLarsMomentum,
    kAdam,
    kAdamW,
    kAdamax,
    kAdagrad,
    kAdadelta,
    kRmsProp,
    kFtrl,
    kLamb,
    kDecayedAdagrad,
    kProximalGd,
    kProximalAdagrad,
    kDpsgd,
    kDgcMomentum
  };
  Kind kind = Kind::kSgd;
  double learning_rate = 0.001;  ///< the value before the first step
  WeightDecay weight_decay;      ///< not for kAdamW and kLamb: coeff
  GradClip grad_clip;
  // momentum, lars_momentum, rmsprop (whose default is 0)
  double momentum = 0.9;
  bool use_nesterov = false;
  double rescale_grad = 1;
  double lars_coeff = 0.001;
  // adam, adamw, adamax, lamb; epsilon of all but sgd, momentum,
  // ftrl, proximal and dpsgd
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool lazy_mode = false;
  // adamw, lamb, lars_momentum
  double coeff = 0.01;  ///< their argument (lamb_, lars_)weight_decay
  /// Whether a parameter decays; null: all do.
  std::function<bool(const std::string& param)> apply_decay_param_fun;
  bool always_adapt = false;               ///< lamb
  double initial_accumulator_value = 0;    ///< adagrad, proximal_adagrad
  double rho = 0.95;                       ///< adadelta, rmsprop
  double decay = 0.95;                     ///< decayed_adagrad
  bool centered = false;                   ///< rmsprop
  double l1 = 0, l2 = 0, lr_power = -0.5;  ///< ftrl; proximal: l1, l2
  // dpsgd
  double clip = 0.9, batch_size = 0.999, sigma = 1e-8;
  // dgc_momentum
  int64_t rampup_begin_step = 0, rampup_step = 1;
  std::vector<float> sparsity = {0.999f};
  // adamw
  /// A factor of the learning rate per parameter; null: 1.
  std::function<double(const std::string& param)> lr_ratio;
  // adam, adamw
  /// A bool variable: where it is true the update changes nothing; "": none.
  std::string skip_update;
};

/// A parameter of the main program, the variable with its gradient, and the
/// parameter's own attributes (ParamAttr).
struct ParamGrad {
  std::string param, grad;
  double learning_rate = 1;                ///< a factor
  std::optional<WeightDecay> regularizer;  ///< instead of the optimizer's
  bool need_clip = true;
  std::string state_name;  ///< base of the names of accumulators; "": param
};

/// The variables that an optimizer added to the program.
struct OptimizerVars {
  std::string learning_rate;  ///< a persistable float: set it before a step
  std::vector<std::string> accumulators;
};

/// Appends to `main` what one training step does with the gradients: clipping,
/// decay, updates; and to `startup` the initial values of the learning rate and
/// the accumulators. InvalidArgument for arguments out of range; NotFound for a
/// parameter or gradient that `main` does not have.
absl::StatusOr<OptimizerVars> AppendOptimizer(
    const OptimizerSpec& spec, std::vector<ParamGrad> params_grads,
    BlockBuilder* main, BlockBuilder* startup);

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_OPTIMIZER_H_
