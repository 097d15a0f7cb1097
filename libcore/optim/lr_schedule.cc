// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr double kPi = 3.14159265358979323846;

// One overload of Rate (the formula) and of CheckRule (its arguments) a rule.

absl::Status NotNegative(const char* name, double value) {
  if (value >= 0) return absl::OkStatus();
  return InvalidArgument("'%s' is %g; expected 0 or more", name, value);
}

absl::Status Positive(const char* name, double value) {
  if (value > 0) return absl::OkStatus();
  return InvalidArgument("'%s' is %g; expected more than 0", name, value);
}

absl::Status Rising(const char* name, const std::vector<int64_t>& values) {
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] <= values[i - 1])
      return InvalidArgument("'%s' holds %d after %d; expected rising numbers",
                             name, values[i], values[i - 1]);
  return absl::OkStatus();
}

double Rate(const ConstantLR& r, int64_t) { return r.learning_rate; }
absl::Status CheckRule(const ConstantLR& r) {
  return NotNegative("learning_rate", r.learning_rate);
}

double Rate(const NoamDecay& r, int64_t step) {
  const double n = static_cast<double>(step);
  const double a = step == 0 ? 1.0 : std::pow(n, -0.5);
  const double b = std::pow(r.warmup_steps, -1.5) * n;
  return r.learning_rate * std::pow(r.d_model, -0.5) * std::min(a, b);
}
absl::Status CheckRule(const NoamDecay& r) {
  PD_RETURN_IF_ERROR(Positive("d_model", r.d_model));
  return Positive("warmup_steps", r.warmup_steps);
}

double Rate(const ExponentialDecay& r, int64_t step) {
  return r.learning_rate * std::pow(r.gamma, static_cast<double>(step));
}
absl::Status CheckRule(const ExponentialDecay& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  return Positive("gamma", r.gamma);
}

double Rate(const NaturalExpDecay& r, int64_t step) {
  return r.learning_rate * std::exp(-r.gamma * static_cast<double>(step));
}
absl::Status CheckRule(const NaturalExpDecay& r) {
  return NotNegative("learning_rate", r.learning_rate);
}

double Rate(const InverseTimeDecay& r, int64_t step) {
  return r.learning_rate / (1 + r.gamma * static_cast<double>(step));
}
absl::Status CheckRule(const InverseTimeDecay& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  return NotNegative("gamma", r.gamma);
}

double Rate(const PolynomialDecay& r, int64_t step) {
  double n = static_cast<double>(step);
  double steps = static_cast<double>(r.decay_steps);
  if (r.cycle)
    steps *= std::max(1.0, std::ceil(n / steps));
  else
    n = std::min(n, steps);
  return (r.learning_rate - r.end_lr) * std::pow(1 - n / steps, r.power) +
         r.end_lr;
}
absl::Status CheckRule(const PolynomialDecay& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  PD_RETURN_IF_ERROR(Positive("decay_steps", r.decay_steps));
  return Positive("power", r.power);
}

double Rate(const PiecewiseDecay& r, int64_t step) {
  size_t i = 0;
  while (i < r.boundaries.size() && step >= r.boundaries[i]) ++i;
  return r.values[i];
}
absl::Status CheckRule(const PiecewiseDecay& r) {
  if (r.values.size() != r.boundaries.size() + 1)
    return InvalidArgument(
        "'values' holds %d numbers and 'boundaries' %d; "
        "expected one value more",
        r.values.size(), r.boundaries.size());
  for (double value : r.values)
    PD_RETURN_IF_ERROR(NotNegative("values", value));
  return Rising("boundaries", r.boundaries);
}

double Rate(const CosineAnnealingDecay& r, int64_t step) {
  const double turn = static_cast<double>(step) / static_cast<double>(r.t_max);
  return r.eta_min +
         (r.learning_rate - r.eta_min) * (1 + std::cos(kPi * turn)) / 2;
}
absl::Status CheckRule(const CosineAnnealingDecay& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  return Positive("T_max", r.t_max);
}

double Rate(const StepDecay& r, int64_t step) {
  return r.learning_rate *
         std::pow(r.gamma, static_cast<double>(step / r.step_size));
}
absl::Status CheckRule(const StepDecay& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  PD_RETURN_IF_ERROR(NotNegative("gamma", r.gamma));
  return Positive("step_size", r.step_size);
}

