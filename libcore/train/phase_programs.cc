// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/phase_programs.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/name_patterns.h"
#include "libcore/nn/job.pb.h"
#include "libcore/optim/optimizer.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/match_params.h"
#include "libcore/program/prune.h"
#include "libcore/train/forward_amp.h"
#include "libcore/train/job_optimizer.h"

namespace pd {
namespace {

// Settings of the whole job that stand against phases.
absl::Status CheckJobOfPhases(const LoadedJob& job) {
  const job::Job& proto = job.proto();
  if (proto.has_optimizer())
    return job.At(InvalidArgument("the job has phases, which have an optimizer "
                                  "each; this one would update nothing"),
                  proto.optimizer());
  if (proto.has_quant())
    return job.At(InvalidArgument("'quant' cannot be used in a job with "
                                  "phases"),
                  proto.quant());
  if (proto.train().log().histogram_every_steps() > 0)
    return job.At(InvalidArgument("'histogram_every_steps' cannot be used in a "
                                  "job with phases"),
                  proto.train().log(), "histogram_every_steps");
  return absl::OkStatus();
}

absl::Status CheckPhase(const LoadedJob& job, const job::TrainPhase& phase) {
  const job::Optimizer& optimizer = phase.optimizer();
  const std::pair<bool, const char*> unusable[] = {
      {optimizer.has_exponential_moving_average(),
       "exponential_moving_average"},
      {optimizer.has_model_average(), "model_average"},
      {optimizer.has_look_ahead(), "look_ahead"},
      {optimizer.has_gradient_merge(), "gradient_merge"},
      {optimizer.has_recompute(), "recompute"}};
  for (const auto& [is_there, field] : unusable)
    if (is_there)
      return job.At(InvalidArgument("'%s' cannot be used in a phase", field),
                    optimizer, field);
  if (optimizer.lr().has_reduce_on_plateau())
    return job.At(InvalidArgument("'reduce_on_plateau' cannot be used in a "
                                  "phase"),
                  optimizer.lr(), "reduce_on_plateau");
  return absl::OkStatus();
}

// Builds the phases one after the other.
class PhaseBuilder {
 public:
  PhaseBuilder(const OpRegistry& registry, const LoadedJob& job,
               const BuiltModel& built, TrainProgram* program)
      : registry_(registry), job_(job), built_(built), program_(program) {}

  absl::Status Add(const job::TrainPhase& phase) {
    PD_RETURN_IF_ERROR(CheckPhase(job_, phase));
    PhaseProgram made;
    made.name = phase.name();
    made.steps = phase.steps();
    made.new_batch = phase.new_batch();
    PD_RETURN_IF_ERROR(TakeNetwork(phase, &made));
    // The names of states that phases before have made are taken.
    DeclareStates(&made.main);
    std::string target;
    PD_ASSIGN_OR_RETURN(const ForwardAmp amp,
                        ApplyAmp(job_, registry_, &made.main,
                                 &program_->startup, &made.loss, &target));
    made.loss_scaling = amp.scale();
    std::set<std::string> own;
    PD_RETURN_IF_ERROR(ChooseParameters(phase, &own));
    for (VarDesc& var : made.main.global().vars)
      if (var.is_parameter && own.count(var.name) == 0)
        var.stop_gradient = true;
    BackwardOptions backward;
    backward.targets[target] = "";
    auto gradients = AppendBackward(registry_, backward, &made.main);
    if (!gradients.ok()) return job_.At(gradients.status(), phase);
    PD_RETURN_IF_ERROR(AddOptimizer(phase, own, *gradients, amp, &made));
    program_->phases.push_back(std::move(made));
    return absl::OkStatus();
  }

  // Every loss is some phase's; tells which parameters are none's.
  absl::Status Finish() {
    for (const auto& [number, variable] : built_.losses) {
      const job::Loss& loss = job_.proto().loss(number);
      if (used_losses_.count(number) == 0)
        return job_.At(
            InvalidArgument("no phase names this loss%s; a phase's 'loss' does",
                            loss.has_name()
                                ? absl::StrCat(", '", loss.name(), "'")
                                : std::string(", which has no name")),
            loss);
    }
    for (const ParameterSettings& settings : built_.parameters)
      if (settings.trainable && trained_.count(settings.name) == 0)
        program_->untrained.push_back(settings.name);
    int64_t batches = 0;
    for (const PhaseProgram& phase : program_->phases)
      batches += phase.new_batch ? phase.steps : 0;
    program_->batches_per_step =
        batches + (program_->phases.front().new_batch ? 0 : 1);
    program_->main = program_->phases.back().main;
    DeclareStates(&program_->main);
    program_->rate = program_->phases.front().rate;
    return absl::OkStatus();
  }

 private:
  // The part of the forward program that the phase's losses need, and their
  // sum.
  absl::Status TakeNetwork(const job::TrainPhase& phase, PhaseProgram* made) {
    std::vector<std::string> losses;
    for (int i = 0; i < phase.loss_size(); ++i) {
      PD_ASSIGN_OR_RETURN(losses.emplace_back(), FindLoss(phase, i));
    }
    std::vector<std::string> feeds;
    for (const FeedSpec& feed : program_->feeds) feeds.push_back(feed.name);
    auto pruned = Prune(built_.main, feeds, losses);
    if (!pruned.ok()) return job_.At(pruned.status(), phase);
    made->main = *std::move(pruned);
    std::set<std::string> read;
    for (const BlockDesc& block : made->main.blocks)
      for (const OpDesc& op : block.ops)
        for (const auto& [slot, names] : op.inputs)
          read.insert(names.begin(), names.end());
    for (const FeedSpec& feed : program_->feeds)
      if (read.count(feed.name) > 0) made->feeds.push_back(feed);
    made->loss = losses[0];
    if (losses.size() == 1) return absl::OkStatus();
    BlockBuilder main(&registry_, &made->main);
    OpDesc op;
    op.type = "sum";
    op.SetInput("X", losses);
    made->loss = main.UniqueTemporary("sum");
    op.SetOutput("Out", {made->loss});
    return job_.At(main.Append(std::move(op)), phase, "loss");
  }

