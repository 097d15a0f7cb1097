// SPDX-License-Identifier: Apache-2.0
// Optimizers against PaddlePaddle: the ops that they append, in order, and the
// variables after some steps with given gradients (testdata/optim).
#include "libcore/optim/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "formats/npz.h"
#include "libcore/exec/session.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_optimizer {

using Kind = OptimizerSpec::Kind;

// The optimizers that are neither sgd, momentum nor adam.
void AddMoreSpecs(const std::function<OptimizerSpec&(const char*, Kind)>& add) {
  const auto only_w = [](const std::string& name) { return name == "w"; };
  OptimizerSpec& adamax = add("adamax", Kind::kAdamax);
  adamax.beta1 = 0.8;
  adamax.beta2 = 0.95;
  adamax.epsilon = 1e-6;
  add("adamax_l2", Kind::kAdamax).weight_decay = {WeightDecay::Kind::kL2, 0.1};
  OptimizerSpec& adagrad = add("adagrad", Kind::kAdagrad);
  adagrad.epsilon = 1e-6;
  adagrad.initial_accumulator_value = 0.3;
  OptimizerSpec& clipped = add("adagrad_l1_norm", Kind::kAdagrad);
  clipped.epsilon = 1e-3;
  clipped.weight_decay = {WeightDecay::Kind::kL1, 0.05};
  clipped.grad_clip = {GradClip::Kind::kNorm, 0, 0, 0.5};
  OptimizerSpec& adadelta = add("adadelta", Kind::kAdadelta);
  adadelta.epsilon = 1e-4;
  adadelta.rho = 0.8;
  OptimizerSpec& rmsprop = add("rmsprop", Kind::kRmsProp);
  rmsprop.epsilon = 1e-6;
  rmsprop.momentum = 0;
  OptimizerSpec& centered = add("rmsprop_centered_momentum", Kind::kRmsProp);
  centered.rho = 0.8;
  centered.epsilon = 1e-4;
  centered.momentum = 0.7;
  centered.centered = true;
  OptimizerSpec& lamb = add("lamb", Kind::kLamb);
  lamb.coeff = 0.2;
  lamb.beta1 = 0.8;
  lamb.beta2 = 0.95;
  lamb.epsilon = 1e-5;
  OptimizerSpec& some = add("lamb_some", Kind::kLamb);
  some.coeff = 0.2;
  some.epsilon = 1e-6;
  some.apply_decay_param_fun = only_w;
  some.grad_clip = {GradClip::Kind::kGlobalNorm, 0, 0, 0.7};
  OptimizerSpec& lars = add("lars", Kind::kLarsMomentum);
  lars.lars_coeff = 0.5;
  lars.coeff = 0.2;
  lars.epsilon = 1e-3;
  OptimizerSpec& lars_some = add("lars_some", Kind::kLarsMomentum);
  lars_some.lars_coeff = 0.5;
  lars_some.coeff = 0.2;
  lars_some.epsilon = 0;
  lars_some.apply_decay_param_fun = only_w;
}

// The cases of testdata/make/optim_goldens.py.
std::map<std::string, OptimizerSpec> Specs() {
  const WeightDecay l1 = {WeightDecay::Kind::kL1, 0.05};
  const WeightDecay l2 = {WeightDecay::Kind::kL2, 0.1};
  std::map<std::string, OptimizerSpec> specs;
  const auto add = [&](const char* name, Kind kind) -> OptimizerSpec& {
    OptimizerSpec& spec = specs[name];
    spec.kind = kind;
    spec.learning_rate = 0.1;
    spec.momentum = 0.8;
    return spec;
  };
  add("sgd", Kind::kSgd);
  OptimizerSpec& sgd = add("sgd_l1_value", Kind::kSgd);
  sgd.weight_decay = l1;
  sgd.grad_clip = {GradClip::Kind::kValue, -0.3, 0.4, 0};
  add("momentum", Kind::kMomentum);
  OptimizerSpec& nesterov = add("momentum_nesterov_l2", Kind::kMomentum);
  nesterov.use_nesterov = true;
  nesterov.weight_decay = l2;
  add("momentum_l1", Kind::kMomentum).weight_decay = l1;
  add("adam", Kind::kAdam);
  OptimizerSpec& adam = add("adam_l2_global_norm", Kind::kAdam);
  adam.beta1 = 0.8;
  adam.beta2 = 0.95;
  adam.epsilon = 1e-6;
  adam.weight_decay = l2;
  adam.grad_clip = {GradClip::Kind::kGlobalNorm, 0, 0, 0.7};
  add("adam_norm", Kind::kAdam).grad_clip = {GradClip::Kind::kNorm, 0, 0, 0.5};
  add("adamw", Kind::kAdamW).coeff = 0.2;
  OptimizerSpec& some = add("adamw_some", Kind::kAdamW);
  some.coeff = 0.2;
  some.apply_decay_param_fun = [](const std::string& name) {
    return name == "w";
  };
  AddMoreSpecs(add);
  return specs;
}

