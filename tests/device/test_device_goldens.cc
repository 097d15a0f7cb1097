// SPDX-License-Identifier: Apache-2.0
// The answers of PaddlePaddle, on a device: every case of testdata/ops and
// ops_more with an op that has a kernel there, and the training programs of
// testdata/train. Run twice: on the fake driver (fake_cuda.cc), which
// computes with the same kernels compiled for the CPU, and, with
// PD_TEST_GPU=real, on a GPU; where there is none that says SKIPPED and why.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/log.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "tests/device/test_place.h"
#include "tests/ops/compare.h"
#include "tests/ops/golden_case.h"
#include "tests/train/aware_case.h"
#include "tests/train/golden_run.h"

namespace pd {
namespace {

const OpRegistry& DeviceRegistry() {
  static const OpRegistry* const kRegistry = [] {
    auto* registry = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(registry).ok());
    EXPECT_TRUE(AttachAllKernels(registry).ok());
    if (TestPlace().ok()) registry->SetDevice(*TestPlace());
    return registry;
  }();
  return *kRegistry;
}

// Types of ops that some plan has put on the device.
std::set<std::string>& Proved() {
  static auto* const kProved = new std::set<std::string>;
  return *kProved;
}

class Device : public ::testing::Test {
 protected:
  void SetUp() override {
    if (OnRealGpu() && !TestPlace().ok())
      GTEST_SKIP() << TestPlace().status().message();
    ASSERT_TRUE(TestPlace().ok()) << TestPlace().status();
    SetLogLevel(LogLevel::kWarning);
  }
};

void NoteOnDevice(const Plan& plan) {
  for (const StepInfo& step : plan.steps())
    if (step.on_device) Proved().insert(step.op_type);
}

bool HasKernel(const ProgramDesc& program) {
  for (const OpDesc& op : program.global().ops)
    if (const OpDef* def = DeviceRegistry().Find(op.type);
        def != nullptr && def->HasImplementation(Place::kDevice))
      return true;
  return false;
}

std::string RunCase(const GoldenCase& golden) {
  Session session(&DeviceRegistry(), 1);
  if (!golden.startup.blocks.empty()) {
    const absl::Status started = session.RunOnce(golden.startup);
    if (!started.ok()) return std::string(started.message());
  }
  std::vector<std::string> fetches;
  for (const auto& [name, array] : golden.expect) fetches.push_back(name);
  std::vector<FeedSpec> specs;
  std::vector<const Array*> fed;
  for (const auto& [name, array] : golden.feed) {
    const VarDesc* var = golden.program.FindVar(0, name);
    if (var != nullptr && var->persistable) {
      const absl::Status set = session.scope().Set(name, array);
      if (!set.ok()) return std::string(set.message());
      continue;
    }
    specs.push_back({name, array.dtype, array.shape, array.lod});
    fed.push_back(&array);
  }
  auto plan = session.Compile(golden.program, specs, fetches);
  if (!plan.ok()) return std::string(plan.status().message());
  NoteOnDevice(**plan);
  for (size_t i = 0; i < fed.size(); ++i)
    (*plan)->SetFeed(i, fed[i]->bytes.get());
  RunContext context;
  context.seed = 1;
  const absl::Status ran = (*plan)->Run(context);
  if (!ran.ok()) return std::string(ran.message());
  std::string wrong;
  for (size_t i = 0; i < fetches.size(); ++i) {
    const std::string difference =
        Difference(ToArray((*plan)->fetch(i)), golden.expect.at(fetches[i]),
                   golden.rtol, golden.atol);
    if (!difference.empty())
      absl::StrAppend(&wrong, fetches[i], ": ", difference, "; ");
  }
  return wrong;
}

// The cases of a folder with an op that has a kernel.
int RunCases(const std::string& folder) {
  std::vector<std::string> zips;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".zip")
      zips.push_back(entry.path().string());
  std::sort(zips.begin(), zips.end());
  // Where PaddlePaddle is wrong, or we are on the CPU too.
  std::set<std::string> not_yet;
  std::ifstream file(folder + "/not_yet.txt");
  for (std::string line; std::getline(file, line);) not_yet.insert(line);
  int cases = 0;
  for (const std::string& zip : zips) {
    const std::string name = std::filesystem::path(zip).stem().string();
    const auto goldens = ReadGoldenCases(zip);
    EXPECT_TRUE(goldens.ok()) << goldens.status();
    if (!goldens.ok()) continue;
    for (const GoldenCase& golden : *goldens) {
      if (!HasKernel(golden.program) ||
          not_yet.count(absl::StrCat(name, "/", golden.name)) > 0)
        continue;
      EXPECT_EQ(RunCase(golden), "") << name << "/" << golden.name;
      ++cases;
    }
  }
  return cases;
}

TEST_F(Device, OpsGivePaddlePaddlesAnswers) {
  EXPECT_GT(RunCases(PD_TESTDATA "/ops"), 400);
  EXPECT_GT(RunCases(PD_TESTDATA "/ops_more"), 450);
}

class DeviceTraining : public Device,
                       public ::testing::WithParamInterface<std::string> {};

void ExpectPaddlePaddlesTraining(const std::string& name,
                                 const PassOptions& passes) {
  SCOPED_TRACE(name);
  const TrainCase c = LoadTrainCase(name);
  Session session(&DeviceRegistry(), 1);
  session.set_pass_options(passes);
  SetInitialState(c, &session);
  std::vector<CaseRunner> runners = RunnersOf(c);
  FollowLosses(c, &runners, &session);
  CheckFinalState(c, session);
  for (const CaseRunner& runner : runners)
    if (runner.plan != nullptr) NoteOnDevice(*runner.plan);
}

