// SPDX-License-Identifier: Apache-2.0
// Jobs with phases: against trainings by PaddlePaddle with two optimizers in
// turn; what each phase's program leaves out; random numbers; errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "formats/npz.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/step_runner.h"

namespace pd {
namespace test_phases {

constexpr char kModel[] = R"(
model {
  input { name: "x" shape: [-1, 3] }
  input { name: "z" shape: [-1, 2] }
  block {
    name: "d"
    layer { linear { out_features: 5 weight_attr { name: "d.fc1.weight" }
                     bias_attr { name: "d.fc1.bias" } } }
    layer { leaky_relu { negative_slope: 0.2 } }
    layer { linear { out_features: 1 weight_attr { name: "d.fc2.weight" }
                     bias_attr { name: "d.fc2.bias" } } }
  }
  layer { name: "g.fc1" input: "z" linear { out_features: 6 } }
  layer { name: "g.norm" batch_norm1d {} }
  layer { relu {} }
  layer { name: "g.fc2" linear { out_features: 3 } }
  layer { name: "real" input: "x" block { use: "d" } }
  layer { name: "fake" input: "g.fc2" block { use: "d" } }
}
loss { name: "real" input: "real" label: "one" bce_with_logits_loss {} }
loss { name: "fake" input: "fake" label: "zero" bce_with_logits_loss {} }
loss { name: "fooled" input: "fake" label: "one" bce_with_logits_loss {} }
)";

constexpr char kPhases[] = R"(
phase {
  name: "d" loss: ["real", "fake"] parameters: "d.*" D_HOW
  optimizer {
    adam { learning_rate: 0.01 beta1: 0.5 }
    lr { exponential_decay { gamma: 0.9 } }
  }
}
phase {
  name: "g" loss: "fooled" parameters: "g.*"
  optimizer { adam { learning_rate: 0.02 beta1: 0.5 } }
}
)";

std::string Data(const std::string& file) {
  return absl::StrCat(R"(data { train { batch_size: 8 npz { path: ")", file,
                      R"(" field { name: "x" } field { name: "z" }
      field { name: "one" } field { name: "zero" } } } })");
}

const OpRegistry& Ops() {
  static const OpRegistry* const registry = [] {
    auto* all = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(all).ok());
    return all;
  }();
  return *registry;
}

