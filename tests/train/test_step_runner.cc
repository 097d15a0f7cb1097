// SPDX-License-Identifier: Apache-2.0
// Steps of a linear regression against the ones worked by hand: losses,
// gradients, learning rates, and where a NaN comes from.
#include "libcore/train/step_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "libcore/check/nan_guard.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"

namespace pd {
namespace test_step_runner {

constexpr int64_t kRecords = 10, kBatch = 4;  // batches of 4, 4 and 2

// y = 3 x - 1; `bad` is a record whose x is no number.
NamedArrays Line(int64_t bad) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < kRecords; ++i) {
    x.push_back(i == bad ? std::nanf("") : 0.25f * static_cast<float>(i) - 1);
    y.push_back(3 * (0.25f * static_cast<float>(i) - 1) - 1);
  }
  return {{"x", MakeArray<float>({kRecords, 1}, x)},
          {"y", MakeArray<float>({kRecords, 1}, y)}};
}

class StepRunnerTest : public ::testing::Test {
 protected:
  // The parts of a training on Line(bad).
  void Start(int64_t bad, NanGuard* guard = nullptr) {
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    const auto folder =
        std::filesystem::path(PD_BINARY_DIR) / "test_scratch" / "step_runner";
    std::filesystem::create_directories(folder);
    const std::string path =
        (folder / absl::StrCat("line", bad, guard != nullptr, ".npz")).string();
    ASSERT_TRUE(WriteNpz(path, Line(bad)).ok());
    const auto job =
        ParseJob(absl::StrCat(R"(model {
  input { name: "x" shape: [-1, 1] }
  layer { name: "fc" linear { out_features: 1 } }
}
loss { label: "y" mse_loss {} }
optimizer { sgd { learning_rate: 0.1 } }
data { train { npz { path: ")",
                              path, R"(" } batch_size: )", kBatch, " } }"),
                 "job.pbtxt");
    ASSERT_TRUE(job.ok()) << job.status();
    auto program = BuildTrainProgram(registry_, *job);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    RunVocabularies vocabularies;
    auto loader =
        OpenLoader(*job, job->proto().data().train(), 1, &vocabularies);
    ASSERT_TRUE(loader.ok()) << loader.status();
    loader_ = *std::move(loader);
    session_ = std::make_unique<Session>(&registry_);
    StepRunnerOptions options;
    options.session = session_.get();
    options.program = &program_;
    options.loader = loader_.get();
    options.guard = guard;
    options.rate = [](StepPosition at) {
      return at.step % 2 == 0 ? 0.1 : 0.05;
    };
    options.on_step = [this](const StepReport& report) {
      reports_.push_back(report);
      return absl::OkStatus();
    };
    runner_.emplace(std::move(options));
    ASSERT_TRUE(session_->RunOnce(program_.startup).ok());
    for (const auto& [parameter, gradient] : program_.gradients)
      ASSERT_TRUE(session_->scope()
                      .Set(parameter, MakeArray<float>(ShapeOf(parameter), {0}))
                      .ok());
    ASSERT_TRUE(runner_->Prepare(7).ok());
  }

  Shape ShapeOf(const std::string& parameter) {
    return session_->scope().Find(parameter)->tensor.shape();
  }

  // One epoch; gradients every second step.
  absl::Status Epoch(int64_t epoch) {
    if (auto status = loader_->StartEpoch(epoch); !status.ok()) return status;
    for (;;) {
      const auto batch = loader_->Next();
      if (!batch.ok() || *batch == nullptr) return batch.status();
      const bool gradients = steps_ % 2 == 1;
      if (auto status = runner_->Run(**batch, {steps_, epoch}, gradients);
          !status.ok())
        return status;
      ++steps_;
      gradients_.emplace_back();
      for (const ParameterGradient& g : runner_->Gradients())
        gradients_.back()[ShapeOf(g.parameter).size() == 2 ? "w" : "b"] =
            *g.gradient->data<float>();
      if (auto status = runner_->Complete(); !status.ok()) return status;
    }
  }

  OpRegistry registry_;
  TrainProgram program_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<Session> session_;
  std::optional<StepRunner> runner_;
  int64_t steps_ = 0;
  std::vector<StepReport> reports_;
  std::vector<std::map<std::string, float>> gradients_;
};

TEST_F(StepRunnerTest, StepsAreTheOnesWorkedByHand) {
  Start(-1);
  for (int64_t epoch : {0, 1}) {
    const absl::Status status = Epoch(epoch);
    ASSERT_TRUE(status.ok()) << status;
  }
  ASSERT_EQ(reports_.size(), 6u);
  const NamedArrays line = Line(-1);
  const float *x = line.at("x").data<float>(), *y = line.at("y").data<float>();
  double w = 0, b = 0;
  for (int64_t step = 0; step < 6; ++step) {
    const int64_t batch = step % 3, first = batch * kBatch;
    const int64_t n = std::min(kBatch, kRecords - first);
    double loss = 0, dw = 0, db = 0;
    for (int64_t i = first; i < first + n; ++i) {
      const double off = w * x[i] + b - y[i];
      loss += off * off / static_cast<double>(n);
      dw += 2 * off * x[i] / static_cast<double>(n);
      db += 2 * off / static_cast<double>(n);
    }
    const auto at = static_cast<size_t>(step);
    const StepReport& report = reports_[at];
    EXPECT_EQ(report.step, step + 1);
    EXPECT_EQ(report.epoch, step / 3);
    EXPECT_EQ(report.batch, batch + 1);
    EXPECT_EQ(report.records, n);
    EXPECT_NEAR(report.loss, loss, 1e-5);
    const double rate = step % 2 == 0 ? 0.1 : 0.05;
    EXPECT_EQ(report.learning_rate, rate);
    if (step % 2 == 1) {
      ASSERT_EQ(gradients_[at].size(), 2u);
      EXPECT_NEAR(gradients_[at]["w"], dw, 1e-5);
      EXPECT_NEAR(gradients_[at]["b"], db, 1e-5);
    } else {
      EXPECT_TRUE(gradients_[at].empty());
    }
    w -= rate * dw;
    b -= rate * db;
  }
}

TEST_F(StepRunnerTest, ALossThatIsNoNumberNamesItsStep) {
  Start(5);  // of the second batch
  const absl::Status status = Epoch(0);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "step 2")) << status;
  EXPECT_EQ(reports_.size(), 1u);
}

// The guard goes back to its copies from before step 1 and repeats the steps.
TEST_F(StepRunnerTest, TheGuardExplainsTheStepThatIsBad) {
  NanGuard guard{NanGuardOptions()};
  Start(9, &guard);  // of the third batch
  const absl::Status status = Epoch(0);
  EXPECT_TRUE(IsNanFound(status)) << status;
  EXPECT_EQ(reports_.size(), 2u);
  ASSERT_TRUE(guard.finding().has_value());
  EXPECT_EQ(guard.finding()->place.step, 3);
  EXPECT_EQ(guard.finding()->place.epoch, 1);
  EXPECT_EQ(guard.finding()->place.batch, 3);
  EXPECT_EQ(guard.finding()->place.records, (std::vector<int64_t>{8, 9}));
}

}  // namespace test_step_runner
}  // namespace pd