// A program with parameters w [3, 4] and b [4], whose gradients are fed, and
// the two programs' optimizer. b learns at half the rate.
struct Setup {
  ProgramDesc main, startup;
  OptimizerVars vars;
};

VarDesc Variable(const std::string& name, Shape shape, bool persistable) {
  VarDesc var;
  var.name = name;
  var.shape = std::move(shape);
  var.persistable = persistable;
  var.is_parameter = persistable;
  return var;
}

absl::StatusOr<Setup> MakeSetup(const OptimizerSpec& spec,
                                int64_t version = 2006002) {
  Setup s;
  s.main.version = s.startup.version = version;
  s.main.blocks.emplace_back();
  s.startup.blocks.emplace_back();
  BlockBuilder main(&ReferenceRegistry(), &s.main);
  BlockBuilder startup(&ReferenceRegistry(), &s.startup);
  for (const auto& [name, shape] :
       std::map<std::string, Shape>{{"w", {3, 4}}, {"b", {4}}}) {
    main.AddVar(Variable(name, shape, true));
    main.AddVar(Variable(GradName(name), shape, false));
  }
  auto vars = AppendOptimizer(spec, {{"w", "w@GRAD"}, {"b", "b@GRAD", 0.5}},
                              &main, &startup);
  if (!vars.ok()) return vars.status();
  s.vars = *std::move(vars);
  return s;
}

std::map<std::string, std::vector<std::string>> GoldenOps() {
  std::map<std::string, std::vector<std::string>> ops;
  std::ifstream file(PD_TESTDATA "/optim/optimizers.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (std::string op; words >> op;) ops[name].push_back(op);
  }
  return ops;
}

// Numbers from -1 to 1, as numpy.linspace makes them.
Array Start(const Shape& shape) {
  const int64_t n = NumElements(shape);
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(static_cast<float>(-1.0 + 2.0 / (n - 1) * i));
  return MakeArray(shape, values);
}

void ExpectNear(const Array& got, const Array& want) {
  ASSERT_EQ(got.shape, want.shape);
  ASSERT_EQ(got.dtype, want.dtype);
  for (int64_t i = 0; i < got.size(); ++i) {
    const double a = got.data<float>()[i], b = want.data<float>()[i];
    EXPECT_TRUE(std::abs(a - b) <= 1e-6 + 1e-5 * std::abs(b))
        << "element " << i << ": got " << a << ", expected " << b;
  }
}

TEST(Optimizer, AppendsPaddlePaddlesOps) {
  const auto goldens = GoldenOps();
  ASSERT_EQ(goldens.size(), Specs().size());
  for (const auto& [name, spec] : Specs()) {
    SCOPED_TRACE(name);
    const auto setup = MakeSetup(spec);
    ASSERT_TRUE(setup.ok()) << setup.status();
    std::vector<std::string> types;
    for (const OpDesc& op : setup->main.global().ops) {
      types.push_back(op.type);
      EXPECT_EQ(op.AttrOr<int32_t>("op_role", 0) & kRoleOptimize,
                int32_t{kRoleOptimize});
    }
    EXPECT_EQ(types, goldens.at(name));
  }
}

