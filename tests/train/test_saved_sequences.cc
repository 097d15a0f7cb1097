// SPDX-License-Identifier: Apache-2.0
// A job with a saved training program that is fed sequences: against
// PaddlePaddle's training of it on the same records, and what does not fit.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "formats/npz.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/attach.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.h"
#include "libcore/train/open_networks.h"
#include "libcore/train/trainer.h"
#include "tests/train/golden_run.h"

namespace pd {
namespace test_saved_sequences {

constexpr char kData[] = PD_TESTDATA "/saved_sequences";

// Keeps the losses and the last evaluation.
class Watcher : public TrainObserver {
 public:
  void OnStep(const StepReport& report) override {
    losses.push_back(report.loss);
  }
  void OnEvaluation(int64_t, const EvaluationResult& result) override {
    evaluation = result;
  }
  std::vector<double> losses;
  EvaluationResult evaluation;
};

class SavedSequencesTest : public ::testing::Test {
 protected:
  SavedSequencesTest() {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    EXPECT_TRUE(AttachAllKernels(&registry_).ok());
    const auto text = ReadFile(absl::StrCat(kData, "/job.pbtxt"));
    EXPECT_TRUE(text.ok()) << text.status();
    if (text.ok()) job_text_ = std::string(text->view());
  }

  // Trains the golden's job with these changes to its end.
  absl::StatusOr<TrainOutcome> Train(
      const std::vector<std::pair<std::string, std::string>>& changes,
      const std::string& run, Watcher* watcher) {
    const std::string text = absl::StrReplaceAll(job_text_, changes);
    PD_ASSIGN_OR_RETURN(const LoadedJob job,
                        ParseJob(text, absl::StrCat(kData, "/job.pbtxt")));
    PD_ASSIGN_OR_RETURN(const LoadedJob opened, OpenNetworks(job, ""));
    TrainerOptions options;
    options.run = run;
    std::filesystem::remove_all(run);
    PD_ASSIGN_OR_RETURN(const auto trainer,
                        Trainer::Create(&registry_, opened, options, watcher));
    return trainer->Run();
  }

  OpRegistry registry_;
  std::string job_text_;
};

TEST_F(SavedSequencesTest, TrainsAsPaddlePaddle) {
  const auto expected = ReadNpz(absl::StrCat(kData, "/expected.npz"));
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::string run = absl::StrCat(::testing::TempDir(), "/sequences");
  Watcher watcher;
  const auto outcome = Train({}, run, &watcher);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  ASSERT_EQ(watcher.losses.size(), 20u);
  for (size_t i = 0; i < watcher.losses.size(); ++i)
    EXPECT_NEAR(watcher.losses[i],
                NumberAt(expected->at("losses"), static_cast<int64_t>(i)), 1e-5)
        << "step " << i;
  EXPECT_EQ(watcher.evaluation.records, 20);
  EXPECT_NEAR(watcher.evaluation.Find("loss").value_or(-1),
              NumberAt(expected->at("eval_loss"), 0), 1e-5);
  EXPECT_DOUBLE_EQ(watcher.evaluation.Find("acc").value_or(-1),
                   NumberAt(expected->at("eval_acc"), 0));
  const auto checkpoint = ReadCheckpoint(outcome->checkpoint);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  size_t compared = 0;
  for (const auto& [name, want] : *expected) {
    if (!absl::StartsWith(name, "final/")) continue;
    const std::string own = name.substr(6);
    ASSERT_EQ(checkpoint->params.count(own), 1u) << own;
    EXPECT_LE(WorstDifference(want, checkpoint->params.at(own)), 1e-4) << own;
    ++compared;
  }
  EXPECT_EQ(compared, 7u);
  std::filesystem::remove_all(run);
}

// Records that are filled up to one length are no longer.
TEST_F(SavedSequencesTest, PaddingIsNoPartOfThem) {
  const std::string run = absl::StrCat(::testing::TempDir(), "/sequences_");
  Watcher plain, padded;
  const auto first = Train({}, run, &plain);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Train({{"batch_size: 8",
                              "batch_size: 8 pad { field: \"words\" length: 12 "
                              "value: 3 } pad { field: \"marks\" value: 1 }"}},
                            run, &padded);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(plain.losses, padded.losses);
  std::filesystem::remove_all(run);
}

TEST_F(SavedSequencesTest, Errors) {
  for (const auto& [from, to, part] : std::vector<std::array<const char*, 3>>{
           {"batch_size: 8",
            "batch_size: 8 pad { field: \"words\" side: left }",
            "the program is fed 'words' as sequences, whose padding stands "
            "behind them"},
           {"name: \"marks\" shape: [-1, 2]", "name: \"marks\" path: \"words\"",
            "is fed 'marks' as sequences of float32[-1, 2]; the data set gives "
            "float32["}}) {
    Watcher watcher;
    const std::string run = absl::StrCat(::testing::TempDir(), "/sequences_e");
    const auto outcome = Train({{from, to}}, run, &watcher);
    EXPECT_TRUE(absl::StrContains(outcome.status().message(), part))
        << outcome.status() << "\nlacks " << part;
    std::filesystem::remove_all(run);
  }
}

}  // namespace test_saved_sequences
}  // namespace pd
