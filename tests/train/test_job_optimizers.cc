// SPDX-License-Identifier: Apache-2.0
// Every optimizer and schedule of a job file, and what stands beside them,
// makes a program that trains. Their numbers are judged elsewhere
// (test_optimizer, test_lr_schedule, test_our_training).
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.h"
#include "libcore/train/synthetic_batch.h"
#include "libcore/train/train_program.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_job_optimizers {

absl::StatusOr<TrainProgram> Build(const std::string& optimizer) {
  auto job = ParseJob(absl::StrCat(R"(
        model {
          input { name: "x" shape: [-1, 6] }
          layer { name: "fc1" linear { out_features: 8 } }
          layer { name: "act1" tanh {} }
          layer { name: "fc2" linear { out_features: 8 } }
          layer { name: "act2" tanh {} }
          layer { name: "fc3" linear { out_features: 1 } }
        }
        loss { label: "y" mse_loss {} }
        optimizer { )",
                                   optimizer, R"( }
        data { train { csv {
          path: "x.csv"
          field { name: "x" column: "x1:x6" }
          field { name: "y" column: "y" } } batch_size: 4 } })"),
                      "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildTrainProgram(ReferenceRegistry(), *job);
}

// The loss after some steps over one batch; the averages are put in and out.
double Train(const TrainProgram& program, int steps) {
  Session session(&ReferenceRegistry(), 1);
  EXPECT_TRUE(session.RunOnce(program.startup).ok());
  const std::vector<FeedSpec> feeds = FeedsFor(program.feeds, 4);
  auto plan = session.Compile(program.main, feeds, {program.loss});
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return NAN;
  const NamedArrays batch = *SyntheticBatch(program.main, feeds, 1, 0);
  RunContext context;
  for (; context.step < static_cast<uint64_t>(steps); ++context.step) {
    for (size_t i = 0; i < feeds.size(); ++i)
      (*plan)->SetFeed(i, batch.at(feeds[i].name).bytes.get());
    const absl::Status status = (*plan)->Run(context);
    EXPECT_TRUE(status.ok()) << status;
  }
  const double loss = *(*plan)->fetch(0).data<float>();
  if (program.averages.has_value()) {
    EXPECT_TRUE(session.RunOnce(program.averages->apply).ok());
    EXPECT_TRUE(session.RunOnce(program.averages->restore).ok());
  }
  return loss;
}

std::set<std::string> Types(const TrainProgram& program) {
  std::set<std::string> types;
  for (const BlockDesc& block : program.main.blocks)
    for (const OpDesc& op : block.ops) types.insert(op.type);
  return types;
}

TEST(JobOptimizers, EveryOneTrains) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"sgd { learning_rate: 0.05 }", "sgd"},
      {"momentum { learning_rate: 0.05 use_nesterov: true }", "momentum"},
      {"lars_momentum { learning_rate: 0.5 lars_coeff: 0.1 "
       "exclude_from_weight_decay: 'b_' }",
       "lars_momentum"},
      {"adam { learning_rate: 0.01 lazy_mode: true }", "adam"},
      {"adamw { learning_rate: 0.01 }", "adamw"},
      {"adamax { learning_rate: 0.01 }", "adamax"},
      {"adagrad { learning_rate: 0.05 initial_accumulator_value: 0.1 }",
       "adagrad"},
      {"adadelta { learning_rate: 1 }", "adadelta"},
      {"rmsprop { learning_rate: 0.01 momentum: 0.5 centered: true }",
       "rmsprop"},
      {"ftrl { learning_rate: 0.1 l1: 0.001 }", "ftrl"},
      {"lamb { learning_rate: 0.05 exclude_from_weight_decay: 'b_' }", "lamb"},
      {"decayed_adagrad { learning_rate: 0.05 decay: 0.9 }", "decayed_adagrad"},
      {"proximal_gd { learning_rate: 0.05 l1: 0.001 l2: 0.01 }", "proximal_gd"},
      {"proximal_adagrad { learning_rate: 0.05 l1: 0.001 }",
       "proximal_adagrad"},
      {"dpsgd { learning_rate: 0.1 clip: 5 sigma: 0.001 }", "dpsgd"},
      {"dgc_momentum { learning_rate: 0.05 rampup_begin_step: 3 }",
       "momentum"}};
  for (const auto& [text, type] : cases) {
    SCOPED_TRACE(text);
    const auto program = Build(text);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(Types(*program).count(type), 1u);
    const double first = Train(*program, 1);
    EXPECT_LT(Train(*program, 30), first);
  }
}

