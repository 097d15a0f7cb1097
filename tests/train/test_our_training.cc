// SPDX-License-Identifier: Apache-2.0
// Our gradients, optimizers, averages, gradient merge and recompute over the
// forward ops of programs that PaddlePaddle saved: from its initial state over
// its batches, every loss and the final state are to be PaddlePaddle's, under
// the same names.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/status_macros.h"
#include "libcore/optim/averages.h"
#include "libcore/optim/gradient_merge.h"
#include "libcore/passes/recompute.h"
#include "tests/ops/registry.h"
#include "tests/train/golden_run.h"

namespace pd {
namespace test_our_training {

using Kind = OptimizerSpec::Kind;
using Averages = std::function<absl::StatusOr<AveragePrograms>(
    const std::vector<std::string>&, BlockBuilder*, BlockBuilder*)>;

// Our replacement for PaddlePaddle's part of a program.
struct Ours {
  OptimizerSpec spec;
  Averages averages = nullptr;
  std::optional<LookAheadSpec> look_ahead = {};
  std::optional<GradientMergeSpec> merge = {};
  std::vector<std::string> checkpoints = {};
};

OptimizerSpec Spec(Kind kind, double rate, double epsilon = 1e-8) {
  OptimizerSpec spec;
  spec.kind = kind;
  spec.learning_rate = rate;
  spec.epsilon = epsilon;
  return spec;
}

bool IsWeight(const std::string& name) { return absl::StrContains(name, "w"); }

std::map<std::string, Ours> Cases() {
  std::map<std::string, Ours> cases;
  OptimizerSpec spec = Spec(Kind::kAdadelta, 1, 1e-5);
  spec.rho = 0.9;
  cases["opt_adadelta"] = {spec};
  cases["opt_adagrad"] = {Spec(Kind::kAdagrad, 0.1, 1e-5)};
  cases["opt_adamax"] = {Spec(Kind::kAdamax, 0.02)};
  spec = Spec(Kind::kRmsProp, 0.005, 1e-6);
  spec.momentum = 0;
  cases["opt_rmsprop"] = {spec};
  spec.momentum = 0.5;
  spec.centered = true;
  spec.rho = 0.9;
  spec.epsilon = 1e-5;
  cases["opt_rmsprop_centered"] = {spec};
  spec = Spec(Kind::kLamb, 0.02, 1e-6);
  spec.apply_decay_param_fun = IsWeight;
  cases["opt_lamb"] = {spec};
  spec = Spec(Kind::kLarsMomentum, 0.5, 0);
  spec.lars_coeff = 0.01;
  spec.coeff = 0.001;
  spec.apply_decay_param_fun = IsWeight;
  cases["opt_lars"] = {spec};
  cases["opt_ema"] = {Spec(Kind::kSgd, 0.2),
                      [](const auto& params, auto* main, auto* startup) {
                        return AppendEma({0.9}, params, main, startup);
                      }};
  cases["opt_model_average"] = {
      Spec(Kind::kMomentum, 0.1),
      [](const auto& params, auto* main, auto* startup) {
        return AppendModelAverage({0.15, 2, 10}, params, main, startup);
      }};
  cases["opt_lookahead"] = {Spec(Kind::kSgd, 0.2)};
  cases["opt_lookahead"].look_ahead = LookAheadSpec{0.5, 4};
  cases["opt_gradient_merge"] = {Spec(Kind::kAdam, 0.02)};
  cases["opt_gradient_merge"].merge = GradientMergeSpec{3, true};
  cases["opt_recompute"] = {Spec(Kind::kAdam, 0.01)};
  cases["opt_recompute"].checkpoints = {"tanh_0.tmp_0", "tanh_1.tmp_0"};
  return cases;
}

// The forward ops and their variables.
ProgramDesc Forward(const ProgramDesc& program) {
  ProgramDesc forward = program;
  BlockDesc& block = forward.global();
  size_t n = 0;
  while (n < block.ops.size() &&
         (block.ops[n].AttrOr<int32_t>(kOpRoleAttr, 0) & kRoleBackward) == 0)
    ++n;
  block.ops.resize(n);
  // An average's counter stands first.
  const auto counts = [](const OpDesc& op) { return op.type == "increment"; };
  block.ops.erase(std::remove_if(block.ops.begin(), block.ops.end(), counts),
                  block.ops.end());
  forward.blocks.resize(1);
  std::set<std::string> used;
  for (const OpDesc& op : block.ops)
    for (const SlotList* slots : {&op.inputs, &op.outputs})
      for (const auto& [slot, names] : *slots)
        used.insert(names.begin(), names.end());
  std::vector<VarDesc> vars;
  for (VarDesc& var : block.vars)
    if (used.count(var.name) > 0) vars.push_back(std::move(var));
  block.vars = std::move(vars);
  return forward;
}

struct Made {
  ProgramDesc main, startup;
  std::optional<AveragePrograms> averages;
};

absl::StatusOr<Made> Make(const TrainCase& c, const Ours& ours) {
  Made made;
  made.main = Forward(c.programs[0]);
  made.startup.version = made.main.version;
  made.startup.blocks.emplace_back();
  BackwardOptions options;
  options.targets[c.losses_of[0]] = "";
  PD_ASSIGN_OR_RETURN(const auto gradients,
                      AppendBackward(ReferenceRegistry(), options, &made.main));
  if (!ours.checkpoints.empty())
    PD_RETURN_IF_ERROR(Recompute(ours.checkpoints, &made.main));
  std::vector<ParamGrad> pairs;
  std::vector<std::string> params;
  for (const auto& [param, gradient] : gradients) {
    ParamGrad pair;
    pair.param = param;
    pair.grad = gradient;
    pairs.push_back(pair);
    params.push_back(param);
  }
  BlockBuilder main(&ReferenceRegistry(), &made.main);
  BlockBuilder startup(&ReferenceRegistry(), &made.startup);
  std::optional<GradientMerge> merge;
  if (ours.merge.has_value()) {
    PD_ASSIGN_OR_RETURN(
        merge, GradientMerge::Begin(*ours.merge, &pairs, &main, &startup));
  }
  PD_RETURN_IF_ERROR(
      AppendOptimizer(ours.spec, pairs, &main, &startup).status());
  if (merge.has_value()) PD_RETURN_IF_ERROR(merge->Finish(&main));
  if (ours.averages != nullptr) {
    PD_ASSIGN_OR_RETURN(made.averages, ours.averages(params, &main, &startup));
  }
  if (ours.look_ahead.has_value())
    PD_RETURN_IF_ERROR(
        AppendLookAhead(*ours.look_ahead, params, &main, &startup));
  return made;
}

class OurTraining : public ::testing::TestWithParam<std::string> {};

TEST_P(OurTraining, EndsWherePaddlePaddleDoes) {
  const TrainCase c = LoadTrainCase(GetParam());
  const auto made = Make(c, Cases().at(GetParam()));
  ASSERT_TRUE(made.ok()) << made.status();
  Session session(&ReferenceRegistry());
  PlanOptions options;
  options.poison = true;
  session.set_plan_options(options);
  const absl::Status started = session.RunOnce(made->startup);
  ASSERT_TRUE(started.ok()) << started;
  SetInitialState(c, &session);
  std::vector<CaseRunner> runners = RunnersOf(c);
  runners[0].program = &made->main;
  FollowLosses(c, &runners, &session);
  if (HasFatalFailure()) return;
  CheckFinalState(c, session);
  if (!made->averages.has_value()) return;
  ASSERT_TRUE(session.RunOnce(made->averages->apply).ok());
  CheckAppliedParams(c, session);
  ASSERT_TRUE(session.RunOnce(made->averages->restore).ok());
  CheckFinalState(c, session, true);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, ours] : Cases()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, OurTraining, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

TEST(Recompute, RepeatsForwardOps) {
  const TrainCase c = LoadTrainCase("opt_recompute");
  Ours ours = Cases().at("opt_recompute");
  const auto with = Make(c, ours);
  ours.checkpoints.clear();
  const auto without = Make(c, ours);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_GT(with->main.global().ops.size(), without->main.global().ops.size());
  ProgramDesc none = without->main;
  EXPECT_EQ(Recompute({"no_such_variable"}, &none).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace test_our_training
}  // namespace pd
