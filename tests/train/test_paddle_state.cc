// SPDX-License-Identifier: Apache-2.0
// A run's files where PaddlePaddle goes on: keys, tables and values of
// model.pdparams and model.pdopt against those that PaddlePaddle wrote after
// the same steps of the same network, optimizer and schedule. That it goes on
// from them, scripts/interop/check_continue.py shows.
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/pdparams.h"
#include "libcore/kernels/attach.h"
#include "libcore/nn/job.h"
#include "libcore/optim/lr_state.h"
#include "libcore/train/trainer.h"

namespace pd {
namespace test_paddle_state {

namespace fs = std::filesystem;

std::string Data(const std::string& name) {
  return std::string(PD_TESTDATA "/optim/state/") + name;
}

StateDict Read(const std::string& path) {
  auto state = ReadStateDict(path);
  EXPECT_TRUE(state.ok()) << state.status();
  return state.ok() ? *std::move(state) : StateDict();
}

// An empty folder of the test's own.
std::string RunFolder() {
  const std::string folder = ::testing::TempDir() + "/paddle_state_run";
  fs::remove_all(folder);
  return folder;
}

class PaddleStateTest : public ::testing::Test {
 protected:
  PaddleStateTest() {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    EXPECT_TRUE(AttachAllKernels(&registry_).ok());
  }

  // Trains to the end and gives the last checkpoint's folder.
  std::string Train(TrainerOptions options) {
    const auto job = ReadJob(Data("job.pbtxt"));
    EXPECT_TRUE(job.ok()) << job.status();
    TrainObserver nobody;
    auto trainer = Trainer::Create(&registry_, *job, options, &nobody);
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    if (!trainer.ok()) return "";
    const auto outcome = (*trainer)->Run();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? outcome->checkpoint : "";
  }

  OpRegistry registry_;
};

void ExpectHolds(const StateDict& want, const StateDict& got) {
  for (const auto& [name, value] : want.tensors) {
    ASSERT_EQ(got.tensors.count(name), 1u) << name;
    const Array& have = got.tensors.at(name);
    EXPECT_EQ(have.shape, value.shape) << name;
    for (int64_t i = 0; i < std::min(value.size(), have.size()); ++i)
      EXPECT_NEAR(have.data<float>()[i], value.data<float>()[i], 2e-5)
          << name << ", element " << i;
  }
}

// Numbers and dicts of them.
void ExpectSame(const PickleDict& want, const PickleDict& got) {
  ASSERT_EQ(want.items.size(), got.items.size());
  for (size_t i = 0; i < want.items.size(); ++i) {
    const std::string key = *want.items[i].first.As<std::string>();
    ASSERT_EQ(key, *got.items[i].first.As<std::string>());
    const PickleValue &w = want.items[i].second, &g = got.items[i].second;
    ASSERT_EQ(TypeName(w), TypeName(g)) << key;
    if (const auto* dict = w.As<PickleDict>())
      ExpectSame(*dict, *g.As<PickleDict>());
    else if (const auto* number = w.As<double>())
      EXPECT_DOUBLE_EQ(*number, *g.As<double>()) << key;
    else
      EXPECT_EQ(*w.As<int64_t>(), *g.As<int64_t>()) << key;
  }
}

TEST_F(PaddleStateTest, FilesAreThoseOfPaddlePaddle) {
  TrainerOptions options;
  options.run = RunFolder();
  options.init = {{Data("init.pdparams")}};
  const std::string folder = Train(options);
  const StateDict params = Read(folder + "/model.pdparams");
  const StateDict want_params = Read(Data("step-4.pdparams"));
  ExpectHolds(want_params, params);
  EXPECT_EQ(params.tensors.size(), want_params.tensors.size());
  EXPECT_EQ(params.order, want_params.order);
  EXPECT_EQ(params.parameter_names, want_params.parameter_names);

  const StateDict opt = Read(folder + "/model.pdopt");
  const StateDict want_opt = Read(Data("step-4.pdopt"));
  ExpectHolds(want_opt, opt);
  EXPECT_EQ(opt.tensors.size(), want_opt.tensors.size() + 1)
      << "the learning rate, which static programs keep, and nothing else";
  EXPECT_TRUE(opt.has_parameter_names);
  for (const auto& [name, own] : opt.parameter_names) EXPECT_EQ(name, own);
  const PickleValue* got = opt.others.Find(kLRSchedulerKey);
  const PickleValue* want = want_opt.others.Find(kLRSchedulerKey);
  ASSERT_TRUE(got != nullptr && got->As<PickleDict>() != nullptr);
  ExpectSame(*want->As<PickleDict>(), *got->As<PickleDict>());
}

// Checkpoints of before called states after the job's names.
TEST_F(PaddleStateTest, EarlierNamesOfStatesAreTaken) {
  TrainerOptions options;
  options.run = RunFolder();
  options.init = {{Data("init.pdparams")}};
  const std::string folder = Train(options);
  auto checkpoint = ReadCheckpoint(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto before = [](const std::string& name) {
    return name.rfind("linear_0.w_0_", 0) == 0
               ? "body.0.weight" + name.substr(12)
               : name;
  };
  NamedArrays opt;
  for (const auto& [name, value] : checkpoint->opt) opt[before(name)] = value;
  checkpoint->opt = opt;
  for (VarDesc& var : checkpoint->program.global().vars)
    var.name = before(var.name);
  for (OpDesc& op : checkpoint->program.global().ops)
    for (SlotList* slots : {&op.inputs, &op.outputs})
      for (auto& [slot, names] : *slots)
        for (std::string& name : names) name = before(name);
  checkpoint->state.done = false;
  ASSERT_TRUE(WriteCheckpoint(options.run, *checkpoint, 0).ok());
  ASSERT_EQ(
      Read(folder + "/model.pdopt").tensors.count("body.0.weight_moment1_0"),
      1u);
  options.init.clear();
  options.resume = true;
  const StateDict resumed = Read(Train(options) + "/model.pdopt");
  ExpectHolds(Read(Data("step-4.pdopt")), resumed);
  EXPECT_EQ(resumed.tensors.count("body.0.weight_moment1_0"), 0u);
}

// As PaddlePaddle's ReduceOnPlateau(0.5, patience=1) after three values.
TEST(SchedulerState, OfAPlateau) {
  ReduceOnPlateau plateau;
  plateau.learning_rate = 0.5;
  plateau.patience = 1;
  PickleDict state = SchedulerState(plateau, 0);
  EXPECT_EQ(TypeName(*state.Find("best")), "None");
  for (const double value : {1.0, 2.0, 3.0}) plateau.Step(value);
  state = SchedulerState(plateau, 3);
  EXPECT_EQ(*state.Find("best")->As<double>(), 1.0);
  EXPECT_EQ(*state.Find("cooldown_counter")->As<int64_t>(), 0);
  EXPECT_EQ(*state.Find("num_bad_epochs")->As<int64_t>(), 0);
  EXPECT_EQ(*state.Find("last_epoch")->As<int64_t>(), 3);
  EXPECT_DOUBLE_EQ(*state.Find("last_lr")->As<double>(), 0.05);
}

}  // namespace test_paddle_state
}  // namespace pd