TEST(JobOptimizers, ArgumentsReachTheOps) {
  const auto momentum =
      Build("momentum { learning_rate: 0.05 rescale_grad: 0.25 }");
  ASSERT_TRUE(momentum.ok()) << momentum.status();
  const auto adamw = Build("adamw { exclude_from_weight_decay: 'bias' }");
  ASSERT_TRUE(adamw.ok()) << adamw.status();
  int updates = 0;
  for (const OpDesc& op : momentum->main.global().ops)
    if (op.type == "momentum") {
      ++updates;
      EXPECT_EQ(op.AttrOr("rescale_grad", 1.0f), 0.25f);
    }
  for (const OpDesc& op : adamw->main.global().ops) {
    if (op.type != "adamw") continue;
    ++updates;
    EXPECT_EQ(op.AttrOr("with_decay", false),
              op.In("Param").find("bias") == std::string::npos);
  }
  EXPECT_EQ(updates, 12);
}

TEST(JobOptimizers, WhatStandsBesideThem) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"weight_decay { l1_decay { coeff: 0.01 } }", "sign"},
      {"grad_clip { by_global_norm { clip_norm: 0.5 } }", "squared_l2_norm"},
      {"exponential_moving_average { decay: 0.9 }", "increment"},
      {"model_average { average_window_rate: 0.2 min_average_window: 2 }",
       "average_accumulates"},
      {"look_ahead { k: 3 }", "equal"},
      {"gradient_merge { k_steps: 2 }", "conditional_block"},
      {"gradient_merge { k_steps: 2 avg: false } look_ahead {} "
       "exponential_moving_average {}",
       "conditional_block"},
      {"recompute { checkpoint: 'act1' checkpoint: 'act2' }", "tanh"}};
  for (const auto& [text, type] : cases) {
    SCOPED_TRACE(text);
    const auto program =
        Build(absl::StrCat("sgd { learning_rate: 0.05 } ", text));
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(Types(*program).count(type), 1u);
    const double first = Train(*program, 1);
    EXPECT_LT(Train(*program, 30), first);
  }
}

TEST(JobOptimizers, RecomputeChangesNoBit) {
  const auto plain = Build("adam {}");
  const auto again =
      Build("adam {} recompute { checkpoint: 'act1' checkpoint: 'act2' }");
  ASSERT_TRUE(plain.ok() && again.ok()) << again.status();
  EXPECT_GT(again->main.global().ops.size(), plain->main.global().ops.size());
  EXPECT_EQ(Train(*plain, 10), Train(*again, 10));
}

TEST(JobOptimizers, Schedules) {
  for (const char* text :
       {"one_cycle { max_learning_rate: 0.1 total_steps: 20 }",
        "cyclic { max_learning_rate: 0.1 step_size_up: 4 mode: triangular2 "
        "}",
        "lambda_decay { lr_lambda: '1 + t' }",
        "multiplicative_decay { learning_rate: 0.5 lr_lambda: '1.5' }",
        "linear_warmup { warmup_steps: 2 start_lr: 0 end_lr: 0.01 after { "
        "lambda_decay { "
        "lr_lambda: 'min(t, 2)' } } }"}) {
    const auto program =
        Build(absl::StrCat("sgd { learning_rate: 0.01 } lr { ", text, " }"));
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_GT(program->rate(4, 0), program->rate(0, 0));
  }
}

TEST(JobOptimizers, RefusesWhatDoesNotFit) {
  for (const char* text :
       {"lamb {} weight_decay { l2_decay { coeff: 0.1 } }",
        "sgd {} exponential_moving_average {} model_average { "
        "average_window_rate: 0.1 }",
        "sgd {} model_average { average_window_rate: 0.1 "
        "min_average_window: 20 max_average_window: 10 }",
        "sgd {} recompute { checkpoint: 'no_such_layer' }",
        "sgd {} lr { lambda_decay { lr_lambda: '0.9 ^' } }",
        "sgd {} lr { lambda_decay {} }",
        "sgd {} lr { multiplicative_decay { lr_lambda: 'ln(t - 5)' } }",
        "dpsgd { clip: 0 }", "sgd {} lr { one_cycle { total_steps: 2 } }"})
    EXPECT_FALSE(Build(text).ok()) << text;
}

}  // namespace test_job_optimizers
}  // namespace pd