TEST_P(DeviceTraining, LossesAndStateArePaddlePaddles) {
  ExpectPaddlePaddlesTraining(GetParam(), {});
}

// Updates one by one, as they are where merge_updates has nothing to join.
TEST_F(Device, UpdatesOneByOneArePaddlePaddles) {
  PassOptions passes;
  passes.disabled = {"merge_updates"};
  for (const std::string& name : TrainCaseNames())
    if (absl::StartsWith(name, "opt_"))
      ExpectPaddlePaddlesTraining(name, passes);
}

// A feed's shape with a batch of 4.
Shape FeedShape(const TrainProgram& program, const std::string& name) {
  Shape shape = program.main.global().FindVar(name)->shape;
  shape[0] = 4;
  return shape;
}

// On the fake driver, those that spend their time in the CPU's convolutions
// stay out: the others prove the same kernels.
std::vector<std::string> Trainings() {
  std::vector<std::string> names = TrainCaseNames();
  const std::set<std::string> slow = {"unet_transposed", "densenet_concat",
                                      "mobilenetv2_depthwise",
                                      "resnet_bottleneck_piecewise"};
  if (!OnRealGpu())
    names.erase(std::remove_if(names.begin(), names.end(),
                               [&](const std::string& name) {
                                 return slow.count(name) > 0;
                               }),
                names.end());
  return names;
}

class DeviceQuantAware : public Device,
                         public ::testing::WithParamInterface<AwareCase> {};

// Without the device's kernels for convolutions.
const OpRegistry& WithoutConvolutions() {
  static const OpRegistry* const kRegistry = [] {
    auto* registry = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(registry).ok());
    EXPECT_TRUE(AttachHostKernels(registry).ok());
    if (TestPlace().ok()) registry->SetDevice(*TestPlace());
    for (const OpDef* def : DeviceRegistry().All())
      for (const Implementation& i : def->implementations())
        if (i.place == Place::kDevice &&
            !absl::StrContains(def->type(), "conv"))
          EXPECT_TRUE(registry->AddImplementation(def->type(), i).ok());
    return registry;
  }();
  return *kRegistry;
}

// Sums in another order, or by another compiler's code, turn a rounding over
// now and then, whoever rounds, and training goes on from there. What that does
// to an answer: of 5 bits, a step is a fifteenth of the range. Two of the cases
// have numbers that lie so.
double Turned(absl::string_view name) {
  return name == "few_bits" ? 0.2 : 0.05;
}
bool Turns(absl::string_view name) {
  return OnRealGpu() || name == "few_bits" || name == "whole";
}

void TrainOn(const OpRegistry& registry, AwareCase c) {
  if (Turns(c.name)) c.tolerance = Turned(c.name);
  const TrainProgram program = BuildAware(c, registry);
  Session session(&registry, 1);
  TrainAsPaddlePaddle(c, program, &session);
  // The ops that round run on the device.
  const auto plan =
      session.Compile(program.main,
                      {{"x", DType::kFloat32, FeedShape(program, "x")},
                       {"y", DType::kInt64, FeedShape(program, "y")}},
                      {program.loss});
  ASSERT_TRUE(plan.ok()) << plan.status();
  NoteOnDevice(**plan);
  int fakes = 0;
  for (const StepInfo& step : (*plan)->steps()) {
    if (!absl::StrContains(step.op_type, "abs_max")) continue;
    EXPECT_TRUE(step.on_device) << step.op_type;
    ++fakes;
  }
  EXPECT_GT(fakes, 3);
}

// Convolutions are the CPU's, whose roundings are PaddlePaddle's.
TEST_P(DeviceQuantAware, TrainsAsPaddlePaddle) {
  TrainOn(WithoutConvolutions(), GetParam());
}

TEST_P(DeviceQuantAware, TrainsWithConvolutions) {
  TrainOn(DeviceRegistry(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, DeviceQuantAware,
                         ::testing::ValuesIn(AwareCases()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

// When all tests have run: every kernel was part of an answer.
class EveryKernel : public ::testing::Environment {
 public:
  void TearDown() override {
    if (!TestPlace().ok() || ::testing::GTEST_FLAG(filter) != "*") return;
    std::vector<std::string> missing;
    for (const OpDef* def : DeviceRegistry().All()) {
      const auto& all = def->implementations();
      const auto first = std::find_if(
          all.begin(), all.end(),
          [](const Implementation& i) { return i.place == Place::kDevice; });
      if (first == all.end()) continue;
      const std::string& type = def->type();
      // test_int8_..._device have those of 8 bits, against the reference;
      // test_device_attention has attention, which is made of halves alone.
      if (!first->follows_inputs && Proved().count(type) == 0 &&
          !absl::StartsWith(type, "int8_") &&
          type != "scaled_dot_product_attention")
        missing.push_back(type);
    }
    EXPECT_EQ(absl::StrJoin(missing, " "), "");
  }
};
const ::testing::Environment* const kEveryKernel =
    ::testing::AddGlobalTestEnvironment(new EveryKernel);

INSTANTIATE_TEST_SUITE_P(All, DeviceTraining, ::testing::ValuesIn(Trainings()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace pd
