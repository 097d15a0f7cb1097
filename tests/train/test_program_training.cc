// SPDX-License-Identifier: Apache-2.0
// Tests of pd-train --program: PaddlePaddle's recorded runs from saved state
// to saved state, with several programs, sequences, rates from outside and
// loops among them.
#include "libcore/train/program_training.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/npz.h"
#include "formats/pdparams.h"
#include "libcore/kernels/attach.h"
#include "tests/train/golden_run.h"

namespace pd {
namespace test_program_training {

namespace fs = std::filesystem;

ProgramTrainingOptions OptionsOf(const TrainCase& c) {
  ProgramTrainingOptions options;
  options.programs = c.programs;
  options.losses = c.losses_of;
  options.batches = c.batches;
  if (c.rates.size() > 1)
    options.batches[c.info.at("lr_var").get<std::string>()] = c.rates;
  if (!c.lods.empty()) {
    auto lods = ParseLoDsBySteps(c.lods.dump());
    EXPECT_TRUE(lods.ok()) << lods.status();
    if (lods.ok()) options.lods = *std::move(lods);
  }
  return options;
}

class ProgramTrainingTest : public ::testing::TestWithParam<std::string> {
 protected:
  ProgramTrainingTest() {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    EXPECT_TRUE(AttachAllKernels(&registry_).ok());
  }
  OpRegistry registry_;
};

TEST_P(ProgramTrainingTest, FromStateToState) {
  const TrainCase c = LoadTrainCase(GetParam());
  auto training = ProgramTraining::Create(&registry_, OptionsOf(c));
  ASSERT_TRUE(training.ok()) << training.status();
  SetInitialState(c, &(*training)->session());
  ASSERT_EQ((*training)->steps(), c.info.at("steps").get<int64_t>());
  const double rtol = c.info.at("rtol"), atol = c.info.at("atol");
  int64_t at = 0;
  for (int64_t step = 0; step < (*training)->steps(); ++step) {
    const absl::Status status = (*training)->Run(step);
    ASSERT_TRUE(status.ok()) << status;
    for (double loss : (*training)->losses()) {
      const double want = NumberAt(c.losses, at++);
      EXPECT_LE(std::fabs(loss - want), atol + rtol * std::fabs(want))
          << "step " << step << ": got " << loss << ", expected " << want;
    }
  }
  CheckFinalState(c, (*training)->session());

  // The saved files are the state, under the names that PaddlePaddle gave it.
  const std::string prefix =
      (fs::path(::testing::TempDir()) / ("program_" + GetParam())).string();
  ASSERT_TRUE((*training)->Save(prefix).ok());
  for (const char* suffix : {".pdparams", ".pdopt"}) {
    const auto saved = ReadStateDict(prefix + suffix);
    ASSERT_TRUE(saved.ok()) << saved.status();
    const auto want =
        ReadStateDict((c.folder / ("final" + std::string(suffix))).string());
    ASSERT_TRUE(want.ok()) << want.status();
    for (const auto& [name, value] : want->tensors) {
      if (saved->tensors.count(name) > 0) {
        EXPECT_EQ(saved->tensors.at(name).size(), value.size()) << name;
        continue;
      }
      bool named = false;  // variables that no op of the program touches
      for (const auto& other : c.info.at("not_in_main"))
        named = named || other == name;
      EXPECT_TRUE(named) << "'" << name << "' was not saved";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ProgramTrainingTest,
                         ::testing::Values("opt_adam", "opt_sched_step",
                                           "gan_two_programs", "crf_tagger_lod",
                                           "while_rnn", "opt_gradient_merge"),
                         [](const auto& info) { return info.param; });

TEST(ProgramTraining, SaysWhatDoesNotFit) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  const TrainCase c = LoadTrainCase("gan_two_programs");
  ProgramTrainingOptions options = OptionsOf(c);
  options.losses = {"no_such_loss"};
  EXPECT_EQ(ProgramTraining::Create(&registry, options).status().message(),
            "variable 'no_such_loss' does not exist in the program");
  options = OptionsOf(c);
  options.batches["stranger"] = options.batches.begin()->second;
  EXPECT_EQ(ProgramTraining::Create(&registry, options).status().message(),
            "batches: no program has a variable 'stranger'");
  options = OptionsOf(c);
  options.lods.resize(1);
  EXPECT_EQ(ProgramTraining::Create(&registry, options).status().message(),
            "sequence lengths for 1 steps; batches have 10");
}

TEST(LoDJson, Forms) {
  const auto one = ParseLoDs(R"({"word": [[2, 3, 1]]})");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->at("word"), (LoD{{0, 2, 5, 6}}));
  for (const char* text :
       {R"([{"w": [[2]]}, {"w": [[3]]}])", R"({"w": [[[2]], [[3]]]})"}) {
    const auto steps = ParseLoDsBySteps(text);
    ASSERT_TRUE(steps.ok()) << steps.status();
    ASSERT_EQ(steps->size(), 2u);
    EXPECT_EQ((*steps)[1].at("w"), (LoD{{0, 3}}));
  }
  for (const char* bad : {"", "[1]", "{\"w\": 3}", "{\"w\": [[-1]]}",
                          "{\"w\": [[1.5]]}", "{\"w\": [[1e300]]}"})
    EXPECT_FALSE(ParseLoDs(bad).ok()) << bad;
}

}  // namespace test_program_training
}  // namespace pd