  // The variable of the phase's i-th loss.
  absl::StatusOr<std::string> FindLoss(const job::TrainPhase& phase, int i) {
    const std::string& wanted = phase.loss(i);
    std::vector<std::string> names;
    for (const auto& [number, variable] : built_.losses) {
      const job::Loss& loss = job_.proto().loss(number);
      if (loss.name() == wanted && loss.has_name()) {
        used_losses_.insert(number);
        return variable;
      }
      if (loss.has_name()) names.push_back(loss.name());
    }
    return job_.At(
        InvalidArgument("no loss of training has the name '%s'; there are %s",
                        wanted,
                        names.empty() ? "none with a name" : QuotedList(names)),
        phase, absl::StrCat("loss[", i, "]"));
  }

  // The names of the parameters that the phase may train.
  absl::Status ChooseParameters(const job::TrainPhase& phase,
                                std::set<std::string>* own) {
    for (const ParameterSettings& settings : built_.parameters)
      if (settings.trainable && phase.parameters().empty())
        own->insert(settings.name);
    for (int i = 0; i < phase.parameters_size(); ++i) {
      bool any = false;
      std::vector<std::string> names;
      for (const ParameterSettings& settings : built_.parameters) {
        names.push_back(settings.name);
        if (!MatchStars(phase.parameters(i), settings.name).has_value())
          continue;
        any = true;
        if (settings.trainable) own->insert(settings.name);
      }
      if (!any)
        return job_.At(
            InvalidArgument("no parameter's name matches '%s'; there are %s",
                            phase.parameters(i), QuotedList(names)),
            phase, absl::StrCat("parameters[", i, "]"));
    }
    return absl::OkStatus();
  }

  absl::Status AddOptimizer(const job::TrainPhase& phase,
                            const std::set<std::string>& own,
                            const std::map<std::string, std::string>& gradients,
                            const ForwardAmp& amp, PhaseProgram* made) {
    std::vector<ParamGrad> pairs;
    std::vector<std::string> unreached;
    for (const ParameterSettings& settings : built_.parameters) {
      if (own.count(settings.name) == 0) continue;
      const auto gradient = gradients.find(settings.name);
      if (gradient == gradients.end()) {
        unreached.push_back(settings.name);
        continue;
      }
      pairs.push_back(ParamGradOf(settings, gradient->second));
      trained_.insert(settings.name);
      program_->gradients.emplace_back(settings.name, gradient->second);
    }
    if (pairs.empty())
      return job_.At(
          InvalidArgument("the losses of phase '%s' depend on none of its "
                          "trainable parameters%s",
                          phase.name(),
                          unreached.empty()
                              ? ""
                              : absl::StrCat(", ", QuotedList(unreached))),
          phase, "loss");
    if (!unreached.empty() && phase.parameters_size() > 0)
      LogWarning(
          "%s: the losses of phase '%s' do not depend on %s: it leaves "
          "them as they are",
          job_.Where(phase, "parameters"), phase.name(), QuotedList(unreached));
    BlockBuilder main(&registry_, &made->main);
    BlockBuilder startup(&registry_, &program_->startup);
    const job::Optimizer& optimizer = phase.optimizer();
    PD_ASSIGN_OR_RETURN(OptimizerSpec spec, OptimizerOf(job_, optimizer));
    PD_ASSIGN_OR_RETURN(made->rate, RateOf(job_, optimizer));
    PD_RETURN_IF_ERROR(Unscale(amp, pairs, &main, &spec));
    const auto vars = AppendOptimizer(spec, std::move(pairs), &main, &startup);
    if (!vars.ok()) return job_.At(vars.status(), optimizer);
    made->learning_rate = vars->learning_rate;
    return absl::OkStatus();
  }

  // Declares the persistable variables of the network and of all phases so far
  // that `program` lacks.
  void DeclareStates(ProgramDesc* program) const {
    const auto declare = [program](const ProgramDesc& from) {
      std::set<std::string> there;
      for (const VarDesc& var : program->global().vars) there.insert(var.name);
      for (const VarDesc& var : from.global().vars)
        if (var.persistable && there.insert(var.name).second)
          program->global().vars.push_back(var);
    };
    declare(built_.main);
    for (const PhaseProgram& phase : program_->phases) declare(phase.main);
  }

  const OpRegistry& registry_;
  const LoadedJob& job_;
  const BuiltModel& built_;
  TrainProgram* const program_;
  std::set<int> used_losses_;
  std::set<std::string> trained_;
};

}  // namespace

absl::Status BuildPhases(const OpRegistry& registry, const LoadedJob& job,
                         BuiltModel built, TrainProgram* program) {
  PD_RETURN_IF_ERROR(CheckJobOfPhases(job));
  program->startup = std::move(built.startup);
  PhaseBuilder builder(registry, job, built, program);
  for (const job::TrainPhase& phase : job.proto().phase())
    PD_RETURN_IF_ERROR(builder.Add(phase));
  return builder.Finish();
}

}  // namespace pd
