// SPDX-License-Identifier: Apache-2.0
// Quasi-Newton methods against PaddlePaddle's LBFGS and minimize_bfgs on a
// small regression (testdata/make/newton_goldens.py): the loss before and the
// parameters after each step; and what does not go with them.
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/step_runner.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_newton {

absl::StatusOr<LoadedJob> JobOf(const std::string& optimizer,
                                const std::string& path,
                                const std::string& more = "") {
  return ParseJob(absl::StrCat(R"(model {
  input { name: "x" shape: [-1, 3] }
  layer { name: "fc1" linear { out_features: 4 } }
  layer { name: "act" tanh {} }
  layer { name: "fc2" linear { out_features: 1 } }
}
loss { label: "y" mse_loss {} }
data { train { npz { path: ")",
                               path, R"(" } batch_size: 24 } }
optimizer { )",
                               optimizer, " }\n", more),
                  "job.pbtxt");
}

// The loss before each step, and the parameters after it.
struct Trajectory {
  std::vector<float> losses;
  std::vector<std::vector<Array>> parameters;
};

void Train(const std::string& optimizer, const std::string& path,
           const NamedArrays& goldens, Trajectory* trajectory) {
  const auto job = JobOf(optimizer, path);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto program = BuildTrainProgram(ReferenceRegistry(), *job);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->gradients.size(), 4u);
  RunVocabularies vocabularies;
  auto loader = OpenLoader(*job, job->proto().data().train(), 1, &vocabularies);
  ASSERT_TRUE(loader.ok()) << loader.status();
  Session session(&ReferenceRegistry());
  ASSERT_TRUE(session.RunOnce(program->startup).ok());
  for (size_t i = 0; i < 4; ++i)
    ASSERT_TRUE(
        session.scope()
            .Set(program->gradients[i].first, goldens.at(absl::StrCat(i)))
            .ok());
  StepRunnerOptions options;
  options.session = &session;
  options.program = &*program;
  options.loader = loader->get();
  options.rate = [&](StepPosition at) {
    return program->rate(at.step, at.epoch);
  };
  options.on_step = [&](const StepReport& report) {
    trajectory->losses.push_back(report.loss);
    return absl::OkStatus();
  };
  StepRunner runner(std::move(options));
  ASSERT_TRUE(runner.Prepare(7).ok());
  for (int64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE((*loader)->StartEpoch(step).ok());
    const auto batch = (*loader)->Next();
    ASSERT_TRUE(batch.ok() && *batch != nullptr) << batch.status();
    const absl::Status ran = runner.Run(**batch, {step, step}, false);
    ASSERT_TRUE(ran.ok()) << ran;
    trajectory->parameters.emplace_back();
    for (const auto& [parameter, gradient] : program->gradients)
      trajectory->parameters.back().push_back(*session.scope().Get(parameter));
  }
}

class NewtonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto goldens = ReadNpz(PD_TESTDATA "/optim/newton.npz");
    ASSERT_TRUE(goldens.ok()) << goldens.status();
    goldens_ = *std::move(goldens);
    const auto folder =
        std::filesystem::path(PD_BINARY_DIR) / "test_scratch" / "newton";
    std::filesystem::create_directories(folder);
    path_ = (folder / "data.npz").string();
    ASSERT_TRUE(
        WriteNpz(path_, {{"x", goldens_.at("x")}, {"y", goldens_.at("y")}})
            .ok());
  }

  void ExpectGolden(const std::string& name, const std::string& optimizer) {
    SCOPED_TRACE(name);
    Trajectory got;
    Train(optimizer, path_, goldens_, &got);
    ASSERT_EQ(got.losses.size(), 4u);
    const Array& losses = goldens_.at(name + "/loss");
    for (size_t step = 0; step < 4; ++step) {
      EXPECT_NEAR(got.losses[step], losses.data<float>()[step], 1e-5)
          << "step " << step;
      for (size_t i = 0; i < 4; ++i) {
        const Array& mine = got.parameters[step][i];
        const float* want =
            goldens_.at(absl::StrCat(name, "/", i)).data<float>() +
            static_cast<int64_t>(step) * mine.size();
        for (int64_t j = 0; j < mine.size(); ++j)
          EXPECT_NEAR(mine.data<float>()[j], want[j], 1e-4)
              << "step " << step << ", parameter " << i << ", element " << j;
      }
    }
  }

  NamedArrays goldens_;
  std::string path_;
};

TEST_F(NewtonTest, LbfgsSearchesLikePaddlePaddle) {
  ExpectGolden("wolfe", "lbfgs { line_search_fn: strong_wolfe max_iter: 3 }");
  ExpectGolden("wolfe_far",
               "lbfgs { line_search_fn: strong_wolfe max_iter: 3 "
               "learning_rate: 8 history_size: 2 }");
}

TEST_F(NewtonTest, LbfgsStepsLikePaddlePaddle) {
  ExpectGolden("fixed",
               "lbfgs { learning_rate: 0.5 max_iter: 3 history_size: 2 }");
}

TEST_F(NewtonTest, BfgsStepsLikePaddlePaddle) {
  ExpectGolden("bfgs", "bfgs { max_iters: 3 }");
  ExpectGolden("bfgs_far", "bfgs { max_iters: 3 initial_step_length: 4 }");
}

TEST_F(NewtonTest, RefusesWhatDoesNotGoWithIt) {
  const auto error = [&](const std::string& optimizer,
                         const std::string& more = "") {
    const auto job = JobOf(optimizer, path_, more);
    if (!job.ok()) return job.status().ToString();
    return BuildTrainProgram(ReferenceRegistry(), *job).status().ToString();
  };
  const auto refuses = [&](const std::string& text, const char* why) {
    EXPECT_TRUE(absl::StrContains(text, why)) << text;
  };
  refuses(error("lbfgs {} weight_decay { l2_decay { coeff: 0.1 } }"),
          "expected no 'weight_decay' beside it");
  refuses(error("lbfgs {} grad_clip { by_norm { clip_norm: 1 } }"),
          "expected no 'grad_clip' beside it");
  refuses(error("bfgs {} lr { exponential_decay { gamma: 0.9 } }"),
          "expected no 'lr' beside it");
  refuses(error("bfgs {} gradient_merge { k_steps: 2 }"),
          "expected no 'gradient_merge' beside it");
  refuses(error("lbfgs {}", "amp { level: O1 }"),
          "expected no mixed precision");
  refuses(error("lbfgs {}", "distributed { shards: 2 }"),
          "without 'distributed'");
  EXPECT_EQ(error("lbfgs {} lr { exponential_decay { gamma: 0.9 } }"), "OK");
}

TEST_F(NewtonTest, BfgsRefusesLargeNetworks) {
  const auto build = [](int inputs) {
    const auto job = ParseJob(absl::StrCat(R"(model {
  input { name: "x" shape: [-1, )",
                                           inputs, R"(] }
  layer { name: "fc" linear { out_features: 1 } }
}
loss { label: "y" mse_loss {} }
optimizer { bfgs {} }
data { train { npz { path: "x.npz" } batch_size: 4 } })"),
                              "job.pbtxt");
    if (!job.ok()) return job.status();
    return BuildTrainProgram(ReferenceRegistry(), *job).status();
  };
  EXPECT_EQ(build(8191), absl::OkStatus());  // 8192 with the bias
  EXPECT_TRUE(absl::StrContains(build(8192).message(), "the square of 8193"));
}

}  // namespace test_newton
}  // namespace pd
