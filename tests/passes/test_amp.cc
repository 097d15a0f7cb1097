// SPDX-License-Identifier: Apache-2.0
// Mixed precision as a rewrite: the ops, names and dtypes of
// paddle.static.amp.decorate, over networks, levels, types and custom lists;
// the ops of a whole training step; the loss scale over steps with infinities;
// wrong lists; and that what is used again after a write is cast again.
#include "libcore/passes/amp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "formats/pdmodel.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/half.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/optim/loss_scaling.h"
#include "libcore/optim/optimizer.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_amp {

using Json = nlohmann::json;

std::string File(const std::string& name) {
  return absl::StrCat(PD_TESTDATA, "/amp/", name);
}

std::string TextOf(const std::string& name) {
  std::ifstream file(File(name));
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ProgramDesc Load(const std::string& network) {
  auto program = ReadProgram(File(network + ".pdmodel"));
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

// As the script writes it.
std::string Described(const ProgramDesc& program) {
  const BlockDesc& block = program.global();
  std::map<std::string, std::string> names;
  std::string text;
  const auto slots_of = [&](SlotList slots) {
    std::sort(slots.begin(), slots.end());
    std::vector<std::string> parts;
    for (const auto& [slot, list] : slots) {
      std::vector<std::string> renamed;
      for (const std::string& name : list)
        renamed.push_back(names.count(name) > 0 ? names[name] : name);
      if (!list.empty())
        parts.push_back(absl::StrCat(slot, "=", absl::StrJoin(renamed, ",")));
    }
    return absl::StrJoin(parts, " ");
  };
  for (const OpDesc& op : block.ops) {
    if (op.type == "cast" && block.FindVar(op.In("X"))->persistable) {
      names[op.Out("Out")] = op.In("X");
      continue;
    }
    absl::StrAppend(&text, op.type, " ", slots_of(op.inputs), " -> ",
                    slots_of(op.outputs));
    SlotList outputs = op.outputs;
    std::sort(outputs.begin(), outputs.end());
    for (const auto& [slot, list] : outputs)
      for (const std::string& name : list)
        if (slot != "XShape" && !block.FindVar(name)->persistable)
          absl::StrAppend(&text, " ", Name(block.FindVar(name)->dtype));
    text += "\n";
  }
  return text;
}

const std::map<std::string, AmpSpec>& Settings() {
  using Level = AmpSpec::Level;
  static const auto* const kSettings = new std::map<std::string, AmpSpec>{
      {"O1-float16", {Level::kO1, DType::kFloat16, {}, {}, {}}},
      {"O1-bfloat16", {Level::kO1, DType::kBFloat16, {}, {}, {}}},
      {"O2-float16", {Level::kO2, DType::kFloat16, {}, {}, {}}},
      {"O1-custom",
       {Level::kO1,
        DType::kFloat16,
        {"gelu", "softmax", "tanh"},
        {"elementwise_add", "pool2d"},
        {}}},
      {"O2-custom",
       {Level::kO2,
        DType::kBFloat16,
        {"softmax"},
        {"relu", "layer_norm", "matmul_v2"},
        {}}}};
  return *kSettings;
}

class Rewrite
    : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Rewrite, IsPaddlePaddles) {
  const auto& [network, setting] = GetParam();
  const AmpSpec& spec = Settings().at(setting);
  ProgramDesc program = Load(network);
  const std::string loss = program.global().ops.back().Out("Out");
  const absl::Status status = MixPrecision(Registry(), spec, &program);
  ASSERT_TRUE(status.ok()) << status;
  // PaddlePaddle casts a half loss behind the rewrite.
  std::string want = TextOf(absl::StrCat(network, "-", setting, ".txt"));
  const std::string cast = absl::StrCat("cast X=", loss, " ");
  if (const size_t at = want.find(cast); at != std::string::npos)
    want.resize(at);
  EXPECT_EQ(Described(program), want);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, Rewrite,
    ::testing::Combine(
        ::testing::Values("mlp", "lenet", "transformer", "residual"),
        ::testing::Values("O1-float16", "O1-bfloat16", "O2-float16",
                          "O1-custom", "O2-custom")),
    [](const auto& info) {
      std::string name =
          absl::StrCat(std::get<0>(info.param), "_", std::get<1>(info.param));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// A training step, built as libcore/train builds it.
struct Training {
  ProgramDesc main, startup;
  LossScalingVars scaling;
  std::string loss;
};

absl::StatusOr<Training> Train(const ProgramDesc& forward, const AmpSpec& spec,
                               const LossScalingSpec& scaling,
                               OptimizerSpec optimizer) {
  Training t;
  t.main = forward;
  t.startup.blocks.resize(1);
  t.startup.version = forward.version;
  t.loss = forward.global().ops.back().Out("Out");
  PD_RETURN_IF_ERROR(MixPrecision(Registry(), spec, &t.main));
  std::string target = t.loss;
  {
    BlockBuilder main(&Registry(), &t.main), startup(&Registry(), &t.startup);
    PD_ASSIGN_OR_RETURN(t.scaling,
                        ScaleLoss(scaling, &main, &startup, &target));
  }
  BackwardOptions backward;
  backward.targets[target] = "";
  PD_ASSIGN_OR_RETURN(auto gradients,
                      AppendBackward(Registry(), backward, &t.main));
  std::vector<ParamGrad> pairs;
  for (const VarDesc& var : forward.global().vars)
    if (gradients.count(var.name) > 0)
      pairs.push_back({var.name, gradients[var.name]});
  BlockBuilder main(&Registry(), &t.main), startup(&Registry(), &t.startup);
  PD_ASSIGN_OR_RETURN(optimizer.skip_update,
                      UnscaleGradients(scaling, t.scaling, pairs, &main));
  PD_RETURN_IF_ERROR(
      AppendOptimizer(optimizer, pairs, &main, &startup).status());
  return t;
}

class WholeStep : public ::testing::TestWithParam<std::string> {};

TEST_P(WholeStep, HasPaddlePaddlesOps) {
  OptimizerSpec adamw;
  adamw.kind = OptimizerSpec::Kind::kAdamW;
  const auto training = Train(Load(GetParam()), Settings().at("O1-float16"),
                              LossScalingSpec(), adamw);
  ASSERT_TRUE(training.ok()) << training.status();
  // PaddlePaddle fills the first gradient by another op, and moves the casts of
  // parameters' gradients behind the last of them.
  std::vector<std::string> types, casts;
  for (const OpDesc& op : training->main.global().ops) {
    const bool backward = op.AttrOr<int32_t>(kOpRoleAttr, 0) == kRoleBackward;
    const VarDesc* param = training->main.global().FindVar(
        absl::StripSuffix(op.Out("Out"), kGradSuffix));
    if (op.type == "check_finite_and_unscale")
      types.insert(types.end(), casts.begin(), casts.end());
    if (op.type == "cast" && backward && param != nullptr && param->persistable)
      casts.push_back(op.type);
    else
      types.push_back(op.type == "fill_any_like" ? "fill_constant" : op.type);
  }
  const Json want = Json::parse(TextOf("train_types.json"));
  EXPECT_EQ(types, want.at(GetParam()).get<std::vector<std::string>>());
}

INSTANTIATE_TEST_SUITE_P(Networks, WholeStep,
                         ::testing::Values("mlp", "lenet", "transformer",
                                           "residual"));

Array Numbers(const Shape& shape, const std::vector<float>& values) {
  return MakeArray<float>(shape, values);
}

// The same linear regression, in a program of our own.
ProgramDesc LinearRegression() {
  ProgramDesc program;
  program.blocks.resize(1);
  program.version = 2006000;
  const auto add = [&](const char* name, Shape shape, bool param) {
    VarDesc var;
    var.name = name;
    var.shape = std::move(shape);
    var.persistable = var.is_parameter = param;
    var.stop_gradient = !param;
    program.global().vars.push_back(std::move(var));
  };
  add("x", {4, 3}, false);
  add("y", {4, 2}, false);
  add("w", {3, 2}, true);
  add("b", {2}, true);
  BlockBuilder builder(&Registry(), &program);
  const auto op = [&](const char* type, SlotList inputs, const char* out,
                      std::map<std::string, Attribute> attrs) {
    OpDesc desc;
    desc.type = type;
    desc.inputs = std::move(inputs);
    desc.SetOutput("Out", {out});
    desc.attrs = std::move(attrs);
    const absl::Status status = builder.Append(std::move(desc));
    EXPECT_TRUE(status.ok()) << status;
  };
  op("mul", {{"X", {"x"}}, {"Y", {"w"}}}, "xw", {});
  op("elementwise_add", {{"X", {"xw"}}, {"Y", {"b"}}}, "z",
     {{"axis", int32_t{1}}});
  op("elementwise_sub", {{"X", {"z"}}, {"Y", {"y"}}}, "d",
     {{"axis", int32_t{-1}}});
  op("square", {{"X", {"d"}}}, "s", {});
  op("reduce_mean", {{"X", {"s"}}}, "loss", {{"reduce_all", true}});
  return program;
}

TEST(LossScaling, FollowsPaddlePaddleOverInfinities) {
  AmpSpec all_full;
  all_full.custom_black_list = {"mul", "elementwise_add", "elementwise_sub",
                                "square", "reduce_mean"};
  OptimizerSpec adam;
  adam.kind = OptimizerSpec::Kind::kAdam;
  adam.learning_rate = 0.125;
  LossScalingSpec scaling;
  scaling.init_loss_scaling = 1024;
  scaling.incr_every_n_steps = 3;
  const auto t = Train(LinearRegression(), all_full, scaling, adam);
  ASSERT_TRUE(t.ok()) << t.status();
  Session session(&Registry());
  ASSERT_TRUE(session.RunOnce(t->startup).ok());
  ASSERT_TRUE(
      session.scope()
          .Set("w", Numbers({3, 2}, {0, .125f, .25f, .375f, .5f, .625f}))
          .ok());
  ASSERT_TRUE(session.scope().Set("b", Numbers({2}, {0, 0})).ok());
  const Json steps = Json::parse(TextOf("loss_scaling.json"));
  int bad_steps = 0;
  for (const Json& step : steps) {
    std::vector<float> x;
    for (const Json& v : step.at("x"))
      x.push_back(!v.is_null() ? v.get<float>()
                  : step.at("infinite").get<bool>()
                      ? std::numeric_limits<float>::infinity()
                      : std::numeric_limits<float>::quiet_NaN());
    bad_steps += std::count_if(x.begin(), x.end(),
                               [](float v) { return !std::isfinite(v); });
    const auto got = session.Run(
        t->main,
        {{"x", Numbers({4, 3}, x)},
         {"y", Numbers({4, 2}, step.at("y").get<std::vector<float>>())}},
        {"w", t->scaling.scale, t->scaling.good_steps, t->scaling.bad_steps});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->at(t->scaling.scale).data<float>()[0],
              step.at("scale").get<float>());
    EXPECT_EQ(got->at(t->scaling.good_steps).data<int32_t>()[0],
              step.at("good").get<int>());
    EXPECT_EQ(got->at(t->scaling.bad_steps).data<int32_t>()[0],
              step.at("bad").get<int>());
    const auto w = step.at("w").get<std::vector<float>>();
    for (size_t i = 0; i < w.size(); ++i)
      EXPECT_NEAR(got->at("w").data<float>()[i], w[i], 2e-6);
  }
  EXPECT_EQ(bad_steps, 6);
}

TEST(Lists, SayWhatIsWrong) {
  AmpSpec spec;
  spec.custom_white_list = {"relu"};
  spec.custom_black_list = {"relu"};
  EXPECT_EQ(ListsFor(spec, Registry()).status().message(),
            "custom_white_list and custom_black_list both name the op 'relu'");
  spec.custom_black_list = {"softmx"};
  EXPECT_EQ(ListsFor(spec, Registry()).status().message(),
            "custom_black_list names the op 'softmx', which does not exist, "
            "did you mean 'softmax'?");
  spec.custom_black_list.clear();
  spec.custom_white_list = {"fake_quantize_dequantize_abs_max"};
  EXPECT_EQ(ListsFor(spec, Registry()).status().message(),
            "custom_white_list names the op "
            "'fake_quantize_dequantize_abs_max', whose ranges are found in "
            "float32");
}

TEST(Lists, CustomOnesMoveOps) {
  AmpSpec spec;
  spec.custom_white_list = {"softmax"};
  spec.custom_black_list = {"conv2d", "relu"};
  const auto lists = ListsFor(spec, Registry());
  ASSERT_TRUE(lists.ok());
  EXPECT_EQ(lists->white.count("softmax"), 1u);
  EXPECT_EQ(lists->black.count("softmax"), 0u);
  EXPECT_EQ(lists->white.count("conv2d"), 0u);
  EXPECT_EQ(lists->black.count("conv2d"), 1u);
  EXPECT_EQ(lists->gray.count("relu"), 0u);
}

TEST(Rewrite, BlackVariablesStayFloat32) {
  ProgramDesc program = Load("mlp");
  AmpSpec spec;
  spec.custom_black_varnames = {"linear_0.w_0"};
  ASSERT_TRUE(MixPrecision(Registry(), spec, &program).ok());
  for (const OpDesc& op : program.global().ops) {
    if (op.type == "matmul_v2") {
      EXPECT_EQ(absl::StrContains(op.In("Y"), ".cast_fp16"),
                !absl::StartsWith(op.In("Y"), "linear_0.w_0"))
          << op.In("Y");
    }
  }
}

// x is cast for the first product, written anew, and cast for the second.
TEST(Rewrite, CastsAgainWhatWasWritten) {
  ProgramDesc program;
  program.blocks.resize(1);
  for (const char* name : {"x", "w", "a", "b"}) {
    VarDesc var;
    var.name = name;
    var.shape = {2, 2};
    program.global().vars.push_back(std::move(var));
  }
  const auto product = [&](const char* out) {
    OpDesc op;
    op.type = "matmul_v2";
    op.SetInput("X", {"x"});
    op.SetInput("Y", {"w"});
    op.SetOutput("Out", {out});
    program.global().ops.push_back(std::move(op));
  };
  product("a");
  OpDesc write;
  write.type = "exp";
  write.SetInput("X", {"x"});
  write.SetOutput("Out", {"x"});
  program.global().ops.push_back(std::move(write));
  product("b");
  AmpSpec spec;
  spec.dtype = DType::kBFloat16;
  ASSERT_TRUE(MixPrecision(Registry(), spec, &program).ok());
  std::vector<std::string> types;
  for (const OpDesc& op : program.global().ops) types.push_back(op.type);
  EXPECT_EQ(types, (std::vector<std::string>{"cast", "cast", "matmul_v2", "exp",
                                             "cast", "matmul_v2"}));
  Session session(&Registry());
  const auto got = session.Run(program,
                               {{"x", Numbers({2, 2}, {0, 1, 0, 0})},
                                {"w", Numbers({2, 2}, {1, 0, 0, 1})}},
                               {"a", "b"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->at("a").dtype, DType::kBFloat16);
  EXPECT_EQ(static_cast<float>(got->at("a").data<BFloat16>()[1]), 1.0f);
  // e is 2.71828; the nearest bfloat16 is 2.71875.
  EXPECT_EQ(static_cast<float>(got->at("b").data<BFloat16>()[1]), 2.71875f);
}

// Integers become floats as the program says; only what mixed precision has
// rounded is made once.
TEST(Rewrite, LeavesCastsOfOtherParameters) {
  ProgramDesc program;
  program.blocks.resize(1);
  const auto var = [&](const char* name, DType dtype, bool persistable) {
    VarDesc v;
    v.name = name;
    v.shape = {2, 2};
    v.dtype = dtype;
    v.persistable = persistable;
    program.global().vars.push_back(std::move(v));
  };
  var("x", DType::kFloat32, false);
  var("w", DType::kInt16, true);
  var("v", DType::kFloat32, true);
  for (const char* name : {"f", "a", "out"}) var(name, DType::kFloat32, false);
  program.global().ops.push_back(
      CastOp("w", DType::kInt16, "f", DType::kFloat32));
  for (const auto& [x, y, out] :
       {std::array{"x", "f", "a"}, std::array{"a", "v", "out"}}) {
    OpDesc op;
    op.type = "matmul_v2";
    op.SetInput("X", {x});
    op.SetInput("Y", {y});
    op.SetOutput("Out", {out});
    program.global().ops.push_back(std::move(op));
  }
  Session session(&Registry());
  AmpSpec spec;
  spec.dtype = DType::kBFloat16;
  session.set_mixed_precision(spec);
  ASSERT_TRUE(
      session.scope().Set("w", MakeArray<int16_t>({2, 2}, {1, 2, 3, 4})).ok());
  ASSERT_TRUE(session.scope().Set("v", Numbers({2, 2}, {1, 0, 0, 1})).ok());
  const auto got =
      session.Run(program, {{"x", Numbers({2, 2}, {1, 0, 0, 1})}}, {"out"});
  ASSERT_TRUE(got.ok()) << got.status();
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(got->at("out").data<float>()[i], static_cast<float>(i + 1));
}

// Ranges and roundings to integers are those of float32.
TEST(Rewrite, RangesStayFloat32) {
  for (const auto level : {AmpSpec::Level::kO1, AmpSpec::Level::kO2}) {
    ProgramDesc program;
    program.blocks.resize(1);
    for (const char* name : {"x", "w", "q", "scale", "out"}) {
      VarDesc var;
      var.name = name;
      var.shape = {2, 2};
      program.global().vars.push_back(std::move(var));
    }
    OpDesc round;
    round.type = "fake_quantize_dequantize_abs_max";
    round.SetInput("X", {"x"});
    round.SetOutput("Out", {"q"});
    round.SetOutput("OutScale", {"scale"});
    program.global().ops.push_back(std::move(round));
    OpDesc product;
    product.type = "matmul_v2";
    product.SetInput("X", {"q"});
    product.SetInput("Y", {"w"});
    product.SetOutput("Out", {"out"});
    program.global().ops.push_back(std::move(product));
    AmpSpec spec;
    spec.level = level;
    spec.dtype = DType::kBFloat16;
    ASSERT_TRUE(MixPrecision(Registry(), spec, &program).ok());
    const std::vector<OpDesc>& ops = program.global().ops;
    ASSERT_EQ(ops.size(), 4u);
    EXPECT_EQ(ops[0].In("X"), "x");
    EXPECT_EQ(ops[3].In("X"), "q.cast_bf16");
    EXPECT_EQ(program.global().FindVar("q")->dtype, DType::kFloat32);
  }
}

}  // namespace test_amp
}  // namespace pd
