// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/job_optimizer.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/optim/lr_schedule.h"
#include "libcore/optim/lr_state.h"
#include "libcore/train/job_newton.h"

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

// The betas and epsilon of the Adam family.
template <typename Message>
void SetBetas(const Message& adam, OptimizerSpec* spec) {
  spec->learning_rate = adam.learning_rate();
  spec->beta1 = adam.beta1();
  spec->beta2 = adam.beta2();
  spec->epsilon = adam.epsilon();
}

// Whether a parameter decays: none of the words is in its name.
std::function<bool(const std::string&)> Excluding(
    const google::protobuf::RepeatedPtrField<std::string>& words) {
  return [words = std::vector<std::string>(words.begin(), words.end())](
             const std::string& param) {
    for (const std::string& word : words)
      if (absl::StrContains(param, word)) return false;
    return true;
  };
}

void SetMoreKinds(const job::Optimizer& optimizer, OptimizerSpec* spec) {
  using Kind = OptimizerSpec::Kind;
  if (optimizer.has_lars_momentum()) {
    const job::LarsMomentum& lars = optimizer.lars_momentum();
    spec->kind = Kind::kLarsMomentum;
    spec->learning_rate = lars.learning_rate();
    spec->momentum = lars.momentum();
    spec->lars_coeff = lars.lars_coeff();
    spec->coeff = lars.lars_weight_decay();
    spec->epsilon = lars.epsilon();
    spec->apply_decay_param_fun = Excluding(lars.exclude_from_weight_decay());
  } else if (optimizer.has_adagrad()) {
    spec->kind = Kind::kAdagrad;
    spec->learning_rate = optimizer.adagrad().learning_rate();
    spec->epsilon = optimizer.adagrad().epsilon();
    spec->initial_accumulator_value =
        optimizer.adagrad().initial_accumulator_value();
  } else if (optimizer.has_decayed_adagrad()) {
    spec->kind = Kind::kDecayedAdagrad;
    spec->learning_rate = optimizer.decayed_adagrad().learning_rate();
    spec->epsilon = optimizer.decayed_adagrad().epsilon();
    spec->decay = optimizer.decayed_adagrad().decay();
  } else if (optimizer.has_adadelta()) {
    spec->kind = Kind::kAdadelta;
    spec->learning_rate = optimizer.adadelta().learning_rate();
    spec->epsilon = optimizer.adadelta().epsilon();
    spec->rho = optimizer.adadelta().rho();
  } else if (optimizer.has_rmsprop()) {
    const job::RMSProp& rmsprop = optimizer.rmsprop();
    spec->kind = Kind::kRmsProp;
    spec->learning_rate = rmsprop.learning_rate();
    spec->rho = rmsprop.rho();
    spec->epsilon = rmsprop.epsilon();
    spec->momentum = rmsprop.momentum();
    spec->centered = rmsprop.centered();
  } else if (optimizer.has_ftrl()) {
    spec->kind = Kind::kFtrl;
    spec->learning_rate = optimizer.ftrl().learning_rate();
    spec->l1 = optimizer.ftrl().l1();
    spec->l2 = optimizer.ftrl().l2();
    spec->lr_power = optimizer.ftrl().lr_power();
  } else if (optimizer.has_lamb()) {
    const job::Lamb& lamb = optimizer.lamb();
    spec->kind = Kind::kLamb;
    SetBetas(lamb, spec);
    spec->coeff = lamb.lamb_weight_decay();
    spec->always_adapt = lamb.always_adapt();
    spec->apply_decay_param_fun = Excluding(lamb.exclude_from_weight_decay());
  }
}

void SetProximalKinds(const job::Optimizer& optimizer, OptimizerSpec* spec) {
  using Kind = OptimizerSpec::Kind;
  const auto set = [&](const auto& proximal, Kind kind) {
    spec->kind = kind;
    spec->learning_rate = proximal.learning_rate();
    spec->l1 = proximal.l1();
    spec->l2 = proximal.l2();
  };
  if (optimizer.has_proximal_gd()) {
    set(optimizer.proximal_gd(), Kind::kProximalGd);
  } else {
    set(optimizer.proximal_adagrad(), Kind::kProximalAdagrad);
    spec->initial_accumulator_value =
        optimizer.proximal_adagrad().initial_accumulator_value();
  }
}