double Rate(const MultiStepDecay& r, int64_t step) {
  size_t reached = 0;
  while (reached < r.milestones.size() && step >= r.milestones[reached])
    ++reached;
  return r.learning_rate * std::pow(r.gamma, static_cast<double>(reached));
}
absl::Status CheckRule(const MultiStepDecay& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  PD_RETURN_IF_ERROR(NotNegative("gamma", r.gamma));
  return Rising("milestones", r.milestones);
}

double Rate(const LinearWarmup& r, int64_t step) {
  if (step >= r.warmup_steps) return r.after->At(step - r.warmup_steps);
  return (r.end_lr - r.start_lr) * static_cast<double>(step) /
             static_cast<double>(r.warmup_steps) +
         r.start_lr;
}
absl::Status CheckRule(const LinearWarmup& r) {
  PD_RETURN_IF_ERROR(NotNegative("warmup_steps", r.warmup_steps));
  if (!(r.end_lr > r.start_lr))
    return InvalidArgument(
        "'end_lr' is %g and 'start_lr' %g; expected a "
        "higher end",
        r.end_lr, r.start_lr);
  if (r.after == nullptr)
    return InvalidArgument(
        "'learning_rate' is missing: what comes after the "
        "warm-up");
  return r.after->Check();
}

// The phases of OneCycleLR: a curve from rate[i] to rate[i + 1] between the
// steps at[i] and at[i + 1].
struct Phases {
  size_t count;
  std::array<double, 4> at, rate;
};

Phases PhasesOf(const OneCycleLR& r) {
  const double start = r.max_learning_rate / r.divide_factor;
  const double up = r.phase_pct * static_cast<double>(r.total_steps);
  const double last = static_cast<double>(r.total_steps) - 1;
  if (r.three_phase)
    return {3,
            {0, up - 1, 2 * up - 2, last},
            {start, r.max_learning_rate, start, r.end_learning_rate}};
  return {2,
          {0, up - 1, last, 0},
          {start, r.max_learning_rate, r.end_learning_rate, 0}};
}

double Rate(const OneCycleLR& r, int64_t step) {
  const double n = static_cast<double>(std::min(step, r.total_steps));
  const Phases p = PhasesOf(r);
  size_t i = 0;
  while (i + 1 < p.count && n > p.at[i + 1]) ++i;
  const double part = (n - p.at[i]) / (p.at[i + 1] - p.at[i]);
  const double from = p.rate[i], to = p.rate[i + 1];
  return r.anneal_strategy == OneCycleLR::Anneal::kLinear
             ? (to - from) * part + from
             : to + (from - to) / 2 * (std::cos(kPi * part) + 1);
}
absl::Status CheckRule(const OneCycleLR& r) {
  PD_RETURN_IF_ERROR(NotNegative("max_learning_rate", r.max_learning_rate));
  PD_RETURN_IF_ERROR(NotNegative("end_learning_rate", r.end_learning_rate));
  PD_RETURN_IF_ERROR(Positive("total_steps", r.total_steps));
  PD_RETURN_IF_ERROR(Positive("divide_factor", r.divide_factor));
  const Phases p = PhasesOf(r);
  for (size_t i = 0; i < p.count; ++i)
    if (!(p.at[i + 1] > p.at[i]))
      return InvalidArgument(
          "'phase_pct' is %g of %d steps, so phase %d would go from step %g to "
          "%g",
          r.phase_pct, r.total_steps, i + 1, p.at[i], p.at[i + 1]);
  return absl::OkStatus();
}

double Rate(const CyclicLR& r, int64_t step) {
  const double n = static_cast<double>(step);
  const double up = static_cast<double>(r.step_size_up);
  const double down =
      r.step_size_down > 0 ? static_cast<double>(r.step_size_down) : up;
  const double up_part = up / (up + down);
  const double cycle = 1 + std::floor(n / (up + down));
  const double part = 1 + n / (up + down) - cycle;
  const double height =
      part <= up_part ? part / up_part : (1 - part) / (1 - up_part);
  double scale = 1;
  if (r.mode == CyclicLR::Mode::kTriangular2) scale = std::pow(2, 1 - cycle);
  if (r.mode == CyclicLR::Mode::kExpRange) scale = std::pow(r.exp_gamma, n);
  return r.base_learning_rate +
         (r.max_learning_rate - r.base_learning_rate) * height * scale;
}
absl::Status CheckRule(const CyclicLR& r) {
  PD_RETURN_IF_ERROR(NotNegative("max_learning_rate", r.max_learning_rate));
  PD_RETURN_IF_ERROR(NotNegative("base_learning_rate", r.base_learning_rate));
  PD_RETURN_IF_ERROR(NotNegative("step_size_down", r.step_size_down));
  return Positive("step_size_up", r.step_size_up);
}

