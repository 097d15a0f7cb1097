// SPDX-License-Identifier: Apache-2.0
// Whole training programs that PaddlePaddle saved, run from the same state over
// the same batches: every loss and the final state must be PaddlePaddle's
// within the tolerance that each case measured. With the reference kernels
// alone, and with the fast ones in front: a wrong layout, a buffer given away
// too early or an update in the wrong order shows here. Then the test program
// with the final state, and the parameters that averages apply. And the loss
// curve and the final state with each pass off that changes a program.
//   tests_train --gtest_filter=*opt_adam_Fast*
// PD_TRAIN_GOLDENS names another folder of such cases.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "formats/npz.h"
#include "libcore/kernels/attach.h"
#include "tests/passes/pass_choices.h"
#include "tests/train/golden_run.h"

namespace pd {
namespace test_golden_training {

namespace fs = std::filesystem;

// Case, fast kernels or the references alone, passes on or off.
class GoldenTraining
    : public ::testing::TestWithParam<std::tuple<std::string, bool, bool>> {
 protected:
  GoldenTraining() {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    if (std::get<1>(GetParam())) EXPECT_TRUE(AttachAllKernels(&registry_).ok());
    if (!std::get<2>(GetParam()))
      for (const Pass& pass : AllPasses()) passes_.disabled.insert(pass.name);
  }

  void SetUpSession(const TrainCase& c, Session* session) {
    PlanOptions options;
    options.poison = true;
    session->set_plan_options(options);
    session->set_pass_options(passes_);
    SetInitialState(c, session);
  }

  // Checks the averages of parameters, and that they are taken back.
  void CheckApplied(const TrainCase& c, Session* session) {
    if (!fs::exists(c.folder / "apply.pdmodel")) return;
    absl::Status ran =
        session->RunOnce(LoadProgram(c.folder / "apply.pdmodel"));
    ASSERT_TRUE(ran.ok()) << ran;
    CheckAppliedParams(c, *session);
    if (!fs::exists(c.folder / "restore.pdmodel")) return;
    ran = session->RunOnce(LoadProgram(c.folder / "restore.pdmodel"));
    ASSERT_TRUE(ran.ok()) << ran;
    CheckFinalState(c, *session, true);
  }

  void CheckTestProgram(const TrainCase& c, Session* session) {
    if (!fs::exists(c.folder / "test_expect.npz")) return;
    const ProgramDesc program = LoadProgram(c.folder / "test.pdmodel");
    const NamedArrays expected =
        *ReadNpz((c.folder / "test_expect.npz").string());
    CaseRunner runner;
    runner.program = &program;
    runner.feeds = Strings(c.info.at("test_feeds"));
    for (const auto& [name, want] : expected) runner.fetches.push_back(name);
    const absl::Status status = runner.Run(c, 0, session);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < runner.fetches.size(); ++i) {
      const Array& want = expected.at(runner.fetches[i]);
      const Array got = ToArray(runner.plan->fetch(i));
      if (!IsFloating(want.dtype)) {
        ASSERT_EQ(got.size_bytes(), want.size_bytes());
        EXPECT_EQ(
            std::memcmp(got.bytes.get(), want.bytes.get(), want.size_bytes()),
            0)
            << runner.fetches[i];
        continue;
      }
      double most = 0;
      for (int64_t k = 0; k < want.size(); ++k)
        most = std::max(most, std::fabs(NumberAt(want, k)));
      EXPECT_LE(WorstDifference(want, got),
                c.info.at("test_rtol_of_max").get<double>() * most)
          << runner.fetches[i];
    }
  }

  OpRegistry registry_;
  PassOptions passes_;
};

TEST_P(GoldenTraining, FollowsTheLossCurve) {
  const TrainCase c = LoadTrainCase(std::get<0>(GetParam()));
  Session session(&registry_);
  SetUpSession(c, &session);
  std::vector<CaseRunner> runners = RunnersOf(c);
  FollowLosses(c, &runners, &session);
  if (HasFatalFailure()) return;
  CheckFinalState(c, session);
  runners.clear();
  CheckTestProgram(c, &session);
  CheckApplied(c, &session);
}

// Under sanitizers only what users run: fast kernels and every pass. The
// references would take many minutes there, and test_goldens runs them too.
std::vector<bool> Choices() {
#ifdef PD_WITH_SANITIZER
  return {true};
#else
  return {false, true};
#endif
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenTraining);
INSTANTIATE_TEST_SUITE_P(
    Cases, GoldenTraining,
    ::testing::Combine(::testing::ValuesIn(TrainCaseNames()),
                       ::testing::ValuesIn(Choices()),
                       ::testing::ValuesIn(Choices())),
    [](const auto& info) {
      return std::get<0>(info.param) +
             (std::get<1>(info.param) ? "_Fast" : "_Reference") +
             (std::get<2>(info.param) ? "Fused" : "Plain");
    });

class EachPassOff : public ::testing::TestWithParam<std::string> {};

TEST_P(EachPassOff, FollowsTheLossCurve) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  ASSERT_TRUE(AttachAllKernels(&registry).ok());
  const TrainCase c = LoadTrainCase(GetParam());
  std::map<std::string, PassOptions> choices;
  for (const CaseRunner& runner : RunnersOf(c))
    choices.merge(WithOnePassOff(registry, *runner.program, runner.fetches));
  for (const auto& [pass, options] : choices) {
    SCOPED_TRACE("without " + pass);
    Session session(&registry);
    session.set_pass_options(options);
    SetInitialState(c, &session);
    std::vector<CaseRunner> runners = RunnersOf(c);
    FollowLosses(c, &runners, &session);
    ASSERT_FALSE(HasFatalFailure());
    CheckFinalState(c, session);
  }
}

// Under sanitizers few, which together every pass changes.
std::vector<std::string> CasesForPasses() {
#ifdef PD_WITH_SANITIZER
  return {"lenet_adam", "vgg_bn_rmsprop", "bert_encoder_adamw"};
#else
  return TrainCaseNames();
#endif
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EachPassOff);
INSTANTIATE_TEST_SUITE_P(Cases, EachPassOff,
                         ::testing::ValuesIn(CasesForPasses()),
                         [](const auto& info) { return info.param; });

// A pass that changes no program here is not proved here.
TEST(EachPassOff, EveryPassChangesOne) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  ASSERT_TRUE(AttachAllKernels(&registry).ok());
  std::set<std::string> left;
  // Passes for inference only are proved by test_zoo, test_fusion,
  // test_optimize, test_int8_chains and test_int8_dynamic.
  for (const Pass& pass : AllPasses())
    if (pass.trains) left.insert(pass.name);
  // For parameters larger than any here: proved by test_fusion.
  left.erase("advance_updates");
  // For GPUs: proved by test_fuse_add_act and test_device_goldens.
  left.erase("fuse_add_act");
  // For ops of PaddlePaddle's GPU builds: proved by test_expand_fused and
  // test_goldens.
  left.erase("expand_fused");
  for (const std::string& name : TrainCaseNames()) {
    if (left.empty()) break;
    const TrainCase c = LoadTrainCase(name);
    for (const CaseRunner& runner : RunnersOf(c))
      for (const auto& [pass, options] :
           WithOnePassOff(registry, *runner.program, runner.fetches))
        left.erase(pass);
  }
  EXPECT_EQ(left, std::set<std::string>());
}

TEST(GoldenTrainingData, IsThere) { EXPECT_GE(TrainCaseNames().size(), 17u); }

}  // namespace test_golden_training
}  // namespace pd