void SetDgc(const job::DGCMomentum& dgc, OptimizerSpec* spec) {
  spec->kind = OptimizerSpec::Kind::kDgcMomentum;
  spec->learning_rate = dgc.learning_rate();
  spec->momentum = dgc.momentum();
  spec->use_nesterov = dgc.use_nesterov();
  spec->rampup_begin_step = dgc.rampup_begin_step();
  spec->rampup_step = dgc.rampup_step();
  if (dgc.sparsity_size() > 0)
    spec->sparsity = {dgc.sparsity().begin(), dgc.sparsity().end()};
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
      spec.rescale_grad = optimizer.momentum().rescale_grad();
      break;
    case job::Optimizer::kAdam:
      spec.kind = OptimizerSpec::Kind::kAdam;
      SetBetas(optimizer.adam(), &spec);
      spec.lazy_mode = optimizer.adam().lazy_mode();
      break;
    case job::Optimizer::kAdamw:
      spec.kind = OptimizerSpec::Kind::kAdamW;
      SetBetas(optimizer.adamw(), &spec);
      spec.coeff = optimizer.adamw().weight_decay();
      spec.lazy_mode = optimizer.adamw().lazy_mode();
      spec.apply_decay_param_fun =
          Excluding(optimizer.adamw().exclude_from_weight_decay());
      break;
    case job::Optimizer::kAdamax:
      spec.kind = OptimizerSpec::Kind::kAdamax;
      SetBetas(optimizer.adamax(), &spec);
      break;
    case job::Optimizer::kLarsMomentum:
    case job::Optimizer::kAdagrad:
    case job::Optimizer::kAdadelta:
    case job::Optimizer::kRmsprop:
    case job::Optimizer::kFtrl:
    case job::Optimizer::kLamb:
    case job::Optimizer::kDecayedAdagrad:
      SetMoreKinds(optimizer, &spec);
      break;
    case job::Optimizer::kProximalGd:
    case job::Optimizer::kProximalAdagrad:
      SetProximalKinds(optimizer, &spec);
      break;
    case job::Optimizer::kDpsgd:
      spec.kind = OptimizerSpec::Kind::kDpsgd;
      spec.learning_rate = optimizer.dpsgd().learning_rate();
      spec.clip = optimizer.dpsgd().clip();
      spec.batch_size = optimizer.dpsgd().batch_size();
      spec.sigma = optimizer.dpsgd().sigma();
      break;
    case job::Optimizer::kDgcMomentum:
      SetDgc(optimizer.dgc_momentum(), &spec);
      break;
    case job::Optimizer::kLbfgs:  // job_newton.h
      spec.learning_rate = optimizer.lbfgs().learning_rate();
      break;
    case job::Optimizer::kBfgs:
      spec.learning_rate = 1;
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

absl::StatusOr<LrSchedule> ScheduleOf(const LoadedJob& job,
                                      const job::LRScheduler& lr, double rate);

LrSchedule OneCycleOf(const job::OneCycleLR& cycle, double rate) {
  OneCycleLR rule;
  rule.max_learning_rate =
      cycle.has_max_learning_rate() ? cycle.max_learning_rate() : rate;
  rule.total_steps = cycle.total_steps();
  rule.divide_factor = cycle.divide_factor();
  rule.end_learning_rate = cycle.end_learning_rate();
  rule.phase_pct = cycle.phase_pct();
  if (cycle.anneal_strategy() == job::OneCycleLR::linear)
    rule.anneal_strategy = OneCycleLR::Anneal::kLinear;
  rule.three_phase = cycle.three_phase();
  return LrSchedule(rule);
}

LrSchedule CyclicOf(const job::CyclicLR& cyclic, double rate) {
  CyclicLR rule;
  rule.base_learning_rate =
      cyclic.has_base_learning_rate() ? cyclic.base_learning_rate() : rate;
  rule.max_learning_rate = cyclic.max_learning_rate();
  rule.step_size_up = cyclic.step_size_up();
  rule.step_size_down = cyclic.step_size_down();
  if (cyclic.mode() == job::CyclicLR::triangular2)
    rule.mode = CyclicLR::Mode::kTriangular2;
  else if (cyclic.mode() == job::CyclicLR::exp_range)
    rule.mode = CyclicLR::Mode::kExpRange;
  rule.exp_gamma = cyclic.exp_gamma();
  return LrSchedule(rule);
}

absl::StatusOr<LrSchedule> WarmupOf(const LoadedJob& job,
                                    const job::LinearWarmup& warmup,
                                    double rate) {
  LinearWarmup rule;
  const double later = RateOr(warmup, rate);
  LrSchedule after(ConstantLR{later});
  if (warmup.has_after()) {
    PD_ASSIGN_OR_RETURN(after, ScheduleOf(job, warmup.after(), later));
  }
  rule.after = std::make_shared<const LrSchedule>(std::move(after));
  rule.warmup_steps = warmup.warmup_steps();
  rule.start_lr = warmup.start_lr();
  rule.end_lr = warmup.end_lr();
  return LrSchedule(rule);
}

LrSchedule LinearOf(const job::LinearLR& linear, double rate) {
  LinearLR rule;
  rule.learning_rate = RateOr(linear, rate);
  rule.total_steps = linear.total_steps();
  if (linear.has_start_factor()) rule.start_factor = linear.start_factor();
  rule.end_factor = linear.end_factor();
  return LrSchedule(rule);
}

// Rule is LambdaDecay or MultiplicativeDecay.
template <typename Rule>
absl::StatusOr<LrSchedule> ByFormula(const LoadedJob& job,
                                     const job::LambdaDecay& decay,
                                     double rate) {
  auto formula = Formula::Parse(decay.lr_lambda());
  if (!formula.ok()) return job.At(formula.status(), decay, "lr_lambda");
  return LrSchedule(Rule{RateOr(decay, rate), *std::move(formula)});
}

absl::StatusOr<LrSchedule> ScheduleOf(const LoadedJob& job,
                                      const job::LRScheduler& lr, double rate) {
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
    case job::LRScheduler::kCosineAnnealingWarmRestarts: {
      const auto& c = lr.cosine_annealing_warm_restarts();
      return LrSchedule(CosineAnnealingWarmRestarts{RateOr(c, rate), c.t_0(),
                                                    c.t_mult(), c.eta_min()});
    }
    case job::LRScheduler::kLinearLr:
      return LinearOf(lr.linear_lr(), rate);
    case job::LRScheduler::kLinearWarmup:
      return WarmupOf(job, lr.linear_warmup(), rate);
    case job::LRScheduler::kLambdaDecay:
      return ByFormula<LambdaDecay>(job, lr.lambda_decay(), rate);
    case job::LRScheduler::kMultiplicativeDecay:
      return ByFormula<MultiplicativeDecay>(job, lr.multiplicative_decay(),
                                            rate);
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
    case job::LRScheduler::kOneCycle:
      return OneCycleOf(lr.one_cycle(), rate);
    case job::LRScheduler::kCyclic:
      return CyclicOf(lr.cyclic(), rate);
    case job::LRScheduler::kReduceOnPlateau:  // monitors.h lowers it
      return LrSchedule(ConstantLR{RateOr(lr.reduce_on_plateau(), rate)});
    case job::LRScheduler::KIND_NOT_SET:
      break;
  }
  return LrSchedule(ConstantLR{rate});
}

}  // namespace

