// SPDX-License-Identifier: Apache-2.0
// Early stopping against paddle.callbacks.EarlyStopping of paddlepaddle 2.6.2
// (where it stopped and with which best value, for the same values); the best
// checkpoint and the plateau by the kind of a result; and what is said about
// jobs that follow what there is not.
#include "libcore/train/monitors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace pd {
namespace test_monitors {

std::string Text(const std::string& rest) {
  return absl::StrCat(
      "model {\n  input { name: 'x' shape: [-1, 2] }\n"
      "  layer { linear { out_features: 2 } }\n}\n"
      "loss { cross_entropy {} }\nmetric { accuracy {} }\n"
      "metric { perplexity {} }\n",
      rest);
}

LoadedJob Job(const std::string& rest) {
  auto job = ParseJob(Text(rest), "job.pbtxt");
  EXPECT_TRUE(job.ok()) << job.status();
  return *job;
}

EvaluationResult Result(const std::string& name, double value) {
  EvaluationResult result;
  if (name == "loss")
    result.loss = value;
  else
    result.metrics = {{name, value}};
  return result;
}

constexpr char kEval[] = "data { eval { npz { path: 'x.npz' } } }\n";

struct Followed {
  int stopped = -1;  // index of the value
  TrainState state;
};

Followed Follow(const LoadedJob& job, const std::string& name,
                const std::vector<double>& values) {
  const Monitors monitors(job);
  Followed run;
  monitors.Begin(0.5, false, &run.state);
  for (size_t i = 0; i < values.size() && run.stopped < 0; ++i) {
    ++run.state.step;
    monitors.OnEvaluation(Result(name, values[i]), /*planned=*/true,
                          &run.state);
    if (monitors.Stops(run.state)) run.stopped = static_cast<int>(i);
  }
  return run;
}

TEST(EarlyStopping, StopsWherePaddlePaddleDoes) {
  const std::vector<double> losses = {1.0, .9,  .95, .885, .87,
                                      .9,  .88, .86, .5};
  const std::vector<double> accs = {.1, .2, .2, .21, .3, .25, .29, .3};
  struct Case {
    std::string name, fields;
    const std::vector<double>& values;
    int stopped;
    double best;
  };
  for (const Case& c : std::vector<Case>{
           {"loss", "patience: 2", losses, 6, .87},
           {"loss", "patience: 3 min_delta: 0.02", losses, 7, .87},
           {"acc", "patience: 3", accs, 7, .3},
           {"acc", "patience: 2 min_delta: 0.05", accs, 3, .2},
           {"acc", "patience: 4 mode: min", accs, 4, .1},
           // Errors are small when good; `auto` of PaddlePaddle says the same.
           {"perplexity", "patience: 2", losses, 6, .87}}) {
    SCOPED_TRACE(c.name + " " + c.fields);
    const Followed run =
        Follow(Job(absl::StrCat(kEval, "train { early_stopping { monitor: '",
                                c.name, "' ", c.fields, " } }")),
               c.name, c.values);
    EXPECT_EQ(run.stopped, c.stopped);
    EXPECT_EQ(run.state.early_stopping.best_value, c.best);
  }
}

TEST(EarlyStopping, ABaselineMustBeBeaten) {
  const LoadedJob job = Job(absl::StrCat(
      kEval, "train { early_stopping { patience: 2 baseline: 0.7 } }"));
  const Followed run = Follow(job, "loss", {1.0, .9, .5});
  EXPECT_EQ(run.stopped, 1);
  EXPECT_EQ(run.state.early_stopping.best_step, -1);
  EXPECT_EQ(Monitors(job).StopReason(run.state),
            "'loss' was never better than 0.7 in 2 comparisons");
  EXPECT_EQ(Follow(job, "loss", {1.0, .6, .5}).stopped, -1);
}

TEST(EarlyStopping, NaNIsNeverBetter) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const LoadedJob job =
      Job(absl::StrCat(kEval, "train { early_stopping { patience: 3 } }"));
  const Followed run = Follow(job, "loss", {nan, 1, nan, nan, nan});
  EXPECT_EQ(run.stopped, 4);
  EXPECT_EQ(run.state.early_stopping.best_value, 1);
}

