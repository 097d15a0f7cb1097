// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/job_optimizer.h"

#include <memory>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/optim/lr_schedule.h"

namespace pd {
namespace {

WeightDecay DecayOf(const job::Regularizer& regularizer) {
  if (regularizer.has_l1_decay())
    return {WeightDecay::Kind::kL1, regularizer.l1_decay().coeff()};
  return {WeightDecay::Kind::kL2, regularizer.l2_decay().coeff()};
}

GradClip ClipOf(const job::GradClip& clip) {
  GradClip result;
  if (clip.has_by_value()) {
    result.kind = GradClip::Kind::kValue;
    result.max = clip.by_value().max();
    result.min = clip.by_value().has_min() ? clip.by_value().min()
                                           : -clip.by_value().max();
  } else if (clip.has_by_norm()) {
    result.kind = GradClip::Kind::kNorm;
    result.clip_norm = clip.by_norm().clip_norm();
  } else if (clip.has_by_global_norm()) {
    result.kind = GradClip::Kind::kGlobalNorm;
    result.clip_norm = clip.by_global_norm().clip_norm();
  }
  return result;
}

// Sets the kind and its arguments; gives the optimizer's learning rate.
OptimizerSpec SpecOf(const job::Optimizer& optimizer) {
  OptimizerSpec spec;
  switch (optimizer.kind_case()) {
    case job::Optimizer::kSgd:
      spec.kind = OptimizerSpec::Kind::kSgd;
      spec.learning_rate = optimizer.sgd().learning_rate();
      break;
    case job::Optimizer::kMomentum:
      spec.kind = OptimizerSpec::Kind::kMomentum;
      spec.learning_rate = optimizer.momentum().learning_rate();
      spec.momentum = optimizer.momentum().momentum();
      spec.use_nesterov = optimizer.momentum().use_nesterov();
      break;
    case job::Optimizer::kAdam:
      spec.kind = OptimizerSpec::Kind::kAdam;
      spec.learning_rate = optimizer.adam().learning_rate();
      spec.beta1 = optimizer.adam().beta1();
      spec.beta2 = optimizer.adam().beta2();
      spec.epsilon = optimizer.adam().epsilon();
      break;
    case job::Optimizer::kAdamw:
      spec.kind = OptimizerSpec::Kind::kAdamW;
      spec.learning_rate = optimizer.adamw().learning_rate();
      spec.beta1 = optimizer.adamw().beta1();
      spec.beta2 = optimizer.adamw().beta2();
      spec.epsilon = optimizer.adamw().epsilon();
      spec.coeff = optimizer.adamw().weight_decay();
      break;
    case job::Optimizer::KIND_NOT_SET:
      PD_INVARIANT(!"an optimizer without a kind passed the job's check");
  }
  return spec;
}

// A schedule's own learning rate, or the optimizer's.
template <typename Message>
double RateOr(const Message& message, double otherwise) {
  return message.has_learning_rate() ? message.learning_rate() : otherwise;
}

LrSchedule ScheduleOf(const job::LRScheduler& lr, double rate);

LrSchedule WarmupOf(const job::LinearWarmup& warmup, double rate) {
  LinearWarmup rule;
  const double later = RateOr(warmup, rate);
  rule.after = std::make_shared<const LrSchedule>(
      warmup.has_after() ? ScheduleOf(warmup.after(), later)
                         : LrSchedule(ConstantLR{later}));
  rule.warmup_steps = warmup.warmup_steps();
  rule.start_lr = warmup.start_lr();
  rule.end_lr = warmup.end_lr();
  return LrSchedule(rule);
}

LrSchedule ScheduleOf(const job::LRScheduler& lr, double rate) {
  switch (lr.kind_case()) {
    case job::LRScheduler::kNoamDecay:
      return LrSchedule(
          NoamDecay{static_cast<double>(lr.noam_decay().d_model()),
                    static_cast<double>(lr.noam_decay().warmup_steps()),
                    lr.noam_decay().learning_rate()});
    case job::LRScheduler::kExponentialDecay:
      return LrSchedule(ExponentialDecay{RateOr(lr.exponential_decay(), rate),
                                         lr.exponential_decay().gamma()});
    case job::LRScheduler::kNaturalExpDecay:
      return LrSchedule(NaturalExpDecay{RateOr(lr.natural_exp_decay(), rate),
                                        lr.natural_exp_decay().gamma()});
    case job::LRScheduler::kInverseTimeDecay:
      return LrSchedule(InverseTimeDecay{RateOr(lr.inverse_time_decay(), rate),
                                         lr.inverse_time_decay().gamma()});
    case job::LRScheduler::kPolynomialDecay: {
      const auto& p = lr.polynomial_decay();
      return LrSchedule(PolynomialDecay{RateOr(p, rate), p.decay_steps(),
                                        p.end_lr(), p.power(), p.cycle()});
    }
    case job::LRScheduler::kPiecewiseDecay: {
      const auto& p = lr.piecewise_decay();
      return LrSchedule(
          PiecewiseDecay{{p.boundaries().begin(), p.boundaries().end()},
                         {p.values().begin(), p.values().end()}});
    }
    case job::LRScheduler::kCosineAnnealingDecay: {
      const auto& c = lr.cosine_annealing_decay();
      return LrSchedule(
          CosineAnnealingDecay{RateOr(c, rate), c.t_max(), c.eta_min()});
    }
    case job::LRScheduler::kLinearWarmup:
      return WarmupOf(lr.linear_warmup(), rate);
    case job::LRScheduler::kStepDecay: {
      const auto& s = lr.step_decay();
      return LrSchedule(StepDecay{RateOr(s, rate), s.step_size(), s.gamma()});
    }
    case job::LRScheduler::kMultiStepDecay: {
      const auto& m = lr.multi_step_decay();
      return LrSchedule(
          MultiStepDecay{RateOr(m, rate),
                         {m.milestones().begin(), m.milestones().end()},
                         m.gamma()});
    }
    case job::LRScheduler::KIND_NOT_SET:
      break;
  }
  return LrSchedule(ConstantLR{rate});
}

}  // namespace

absl::StatusOr<OptimizerSpec> OptimizerOf(const LoadedJob& job) {
  const job::Optimizer& optimizer = job.proto().optimizer();
  OptimizerSpec spec = SpecOf(optimizer);
  if (optimizer.has_weight_decay()) {
    if (spec.kind == OptimizerSpec::Kind::kAdamW)
      return job.At(InvalidArgument("adamw has its own weight_decay"),
                    optimizer, "weight_decay");
    spec.weight_decay = DecayOf(optimizer.weight_decay());
  }
  if (optimizer.has_grad_clip()) spec.grad_clip = ClipOf(optimizer.grad_clip());
  PD_ASSIGN_OR_RETURN(const auto rate, RateOf(job));
  spec.learning_rate = rate(0, 0);
  return spec;
}

absl::StatusOr<std::function<double(int64_t, int64_t)>> RateOf(
    const LoadedJob& job) {
  const job::Optimizer& optimizer = job.proto().optimizer();
  const double base = SpecOf(optimizer).learning_rate;
  auto schedule =
      std::make_shared<const LrSchedule>(ScheduleOf(optimizer.lr(), base));
  const absl::Status valid = schedule->Check();
  if (!valid.ok()) return job.At(valid, optimizer, "lr");
  const bool by_epoch = optimizer.lr().by() == job::LRScheduler::epoch;
  return std::function<double(int64_t, int64_t)>(
      [schedule, by_epoch](int64_t step, int64_t epoch) {
        return schedule->At(by_epoch ? epoch : step);
      });
}

ParamGrad ParamGradOf(const ParameterSettings& settings,
                      const std::string& gradient) {
  ParamGrad pair;
  pair.param = settings.name;
  pair.grad = gradient;
  pair.learning_rate = settings.learning_rate;
  pair.need_clip = settings.need_clip;
  pair.regularizer = settings.regularizer;
  return pair;
}

}  // namespace pd
