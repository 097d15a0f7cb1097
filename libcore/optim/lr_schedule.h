// SPDX-License-Identifier: Apache-2.0
// Learning rates by step, computed on the host in double as PaddlePaddle's
// paddle.optimizer.lr classes do; names and defaults of arguments are theirs.
// A step here is PaddlePaddle's last_epoch: 0 before the first step().
#ifndef PD_LIBCORE_OPTIM_LR_SCHEDULE_H_
#define PD_LIBCORE_OPTIM_LR_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "libcore/optim/formula.h"

namespace pd {

class LrSchedule;

struct ConstantLR {
  double learning_rate = 0.001;
};
/// learning_rate / sqrt(d_model) * min(step^-0.5, step * warmup_steps^-1.5)
struct NoamDecay {
  double d_model = 1;
  double warmup_steps = 1;
  double learning_rate = 1;
};
/// learning_rate * gamma^step
struct ExponentialDecay {
  double learning_rate = 0.001;
  double gamma = 1;
};
/// learning_rate * exp(-gamma * step)
struct NaturalExpDecay {
  double learning_rate = 0.001;
  double gamma = 0;
};
/// learning_rate / (1 + gamma * step)
struct InverseTimeDecay {
  double learning_rate = 0.001;
  double gamma = 0;
};
/// From learning_rate to end_lr in decay_steps; then again from the start of
/// a longer curve (cycle) or end_lr for good.
struct PolynomialDecay {
  double learning_rate = 0.001;
  int64_t decay_steps = 1;
  double end_lr = 0.0001;
  double power = 1;
  bool cycle = false;
};
/// values[i] before boundaries[i], the last value after all.
struct PiecewiseDecay {
  std::vector<int64_t> boundaries;
  std::vector<double> values;  ///< one more than boundaries
};
/// eta_min + (learning_rate - eta_min) * (1 + cos(pi * step / T_max)) / 2
struct CosineAnnealingDecay {
  double learning_rate = 0.001;
  int64_t t_max = 1;
  double eta_min = 0;
};
/// learning_rate * gamma^(step / step_size), the quotient rounded down.
struct StepDecay {
  double learning_rate = 0.001;
  int64_t step_size = 1;
  double gamma = 0.1;
};
/// learning_rate * gamma^(milestones that are reached)
struct MultiStepDecay {
  double learning_rate = 0.001;
  std::vector<int64_t> milestones;
  double gamma = 0.1;
};
/// A line from start_lr to end_lr over warmup_steps, then `after`, whose steps
/// begin at 0 there.
struct LinearWarmup {
  std::shared_ptr<const LrSchedule> after;
  int64_t warmup_steps = 1;
  double start_lr = 0, end_lr = 0.001;
};
/// Up from max / divide_factor to max in phase_pct of the steps and down to
/// end_learning_rate ("1cycle"); three_phase goes down to the start first.
struct OneCycleLR {
  double max_learning_rate = 0.1;
  int64_t total_steps = 1;
  double divide_factor = 25;
  double end_learning_rate = 0.0001;
  double phase_pct = 0.3;
  enum class Anneal { kCos, kLinear } anneal_strategy = Anneal::kCos;
  bool three_phase = false;
};
/// Up in step_size_up and down in step_size_down (0: the same), again and
/// again; every cycle lower (triangular2, exp_range with exp_gamma^step).
struct CyclicLR {
  double base_learning_rate = 0.001, max_learning_rate = 0.1;
  int64_t step_size_up = 1, step_size_down = 0;
  enum class Mode { kTriangular, kTriangular2, kExpRange };
  Mode mode = Mode::kTriangular;
  double exp_gamma = 1;
};

/// learning_rate times a factor that goes in a line from start_factor to
/// end_factor over total_steps and stays there.
struct LinearLR {
  double learning_rate = 0.001;
  int64_t total_steps = 1;
  double start_factor = 1.0 / 3, end_factor = 1;
};
/// Half a cosine from learning_rate down to eta_min over T_0 steps, again and
/// again, each T_mult times as long as the one before. Loshchilov and Hutter,
/// 2017.
struct CosineAnnealingWarmRestarts {
  double learning_rate = 0.001;
  int64_t t_0 = 1, t_mult = 1;
  double eta_min = 0;
};
/// learning_rate * lr_lambda(step)
struct LambdaDecay {
  double learning_rate = 0.001;
  std::shared_ptr<const Formula> lr_lambda;
};
/// learning_rate * lr_lambda(1) * ... * lr_lambda(step)
struct MultiplicativeDecay {
  double learning_rate = 0.001;
  std::shared_ptr<const Formula> lr_lambda;
};

class LrSchedule {
 public:
  using Rule = std::variant<
      ConstantLR, NoamDecay, ExponentialDecay, NaturalExpDecay,
      InverseTimeDecay, PolynomialDecay, PiecewiseDecay, CosineAnnealingDecay,
      StepDecay, MultiStepDecay, LinearWarmup, OneCycleLR, CyclicLR, LinearLR,
      CosineAnnealingWarmRestarts, LambdaDecay, MultiplicativeDecay>;
  LrSchedule(Rule rule) : rule_(std::move(rule)) {}  // NOLINT: a variant

  /// InvalidArgument naming an argument that is out of range. At needs OK.
  absl::Status Check() const;
  /// The learning rate of a step, 0 or later.
  double At(int64_t step) const;
  const Rule& rule() const { return rule_; }

 private:
  Rule rule_;
};

/// Lowers the rate by `factor` when a metric has not become better for more
/// than `patience` steps. It depends on what it saw: all fields after the
/// arguments are its state.
struct ReduceOnPlateau {
  double learning_rate = 0.001;
  bool max_mode = false;  ///< mode "max": more is better
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  bool absolute = false;  ///< threshold_mode "abs", else "rel"
  int64_t cooldown = 0;
  double min_lr = 0;
  double epsilon = 1e-8;  ///< smaller changes are not made

  bool has_best = false;
  double best = 0;
  int64_t cooldown_counter = 0, num_bad_epochs = 0;

  absl::Status Check() const;
  /// Takes the next value of the metric; gives the learning rate from now on.
  double Step(double metric);
};

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_LR_SCHEDULE_H_
