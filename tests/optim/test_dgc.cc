// SPDX-License-Identifier: Apache-2.0
// Momentum with deep gradient compression against its formula in float64
// (testdata/make/newton_goldens.py), before, in and after the ramp up.
#include "libcore/optim/dgc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "formats/npz.h"
#include "libcore/exec/session.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_dgc {

constexpr int64_t kElements = 16384;  // the fewest that are compressed

OptimizerSpec PlainSpec() {
  OptimizerSpec spec;
  spec.kind = OptimizerSpec::Kind::kDgcMomentum;
  spec.learning_rate = 0.1;
  spec.rampup_begin_step = 2;
  spec.rampup_step = 3;
  spec.sparsity = {0.75f, 0.9375f, 0.99f};
  return spec;
}

std::map<std::string, OptimizerSpec> Specs() {
  std::map<std::string, OptimizerSpec> specs;
  for (const char* name : {"plain", "nesterov_l2", "clip_l1"})
    specs[name] = PlainSpec();
  specs["nesterov_l2"].use_nesterov = true;
  specs["nesterov_l2"].weight_decay = {WeightDecay::Kind::kL2, 0.05};
  specs["clip_l1"].grad_clip = {GradClip::Kind::kNorm, 0, 0, 3};
  specs["clip_l1"].weight_decay = {WeightDecay::Kind::kL1, 0.02};
  return specs;
}

struct Programs {
  ProgramDesc main, startup;
  absl::StatusOr<OptimizerVars> vars;
};

Programs MakeSetup(const OptimizerSpec& spec, const Shape& shape) {
  Programs s;
  s.main.blocks.emplace_back();
  s.startup.blocks.emplace_back();
  BlockBuilder main(&ReferenceRegistry(), &s.main);
  BlockBuilder startup(&ReferenceRegistry(), &s.startup);
  VarDesc var;
  var.shape = shape;
  var.name = "w@GRAD";
  main.AddVar(var);
  var.name = "w";
  var.persistable = var.is_parameter = true;
  main.AddVar(var);
  s.vars = AppendOptimizer(spec, {{"w", "w@GRAD"}}, &main, &startup);
  return s;
}

Array Waves(double (*wave)(double), double width, double shift) {
  std::vector<float> values;
  for (int64_t i = 0; i < kElements; ++i)
    values.push_back(static_cast<float>(wave(width * i + shift)));
  return MakeArray<float>({128, 128}, values);
}

void ExpectClose(const Array& got, const Array& want) {
  ASSERT_EQ(got.size(), want.size());
  for (int64_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got.data<float>()[i], want.data<float>()[i], 2e-5)
        << "element " << i;
}

TEST(Dgc, StepsByFormula) {
  const auto goldens = ReadNpz(PD_TESTDATA "/optim/dgc.npz");
  ASSERT_TRUE(goldens.ok()) << goldens.status();
  for (const auto& [name, spec] : Specs()) {
    SCOPED_TRACE(name);
    const Programs setup = MakeSetup(spec, {128, 128});
    ASSERT_TRUE(setup.vars.ok()) << setup.vars.status();
    Session session(&ReferenceRegistry());
    ASSERT_TRUE(session.RunOnce(setup.startup).ok());
    ASSERT_TRUE(session.scope()
                    .GetOrCreate("w", DType::kFloat32, {128, 128})
                    .status()
                    .ok());
    ASSERT_TRUE(session.scope().Set("w", Waves(std::cos, 0.1, 0)).ok());
    auto plan = session.Compile(setup.main,
                                {{"w@GRAD", DType::kFloat32, {128, 128}}}, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (int step = 0; step < 7; ++step) {
      const Array gradient = Waves(std::sin, 12.9898, 78.233 * (step + 1));
      (*plan)->SetFeed(0, gradient.bytes.get());
      const absl::Status ran = (*plan)->Run(RunContext{});
      ASSERT_TRUE(ran.ok()) << ran;
    }
    ExpectClose(*session.scope().Get("w"), goldens->at(name + "/w"));
    ExpectClose(*session.scope().Get("w__dgc_v__0"), goldens->at(name + "/v"));
  }
}

TEST(Dgc, SmallParametersHaveMomentum) {
  const Programs setup = MakeSetup(PlainSpec(), {127, 129});
  ASSERT_TRUE(setup.vars.ok()) << setup.vars.status();
  EXPECT_EQ(setup.main.global().ops.back().type, "momentum");
  EXPECT_EQ(setup.vars->accumulators, std::vector<std::string>{"w__dgc_u__0"});
}

TEST(Dgc, RefusesAClipOfAllGradients) {
  OptimizerSpec spec = PlainSpec();
  spec.grad_clip.kind = GradClip::Kind::kGlobalNorm;
  EXPECT_EQ(MakeSetup(spec, {128, 128}).vars.status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Dgc, RefusesOtherTrainers) {
  Programs setup = MakeSetup(PlainSpec(), {128, 128});
  ASSERT_TRUE(setup.vars.ok()) << setup.vars.status();
  Session session(&ReferenceRegistry());
  ASSERT_TRUE(session.RunOnce(setup.startup).ok());
  ASSERT_TRUE(session.scope()
                  .GetOrCreate("w", DType::kFloat32, {128, 128})
                  .status()
                  .ok());
  ASSERT_TRUE(
      session.scope().Set("__g_dgc_nranks__", MakeArray<float>({1}, {2})).ok());
  auto plan = session.Compile(setup.main,
                              {{"w@GRAD", DType::kFloat32, {128, 128}}}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Array gradient = Waves(std::sin, 1, 0);
  (*plan)->SetFeed(0, gradient.bytes.get());
  EXPECT_EQ((*plan)->Run(RunContext{}).code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace test_dgc
}  // namespace pd