absl::StatusOr<TrainProgram> Build(const std::string& text) {
  const auto job = ParseJob(text, "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildTrainProgram(Ops(), *job);
}

// A training, step by step.
class Training {
 public:
  void Begin(const std::string& text) {
    const auto job = ParseJob(text, "job.pbtxt");
    ASSERT_TRUE(job.ok()) << job.status();
    auto program = BuildTrainProgram(Ops(), *job);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    RunVocabularies vocabularies;
    auto loader =
        OpenLoader(*job, job->proto().data().train(), 1, &vocabularies);
    ASSERT_TRUE(loader.ok()) << loader.status();
    loader_ = *std::move(loader);
    session_ = std::make_unique<Session>(&Ops());
    ASSERT_TRUE(session_->RunOnce(program_.startup).ok());
    StepRunnerOptions options;
    options.session = session_.get();
    options.program = &program_;
    options.loader = loader_.get();
    options.rate = [this](StepPosition at) {
      return program_.rate(at.step, at.epoch);
    };
    options.on_step = [this](const StepReport& report) {
      losses_.emplace_back();
      for (const PhaseReport& phase : *report.phases)
        losses_.back().push_back(phase.loss);
      return absl::OkStatus();
    };
    runner_ = std::make_unique<StepRunner>(std::move(options));
  }

  void Run(int64_t steps, uint64_t seed = 7) {
    const absl::Status prepared = runner_->Prepare(seed);
    ASSERT_TRUE(prepared.ok()) << prepared;
    int64_t step = 0;
    for (int64_t epoch = 0; step < steps; ++epoch) {
      ASSERT_TRUE(loader_->StartEpoch(epoch).ok());
      int64_t done = 0;
      while (step < steps &&
             done + program_.batches_per_step <= loader_->batches()) {
        const auto batch = loader_->Next();
        ASSERT_TRUE(batch.ok() && *batch != nullptr);
        const absl::Status status =
            runner_->Run(**batch, {step++, epoch}, false);
        ASSERT_TRUE(status.ok()) << status;
        done = runner_->batches_done();
      }
    }
  }

  Session& session() { return *session_; }
  const TrainProgram& program() const { return program_; }
  const std::vector<std::vector<float>>& losses() const { return losses_; }

 private:
  TrainProgram program_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<StepRunner> runner_;
  std::vector<std::vector<float>> losses_;  // by step and phase
};

class PhaseGoldens : public ::testing::TestWithParam<const char*> {};

TEST_P(PhaseGoldens, StepsAreThoseOfPaddlePaddle) {
  const std::string file = absl::StrCat("testdata/phases/", GetParam(), ".npz");
  const auto golden = ReadNpz(file);
  ASSERT_TRUE(golden.ok()) << golden.status();
  const bool own = std::string(GetParam()) == "own";
  Training training;
  ASSERT_NO_FATAL_FAILURE(training.Begin(absl::StrCat(
      kModel,
      absl::StrReplaceAll(kPhases,
                          {{"D_HOW", own ? "steps: 2 new_batch: true" : ""}}),
      Data(file))));
  size_t values = 0;
  for (const auto& [name, value] : *golden) {
    if (!absl::StartsWith(name, "init/")) continue;
    ASSERT_TRUE(training.session().scope().Set(name.substr(5), value).ok())
        << name;
    ++values;
  }
  ASSERT_EQ(values, 12u);
  const Array& losses = golden->at("losses");
  ASSERT_NO_FATAL_FAILURE(training.Run(losses.shape[0]));
  ASSERT_EQ(training.losses().size(), static_cast<size_t>(losses.shape[0]));
  for (size_t step = 0; step < training.losses().size(); ++step)
    for (size_t phase = 0; phase < 2; ++phase)
      EXPECT_NEAR(training.losses()[step][phase],
                  losses.data<double>()[2 * step + phase], 2e-5)
          << "step " << step << ", phase " << phase;
  for (const auto& [name, value] : *golden) {
    if (!absl::StartsWith(name, "last/")) continue;
    // The gradient of a bias in front of a batch normalization is nothing but
    // rounding, which Adam makes steps of; the running mean follows the bias.
    if (name == "last/g.fc1.bias" || name == "last/g.norm._mean") continue;
    const auto got = training.session().scope().Get(name.substr(5));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->shape, value.shape) << name;
    for (int64_t i = 0; i < NumElements(value.shape); ++i)
      EXPECT_NEAR(got->data<float>()[i], value.data<float>()[i], 1e-4)
          << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PhaseGoldens, ::testing::Values("shared", "own"));

std::string Gan() {
  return absl::StrCat(kModel, absl::StrReplaceAll(kPhases, {{"D_HOW", ""}}),
                      Data("testdata/phases/shared.npz"));
}

// All variables that the ops of a program make.
std::set<std::string> MadeBy(const ProgramDesc& program) {
  std::set<std::string> made;
  for (const OpDesc& op : program.global().ops)
    for (const auto& [slot, names] : op.outputs)
      made.insert(names.begin(), names.end());
  return made;
}

TEST(Phases, ComputeWhatTheyNeedAlone) {
  const auto program = Build(Gan());
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->phases.size(), 2u);
  const PhaseProgram &d = program->phases[0], &g = program->phases[1];
  const std::set<std::string> by_d = MadeBy(d.main), by_g = MadeBy(g.main);
  EXPECT_EQ(by_d.count("d.fc1.weight@GRAD"), 1u);
  EXPECT_EQ(by_d.count("g.fc2.weight@GRAD"), 0u);
  EXPECT_EQ(by_d.count("g.fc1.weight@GRAD"), 0u);
  EXPECT_EQ(by_g.count("g.fc1.weight@GRAD"), 1u);
  EXPECT_EQ(by_g.count("d.fc1.weight@GRAD"), 0u);
  EXPECT_EQ(d.feeds.size(), 4u);
  std::vector<std::string> fed;
  for (const FeedSpec& feed : g.feeds) fed.push_back(feed.name);
  EXPECT_EQ(fed, (std::vector<std::string>{"z", "one"}));
  EXPECT_TRUE(program->untrained.empty());
}

// Two optimizers of one parameter keep their own states and rates.
TEST(Phases, StatesAreTheirOwn) {
  const auto program =
      Build(absl::StrReplaceAll(Gan(), {{"parameters: \"g.*\"", ""}}));
  ASSERT_TRUE(program.ok()) << program.status();
  std::set<std::string> states;
  for (const PhaseProgram& phase : program->phases)
    for (const OpDesc& op : phase.main.global().ops)
      if (op.type == "adam") {
        EXPECT_TRUE(states.insert(op.Out("Moment1Out")).second);
        EXPECT_NE(program->main.global().FindVar(op.Out("Moment1Out")),
                  nullptr);
      }
  EXPECT_EQ(states.size(), 4u + 10u);
  EXPECT_NE(program->phases[0].learning_rate, program->phases[1].learning_rate);
}

// Two phases that are alike but for their dropout, with a rate of 0.
TEST(Phases, DrawOtherNumbersInEachRun) {
  const std::string phase = R"( loss: "l" steps: 2
    optimizer { sgd { learning_rate: 0 } } })";
  const std::string text = absl::StrCat(
      R"(model { input { name: "x" shape: [-1, 3] }
      layer { dropout {} }
      layer { linear { out_features: 1 } } }
      loss { name: "l" label: "one" mse_loss {} })",
      R"(phase { name: "a")", phase, R"(phase { name: "b")", phase,
      R"(data { train { batch_size: 40 npz {
        path: "testdata/phases/shared.npz"
        field { name: "x" } field { name: "one" } } } })");
  std::vector<std::vector<std::vector<float>>> runs;
  for (const uint64_t seed : {7, 7, 8}) {
    Training training;
    ASSERT_NO_FATAL_FAILURE(training.Begin(text));
    ASSERT_NO_FATAL_FAILURE(training.Run(2, seed));
    runs.push_back(training.losses());
  }
  EXPECT_EQ(runs[0], runs[1]);
  std::set<float> all;
  for (const size_t run : {0, 2})
    for (const std::vector<float>& step : runs[run])
      all.insert(step.begin(), step.end());
  EXPECT_EQ(all.size(), 8u);  // two runs, two steps, two phases
}