TEST(EarlyStopping, FollowsTheTrainingLossWithoutEvaluation) {
  const Monitors monitors(Job("train { early_stopping {} }"));
  TrainState state;
  EXPECT_TRUE(monitors.OnEpoch(1, &state));
  EXPECT_FALSE(monitors.Stops(state));
  EXPECT_FALSE(monitors.OnEpoch(1, &state));
  EXPECT_TRUE(monitors.Stops(state));
}

TEST(Best, IsTheSmallestErrorOrTheLargestScore) {
  const auto best = [](const std::string& name, const std::string& mode) {
    return Follow(Job(absl::StrCat("train { checkpoint { best { metric: '",
                                   name, "' ", mode, " } } }")),
                  name, {2, 1, 3, std::nan(""), 3})
        .state.best_step;
  };
  EXPECT_EQ(best("loss", ""), 2);
  EXPECT_EQ(best("perplexity", ""), 2);
  EXPECT_EQ(best("acc", ""), 3);
  EXPECT_EQ(best("acc", "mode: min"), 2);
  EXPECT_EQ(best("loss", "mode: max"), 3);
}

TEST(Plateau, LowersTheRateAndGoesOnFromACheckpoint) {
  const LoadedJob job = Job(absl::StrCat(
      kEval,
      "optimizer { sgd {} lr { reduce_on_plateau { patience: 1 factor: 0.5 } } "
      "}"));
  const Monitors monitors(job);
  EXPECT_EQ(Follow(job, "loss", {1, 1, 1}).state.plateau->learning_rate, 0.25);
  // NaN is left out.
  EXPECT_EQ(
      Follow(job, "loss", {1, 1, std::nan("")}).state.plateau->learning_rate,
      0.5);
  Followed run = Follow(job, "loss", {1, 1});
  EXPECT_EQ(*monitors.Rate(run.state), 0.5);
  monitors.Begin(0.5, false, &run.state);
  monitors.OnEvaluation(Result("loss", 1), true, &run.state);
  EXPECT_EQ(*monitors.Rate(run.state), 0.25);
  monitors.Begin(0.5, /*fresh=*/true, &run.state);
  EXPECT_EQ(*monitors.Rate(run.state), 0.5);
}

std::string ErrorOf(const std::string& rest) {
  const auto job = ParseJob(Text(rest), "job.pbtxt");
  return job.ok() ? "no error" : std::string(job.status().message());
}

TEST(Monitors, FollowWhatThereIs) {
  EXPECT_EQ(ErrorOf("train { early_stopping { monitor: 'f1' } }"),
            "job.pbtxt:8:26: no metric has the name 'f1'; there are loss, acc, "
            "perplexity");
  EXPECT_EQ(ErrorOf("data { train { npz { path: 'x.npz' } } }\n"
                    "train { early_stopping { monitor: 'acc' } }"),
            "job.pbtxt:9:26: 'acc' is a result of evaluation and there is no "
            "data.eval; there is train_loss");
  EXPECT_EQ(
      ErrorOf("optimizer { sgd {} lr { linear_warmup { warmup_steps: 1 "
              "start_lr: 0 end_lr: 1 after { reduce_on_plateau {} } } } }"),
      "job.pbtxt:8:87: 'reduce_on_plateau' cannot stand behind a warm-up");
  EXPECT_EQ(ErrorOf("data { train { npz { path: 'x.npz' } } eval { npz { path: "
                    "'x.npz' } } }\ntrain { evaluation { every_epochs: 0 } "
                    "early_stopping {} }"),
            "job.pbtxt:9:40: 'loss' is a result of evaluation, which "
            "train.evaluation has at the end only");
  EXPECT_EQ(ErrorOf("metric { accuracy {} }"),
            "job.pbtxt:8:1: there is a result 'acc' already; give this metric "
            "another 'name'");
  EXPECT_EQ(ErrorOf("metric { name: 'loss' accuracy {} }"),
            "job.pbtxt:8:1: there is a result 'loss' already; give this metric "
            "another 'name'");
  EXPECT_EQ(ErrorOf("metric { name: 'a<b' mae {} }"),
            "job.pbtxt:8:10: a metric's name is not empty and has no '<', '>', "
            "'=', '!' or blank; got 'a<b'");
}

}  // namespace test_monitors
}  // namespace pd