absl::StatusOr<OptimizerSpec> OptimizerOf(const LoadedJob& job,
                                          const job::Optimizer& optimizer) {
  if (IsQuasiNewton(optimizer))
    return job.At(Unimplemented("a phase takes no quasi-Newton method; the "
                                "optimizer of a job without phases may be one"),
                  optimizer);
  OptimizerSpec spec = SpecOf(optimizer);
  if (optimizer.has_weight_decay()) {
    if (spec.kind == OptimizerSpec::Kind::kAdamW ||
        spec.kind == OptimizerSpec::Kind::kLamb)
      return job.At(
          InvalidArgument("the optimizer has a weight decay of its own"),
          optimizer, "weight_decay");
    spec.weight_decay = DecayOf(optimizer.weight_decay());
  }
  if (optimizer.has_grad_clip()) spec.grad_clip = ClipOf(optimizer.grad_clip());
  PD_ASSIGN_OR_RETURN(const auto rate, RateOf(job, optimizer));
  spec.learning_rate = rate(0, 0);
  return spec;
}

absl::StatusOr<std::function<double(int64_t, int64_t)>> RateOf(
    const LoadedJob& job, const google::protobuf::Message& owner,
    const job::LRScheduler& lr, double base) {
  PD_ASSIGN_OR_RETURN(LrSchedule made, ScheduleOf(job, lr, base));
  auto schedule = std::make_shared<const LrSchedule>(std::move(made));
  const absl::Status valid = schedule->Check();
  if (!valid.ok()) return job.At(valid, owner, "lr");
  const bool by_epoch = lr.by() == job::LRScheduler::epoch;
  return std::function<double(int64_t, int64_t)>(
      [schedule, by_epoch](int64_t step, int64_t epoch) {
        return schedule->At(by_epoch ? epoch : step);
      });
}

absl::StatusOr<std::function<double(int64_t, int64_t)>> RateOf(
    const LoadedJob& job, const job::Optimizer& optimizer) {
  return RateOf(job, optimizer, optimizer.lr(),
                SpecOf(optimizer).learning_rate);
}

absl::StatusOr<std::optional<PickleDict>> SchedulerStateOf(
    const LoadedJob& job, const TrainState& state) {
  const job::Optimizer& optimizer = job.proto().optimizer();
  const job::LRScheduler& lr = optimizer.lr();
  if (lr.kind_case() == job::LRScheduler::KIND_NOT_SET) return std::nullopt;
  if (state.plateau.has_value())
    return SchedulerState(*state.plateau, state.epoch);
  PD_ASSIGN_OR_RETURN(const LrSchedule schedule,
                      ScheduleOf(job, lr, SpecOf(optimizer).learning_rate));
  const absl::Status valid = schedule.Check();
  if (!valid.ok()) return job.At(valid, optimizer, "lr");
  const bool by_epoch = lr.by() == job::LRScheduler::epoch;
  return SchedulerState(schedule, by_epoch ? state.epoch : state.step);
}

ParamGrad ParamGradOf(const ParameterSettings& settings,
                      const std::string& gradient) {
  ParamGrad pair;
  pair.param = settings.name;
  pair.grad = gradient;
  pair.state_name = settings.paddle_name;
  pair.learning_rate = settings.learning_rate;
  pair.need_clip = settings.need_clip;
  pair.regularizer = settings.regularizer;
  return pair;
}

}  // namespace pd