// Steps with the gradients w[i] and b[i]; `session` has the variables then.
void RunSteps(const OptimizerSpec& spec, const Array& w, const Array& b,
              Session* session) {
  const auto setup = MakeSetup(spec);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const absl::Status started = session->RunOnce(setup->startup);
  ASSERT_TRUE(started.ok()) << started;
  for (const auto& [param, shape] :
       std::map<std::string, Shape>{{"w", {3, 4}}, {"b", {4}}}) {
    ASSERT_TRUE(session->scope()
                    .GetOrCreate(param, DType::kFloat32, shape)
                    .status()
                    .ok());
    ASSERT_TRUE(session->scope().Set(param, Start(shape)).ok());
  }
  auto plan = session->Compile(
      setup->main,
      {{"w@GRAD", DType::kFloat32, {3, 4}}, {"b@GRAD", DType::kFloat32, {4}}},
      {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (int64_t i = 0; i < w.shape[0]; ++i) {
    (*plan)->SetFeed(0, w.data<float>() + i * 12);
    (*plan)->SetFeed(1, b.data<float>() + i * 4);
    const absl::Status ran = (*plan)->Run(RunContext{});
    ASSERT_TRUE(ran.ok()) << ran;
  }
}

TEST(Optimizer, StepsLikePaddlePaddle) {
  const auto goldens = ReadNpz(PD_TESTDATA "/optim/optimizers.npz");
  ASSERT_TRUE(goldens.ok()) << goldens.status();
  for (const auto& [name, spec] : Specs()) {
    SCOPED_TRACE(name);
    Session session(&ReferenceRegistry());
    RunSteps(spec, goldens->at(name + "/w@GRAD"), goldens->at(name + "/b@GRAD"),
             &session);
    // Every variable of PaddlePaddle's is one of ours, of the same name.
    for (const auto& [key, want] : *goldens) {
      if (key.rfind(name + "/", 0) != 0) continue;
      const std::string variable = key.substr(name.size() + 1);
      if (variable.find("@GRAD") != std::string::npos) continue;
      SCOPED_TRACE(variable);
      const auto got = session.scope().Get(variable);
      ASSERT_TRUE(got.ok()) << got.status();
      ExpectNear(*got, want);
    }
  }
}

// One step of a number by the optimizers for which PaddlePaddle 2.6 has an op
// and no class.
double StepOf(const OptimizerSpec& spec, double p, double g, double rate,
              double* moment) {
  if (spec.kind == Kind::kDecayedAdagrad) {
    *moment = spec.decay * *moment + (1 - spec.decay) * g * g;
    return p - rate * g / (std::sqrt(*moment) + spec.epsilon);
  }
  double q = p - rate * g;
  if (spec.kind == Kind::kProximalAdagrad) {
    *moment += g * g;
    q = p - rate * g / std::sqrt(*moment);
  }
  const double size = std::max(std::abs(q) - rate * spec.l1, 0.0);
  return std::copysign(size / (1 + rate * spec.l2), q);
}

TEST(Optimizer, StepsByFormula) {
  constexpr int kSteps = 3;
  const Array w = Start({kSteps, 3, 4}), b = Start({kSteps, 4});
  for (const Kind kind :
       {Kind::kDecayedAdagrad, Kind::kProximalGd, Kind::kProximalAdagrad}) {
    OptimizerSpec spec;
    spec.kind = kind;
    spec.learning_rate = 0.1;
    spec.epsilon = 1e-6;
    spec.decay = 0.9;
    spec.l1 = 0.3;
    spec.l2 = 0.2;
    spec.initial_accumulator_value = 0.1;
    SCOPED_TRACE(static_cast<int>(kind));
    Session session(&ReferenceRegistry());
    RunSteps(spec, w, b, &session);
    for (const auto& [name, grads] :
         std::map<std::string, const Array*>{{"w", &w}, {"b", &b}}) {
      SCOPED_TRACE(name);
      const auto got = session.scope().Get(name);
      ASSERT_TRUE(got.ok()) << got.status();
      const Array start = Start(got->shape);
      for (int64_t i = 0; i < start.size(); ++i) {
        double p = start.data<float>()[i];
        double moment = spec.initial_accumulator_value;
        for (int s = 0; s < kSteps; ++s)
          p = StepOf(spec, p, grads->data<float>()[s * start.size() + i],
                     name == "b" ? 0.05 : 0.1, &moment);
        EXPECT_NEAR(got->data<float>()[i], p, 1e-6) << "element " << i;
      }
    }
  }
}

// Each gradient is divided by its norm over `clip` where that is more than 1;
// a draw of noise moves all elements alike.
TEST(Optimizer, DpsgdClipsAndAddsNoise) {
  const Array w = Start({1, 3, 4}), b = Start({1, 4});
  for (const double sigma : {0.0, 8.0}) {
    OptimizerSpec spec;
    spec.kind = Kind::kDpsgd;
    spec.learning_rate = 0.1;
    spec.clip = 0.5;
    spec.batch_size = 4;
    spec.sigma = sigma;
    Session session(&ReferenceRegistry());
    RunSteps(spec, w, b, &session);
    const auto got = session.scope().Get("w");
    ASSERT_TRUE(got.ok()) << got.status();
    const Array start = Start(got->shape);
    double squares = 0;
    for (int64_t i = 0; i < w.size(); ++i)
      squares += double{w.data<float>()[i]} * double{w.data<float>()[i]};
    ASSERT_GT(std::sqrt(squares), spec.clip);
    const auto noise = [&](int64_t i) {
      const double clipped =
          w.data<float>()[i] * spec.clip / std::sqrt(squares);
      return double{start.data<float>()[i]} - 0.1 * clipped -
             double{got->data<float>()[i]};
    };
    for (int64_t i = 0; i < start.size(); ++i)
      EXPECT_NEAR(noise(i), noise(0), 1e-6) << "element " << i;
    if (sigma == 0)
      EXPECT_NEAR(noise(0), 0, 1e-6);
    else
      EXPECT_GT(std::abs(noise(0)), 1e-4);
  }
}

TEST(Optimizer, WritesTheLearningRateOfTheProgramsVersion) {
  for (const auto& [version, shape] :
       std::map<int64_t, Shape>{{2003000, {1}}, {2005000, {}}}) {
    const auto setup = MakeSetup(Specs().at("sgd"), version);
    ASSERT_TRUE(setup.ok()) << setup.status();
    EXPECT_EQ(setup->vars.learning_rate, "learning_rate_0");
    EXPECT_EQ(setup->main.FindVar(0, "learning_rate_0")->shape, shape);
    EXPECT_EQ(setup->startup.FindVar(0, "learning_rate_0")->shape, shape);
  }
}

TEST(Optimizer, LeavesOutWhatNeedsNoClipping) {
  OptimizerSpec spec;
  spec.grad_clip.kind = GradClip::Kind::kGlobalNorm;
  ProgramDesc main_program, startup_program;
  main_program.blocks.emplace_back();
  startup_program.blocks.emplace_back();
  BlockBuilder main(&ReferenceRegistry(), &main_program);
  BlockBuilder startup(&ReferenceRegistry(), &startup_program);
  main.AddVar(Variable("w", {2}, true));
  main.AddVar(Variable("w@GRAD", {2}, false));
  ParamGrad pair = {"w", "w@GRAD"};
  pair.need_clip = false;
  ASSERT_TRUE(AppendOptimizer(spec, {pair}, &main, &startup).ok());
  ASSERT_EQ(main_program.global().ops.size(), 1u);
  EXPECT_EQ(main_program.global().ops[0].type, "sgd");
}

TEST(Optimizer, RefusesBadArguments) {
  const auto refused = [](const OptimizerSpec& spec) {
    const auto setup = MakeSetup(spec);
    EXPECT_EQ(setup.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(setup.status().message());
  };
  OptimizerSpec spec = Specs().at("adam");
  spec.beta1 = 1;
  EXPECT_EQ(refused(spec), "'beta1' is 1; expected 0 <= beta1 < 1");
  spec = Specs().at("sgd");
  spec.learning_rate = std::nan("");
  EXPECT_EQ(refused(spec), "'learning_rate' is nan; expected 0 or more");
  spec = Specs().at("adamw");
  spec.weight_decay = {WeightDecay::Kind::kL2, 0.1};
  refused(spec);
  spec = Specs().at("adam_norm");
  spec.grad_clip.clip_norm = 0;
  EXPECT_EQ(refused(spec), "'clip_norm' is 0; expected more than 0");
  spec = Specs().at("sgd_l1_value");
  spec.grad_clip.min = 1;
  refused(spec);
}

}  // namespace test_optimizer
}  // namespace pd