double Rate(const LinearLR& r, int64_t step) {
  const double part = static_cast<double>(std::min(step, r.total_steps)) /
                      static_cast<double>(r.total_steps);
  return r.learning_rate *
         (r.start_factor + (r.end_factor - r.start_factor) * part);
}
absl::Status CheckRule(const LinearLR& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  PD_RETURN_IF_ERROR(Positive("total_steps", r.total_steps));
  PD_RETURN_IF_ERROR(Positive("start_factor", r.start_factor));
  PD_RETURN_IF_ERROR(NotNegative("end_factor", r.end_factor));
  for (const auto& [name, factor] : {std::pair("start_factor", r.start_factor),
                                     std::pair("end_factor", r.end_factor)})
    if (factor > 1)
      return InvalidArgument("'%s' is %g; expected at most 1", name, factor);
  return absl::OkStatus();
}

double Rate(const CosineAnnealingWarmRestarts& r, int64_t step) {
  int64_t length = r.t_0;
  if (r.t_mult == 1) {
    step %= length;
  } else {
    // A length that the next product would overflow is longer than any step.
    while (step >= length &&
           length <= std::numeric_limits<int64_t>::max() / r.t_mult) {
      step -= length;
      length *= r.t_mult;
    }
  }
  const double turn = static_cast<double>(step) / static_cast<double>(length);
  return r.eta_min +
         (r.learning_rate - r.eta_min) * (1 + std::cos(kPi * turn)) / 2;
}
absl::Status CheckRule(const CosineAnnealingWarmRestarts& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  PD_RETURN_IF_ERROR(Positive("T_0", r.t_0));
  return Positive("T_mult", r.t_mult);
}

// The first steps and then powers of two show most mistakes before a training
// begins; a later rate is as PaddlePaddle would take it.
absl::Status CheckFactor(const std::shared_ptr<const Formula>& factor,
                         int64_t first) {
  if (factor == nullptr) return InvalidArgument("'lr_lambda' is missing");
  constexpr int64_t kEach = 1000, kLast = int64_t{1} << 20;
  for (int64_t t = first; t <= kLast; t += t < kEach ? 1 : t) {
    const double value = factor->At(t);
    if (!std::isfinite(value))
      return InvalidArgument(
          "'lr_lambda' \"%s\" is %g at t = %d; expected a "
          "finite number",
          factor->text(), value, t);
  }
  return absl::OkStatus();
}

double Rate(const LambdaDecay& r, int64_t step) {
  return r.learning_rate * r.lr_lambda->At(step);
}
absl::Status CheckRule(const LambdaDecay& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  return CheckFactor(r.lr_lambda, 0);
}

double Rate(const MultiplicativeDecay& r, int64_t step) {
  return r.lr_lambda->Product(r.learning_rate, step);
}
absl::Status CheckRule(const MultiplicativeDecay& r) {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", r.learning_rate));
  return CheckFactor(r.lr_lambda, 1);
}

}  // namespace

absl::Status LrSchedule::Check() const {
  return std::visit([](const auto& rule) { return CheckRule(rule); }, rule_);
}

double LrSchedule::At(int64_t step) const {
  return std::visit([step](const auto& rule) { return Rate(rule, step); },
                    rule_);
}

absl::Status ReduceOnPlateau::Check() const {
  PD_RETURN_IF_ERROR(NotNegative("learning_rate", learning_rate));
  if (!(factor < 1))
    return InvalidArgument("'factor' is %g; expected less than 1", factor);
  return absl::OkStatus();
}

double ReduceOnPlateau::Step(double metric) {
  if (cooldown_counter > 0) {
    --cooldown_counter;
    return learning_rate;
  }
  const double margin = absolute ? threshold : best * threshold;
  const bool better =
      max_mode ? metric > best + margin : metric < best - margin;
  if (!has_best || better) {
    has_best = true;
    best = metric;
    num_bad_epochs = 0;
  } else {
    ++num_bad_epochs;
  }
  if (num_bad_epochs > patience) {
    cooldown_counter = cooldown;
    num_bad_epochs = 0;
    const double lower = std::max(learning_rate * factor, min_lr);
    if (learning_rate - lower > epsilon) learning_rate = lower;
  }
  return learning_rate;
}

}  // namespace pd