TEST(Phases, ErrorsHaveTheirPlace) {
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"parameters: \"d.*\"", "parameters: [\"d.*\", \"q.*\"]",
       "no parameter's name matches 'q.*'"},
      {"loss: \"fooled\"", "loss: \"fouled\"",
       "no loss of training has the name 'fouled'"},
      {"loss: [\"real\", \"fake\"]", "loss: \"real\"",
       "no phase names this loss, 'fake'"},
      {"loss: [\"real\", \"fake\"] parameters: \"d.*\"",
       "loss: [\"real\"] parameters: \"g.*\"",
       "depend on none of its trainable parameters"},
      {"adam { learning_rate: 0.02 beta1: 0.5 }", "sgd {} look_ahead {}",
       "'look_ahead' cannot be used in a phase"},
      {"adam { learning_rate: 0.02 beta1: 0.5 }",
       "sgd {} lr { reduce_on_plateau {} }",
       "'reduce_on_plateau' cannot be used in a phase"},
      {"data {", "optimizer { sgd {} } data {",
       "the job has phases, which have an optimizer each"},
      {"data {", "amp { level: O1 custom_white_list: \"no_such_op\" } data {",
       "no_such_op"},
      {"name: \"g\"", "name: \"d\"", "there are two phases with the name 'd'"},
  };
  for (const auto& c : cases) {
    const std::string text = absl::StrReplaceAll(Gan(), {{c.from, c.to}});
    ASSERT_NE(text, Gan()) << c.from;
    const auto program = Build(text);
    ASSERT_FALSE(program.ok()) << c.message;
    EXPECT_TRUE(absl::StrContains(program.status().message(), c.message))
        << program.status();
    EXPECT_TRUE(absl::StrContains(program.status().message(), "job.pbtxt:"))
        << program.status();
  }
}

// The training of the goldens in bfloat16, whose numbers have 8 bits.
TEST(Phases, TrainInMixedPrecision) {
  const auto golden = ReadNpz("testdata/phases/shared.npz");
  ASSERT_TRUE(golden.ok()) << golden.status();
  Training training;
  ASSERT_NO_FATAL_FAILURE(
      training.Begin(absl::StrCat(Gan(), "amp { dtype: bfloat16 }")));
  for (const PhaseProgram& phase : training.program().phases) {
    EXPECT_TRUE(phase.loss_scaling.empty());
    EXPECT_GT(MadeBy(phase.main).count("d.fc1.weight.cast_bf16"), 0u);
  }
  for (const auto& [name, value] : *golden)
    if (absl::StartsWith(name, "init/"))
      ASSERT_TRUE(training.session().scope().Set(name.substr(5), value).ok());
  const Array& losses = golden->at("losses");
  ASSERT_NO_FATAL_FAILURE(training.Run(losses.shape[0]));
  for (size_t step = 0; step < training.losses().size(); ++step)
    for (size_t phase = 0; phase < 2; ++phase)
      EXPECT_NEAR(training.losses()[step][phase],
                  losses.data<double>()[2 * step + phase], 0.03)
          << "step " << step << ", phase " << phase;
}

// Each phase has a factor of its own; gradients that overflow change nothing
// but this factor.
TEST(Phases, ScaleTheirLossesEach) {
  Training training;
  ASSERT_NO_FATAL_FAILURE(training.Begin(
      absl::StrCat(Gan(),
                   "amp { init_loss_scaling: 1e30 decr_every_n_nan_or_inf: 1 "
                   "decr_ratio: 0.25 }")));
  const auto value = [&training](const std::string& name) {
    const auto got = training.session().scope().Get(name);
    EXPECT_TRUE(got.ok()) << got.status();
    return std::vector<float>(got->data<float>(),
                              got->data<float>() + NumElements(got->shape));
  };
  const auto& phases = training.program().phases;
  ASSERT_NE(phases[0].loss_scaling, phases[1].loss_scaling);
  const std::vector<float> before = value("d.fc1.weight");
  ASSERT_NO_FATAL_FAILURE(training.Run(3));
  EXPECT_EQ(value("d.fc1.weight"), before);
  for (const PhaseProgram& phase : phases)
    EXPECT_EQ(value(phase.loss_scaling), std::vector<float>{1e30f / 64});
}

TEST(Phases, SayWhichParametersNobodyTrains) {
  const auto program = Build(absl::StrReplaceAll(
      Gan(), {{"parameters: \"g.*\"", "parameters: \"g.fc*\""}}));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->untrained,
            (std::vector<std::string>{"g.norm.weight", "g.norm.bias"}));
}

}  // namespace test_phases
}  // namespace pd
