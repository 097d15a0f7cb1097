// SPDX-License-Identifier: Apache-2.0
// Parameters that others are made of (weight_norm, spectral_norm), first values
// for all of them, and those that two uses of a block share. (Results and
// gradients are in testdata/layers.)
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_parameters {

// A model of `lines` over x; `more` stands in front of its input.
absl::StatusOr<BuiltModel> Build(const std::string& shape,
                                 const std::string& lines,
                                 const std::string& more = "") {
  const auto job = ParseJob(
      absl::StrCat("model { ", more, " input { name: \"x\" shape: ", shape,
                   " } ", lines, " }"),
      "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

std::string ErrorOf(const std::string& lines) {
  const auto built = Build("[-1, 3]", lines);
  return built.ok() ? "no error" : std::string(built.status().message());
}

std::string NamesOf(const BuiltModel& built) {
  std::vector<std::string> names;
  for (const ParameterSettings& p : built.parameters) names.push_back(p.name);
  return absl::StrJoin(names, " ");
}

std::vector<float> ValuesOf(Session* session, const std::string& name) {
  const auto value = session->scope().Get(name);
  EXPECT_TRUE(value.ok()) << name << ": " << value.status();
  if (!value.ok()) return {};
  const float* data = value->data<float>();
  return std::vector<float>(data, data + NumElements(value->shape));
}

double LengthOf(const std::vector<float>& v, size_t begin, size_t end,
                size_t step = 1) {
  double sum = 0;
  for (size_t i = begin; i < end; i += step)
    sum += static_cast<double>(v[i]) * v[i];
  return std::sqrt(sum);
}

void Start(const BuiltModel& built, Session* session) {
  const absl::Status status = session->RunOnce(built.startup);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(WeightNorm, StartsAsTheWeightWould) {
  const auto built = Build("[-1, 3]", R"(
    layer { name: "a" linear { out_features: 4 weight_attr {
      learning_rate: 0.5 weight_norm { dim: 1 } } } }
    layer { name: "b" linear { out_features: 2 weight_attr {
      initializer { constant { value: 3 } } weight_norm { dim: -1 } } } }
    layer { linear { out_features: 1 weight_attr { weight_norm {} } } }
    layer { linear { out_features: 1 bias: false
      weight_attr { name: "w" weight_norm {} } } })");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(NamesOf(*built),
            "a.weight_v a.weight_g a.bias b.weight_v b.weight_g b.bias "
            "linear_0.w_0_v linear_0.w_0_g linear_0.b_0 w_v w_g");
  EXPECT_EQ(built->parameters[0].learning_rate, 0.5);
  EXPECT_EQ(built->parameters[1].learning_rate, 0.5);
  Session session(&ReferenceRegistry(), 3);
  Start(*built, &session);
  const auto v = ValuesOf(&session, "a.weight_v");
  const auto g = ValuesOf(&session, "a.weight_g");
  ASSERT_EQ(g.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(g[i], LengthOf(v, i, v.size(), 4), 1e-6);
  EXPECT_NE(v[0], v[1]);
  EXPECT_EQ(ValuesOf(&session, "b.weight_v"), std::vector<float>(8, 3));
  EXPECT_FLOAT_EQ(ValuesOf(&session, "b.weight_g")[0], 3 * std::sqrt(8.0f));
}

// The weight is g * v / |v|: by hand for v = (3, 4), g = 10.
TEST(WeightNorm, FollowsItsParts) {
  const auto built = Build("[-1, 2]",
                           "layer { name: \"l\" linear { out_features: 1 bias: "
                           "false weight_attr { weight_norm { dim: 1 } } } }");
  ASSERT_TRUE(built.ok()) << built.status();
  Session session(&ReferenceRegistry(), 3);
  ASSERT_TRUE(session.scope()
                  .Set("l.weight_v", MakeArray<float>({2, 1}, {3.0f, 4.0f}))
                  .ok());
  ASSERT_TRUE(
      session.scope().Set("l.weight_g", MakeArray<float>({1}, {10.0f})).ok());
  const auto y = session.Run(built->test,
                             {{"x", MakeArray<float>({1, 2}, {1.0f, 100.0f})}},
                             built->outputs);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_FLOAT_EQ(y->begin()->second.data<float>()[0], 806);
}

TEST(WeightNorm, GoesWithRecurrentLayersAndSharedNames) {
  const auto built = Build("[-1, 5, 3]", R"(
    layer { name: "r" lstm { hidden_size: 3 weight_ih_attr { weight_norm {} } } }
    layer { linear { out_features: 3 bias: false
      weight_attr { name: "w" weight_norm {} } } }
    layer { linear { out_features: 3 bias: false
      weight_attr { name: "w" weight_norm {} } } })");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(NamesOf(*built).find("w_v w_g"), NamesOf(*built).rfind("w_v w_g"));
  Session session(&ReferenceRegistry(), 3);
  Start(*built, &session);
  EXPECT_EQ(ValuesOf(&session, "r.weight_ih_l0_g").size(), 12u);
  const auto y = session.Run(
      built->main,
      {{"x", MakeArray<float>({2, 5, 3}, std::vector<float>(30, 1))}},
      built->outputs);
  EXPECT_TRUE(y.ok()) << y.status();
}

constexpr char kSpectral[] =
    "layer { name: \"l\" linear { out_features: 2 bias: false weight_attr { "
    "spectral_norm {} } } }";

// W = [[1, 2], [3, 4], [5, 6]]: W^T W = [[35, 44], [44, 56]], whose largest
// eigenvalue is (91 + sqrt(91^2 - 96)) / 2.
TEST(SpectralNorm, TrainingFindsTheLargestSingularValue) {
  const auto built = Build("[-1, 3]", kSpectral);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(NamesOf(*built), "l.weight_orig");
  Session session(&ReferenceRegistry(), 3);
  Start(*built, &session);
  EXPECT_NEAR(LengthOf(ValuesOf(&session, "l.weight_u"), 0, 2), 1, 1e-6);
  EXPECT_NEAR(LengthOf(ValuesOf(&session, "l.weight_v"), 0, 3), 1, 1e-6);
  ASSERT_TRUE(
      session.scope()
          .Set("l.weight_orig", MakeArray<float>({3, 2}, {1, 2, 3, 4, 5, 6}))
          .ok());
  const NamedArrays feeds = {
      {"x", MakeArray<float>({1, 3}, {1.0f, 0.0f, 0.0f})}};
  const auto step = [&](const ProgramDesc& program,
                        const std::vector<std::string>& fetches) {
    const auto y = session.Run(program, feeds, fetches);
    EXPECT_TRUE(y.ok()) << y.status();
    return y.ok() ? y->begin()->second.data<float>()[1] : NAN;
  };
  const auto before = ValuesOf(&session, "l.weight_u");
  step(built->test, built->outputs);
  EXPECT_EQ(ValuesOf(&session, "l.weight_u"), before);
  for (int i = 0; i < 20; ++i) step(built->main, built->outputs);
  const double largest = std::sqrt((91 + std::sqrt(91.0 * 91 - 96)) / 2);
  EXPECT_NEAR(step(built->main, built->outputs), 2 / largest, 1e-6);
  EXPECT_NEAR(step(built->test, built->outputs), 2 / largest, 1e-6);
  EXPECT_NE(ValuesOf(&session, "l.weight_u"), before);
}

TEST(Reparameterized, ExplainsItself) {
  const auto linear = [](const std::string& attr) {
    return ErrorOf(
        absl::StrCat("layer { name: \"l\" linear { out_features: 2 "
                     "weight_attr { ",
                     attr, " } } }"));
  };
  EXPECT_EQ(linear("weight_norm { dim: 2 }"),
            "job.pbtxt:1:45: 'dim' of weight_norm is 2; 'l.weight' has 2 axes");
  EXPECT_EQ(
      linear("weight_norm { dim: -3 }"),
      "job.pbtxt:1:45: 'dim' of weight_norm is -3; 'l.weight' has 2 axes");
  EXPECT_EQ(
      linear("spectral_norm { dim: 2 }"),
      "job.pbtxt:1:45: 'dim' of spectral_norm is 2; 'l.weight' has 2 axes");
  EXPECT_EQ(linear("weight_norm {} spectral_norm {}"),
            "job.pbtxt:1:45: 'weight_norm' and 'spectral_norm' are both given");
  EXPECT_EQ(ErrorOf("layer { cast { dtype: int64 } } layer { embedding { "
                    "num_embeddings: 4 embedding_dim: 2 sparse: true "
                    "weight_attr { weight_norm {} } } }"),
            "job.pbtxt:1:77: 'sparse' does not go with weight_norm and "
            "spectral_norm, which change all rows in each step");
  const std::string rounds = linear("spectral_norm { n_power_iterations: 0 }");
  EXPECT_NE(rounds.find("'n_power_iterations' is 0"), std::string::npos)
      << rounds;
}

// Which values real PaddlePaddle 2.6.2 gives after
// set_global_initializer(Constant(3), Constant(4)).
TEST(GlobalInitializer, GoesBeforeTheLayersOwnOnly) {
  const auto built = Build("[-1, 2, 4]", R"(
    layer { name: "r" gru { hidden_size: 4 } }
    layer { name: "n" layer_norm {} }
    layer { name: "p" prelu {} }
    layer { name: "b" batch_norm1d { data_format: NLC } }
    layer { name: "l" linear { out_features: 2 weight_attr {
      initializer { constant { value: 9 } } } } }
    layer { name: "m" linear { out_features: 2 } })",
                           R"(
    initializer { weight_init { constant { value: 3 } }
                  bias_init { constant { value: 4 } } }
    parameter_group { match: "m.bias" initializer { constant { value: 7 } } })");
  ASSERT_TRUE(built.ok()) << built.status();
  Session session(&ReferenceRegistry(), 3);
  Start(*built, &session);
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, float>>{{"r.weight_ih_l0", 3},
                                                  {"r.weight_hh_l0", 3},
                                                  {"r.bias_ih_l0", 4},
                                                  {"r.bias_hh_l0", 4},
                                                  {"n.weight", 3},
                                                  {"n.bias", 4},
                                                  {"p._weight", 3},
                                                  {"b.weight", 3},
                                                  {"b.bias", 4},
                                                  {"b._mean", 0},
                                                  {"b._variance", 1},
                                                  {"l.weight", 9},
                                                  {"l.bias", 4},
                                                  {"m.weight", 3},
                                                  {"m.bias", 7}})
    for (const float v : ValuesOf(&session, name)) EXPECT_EQ(v, value) << name;
  const auto one =
      Build("[-1, 2]",
            "layer { name: \"l\" linear { out_features: "
            "2 } }",
            "initializer { weight_init { constant { value: 3 } } }");
  ASSERT_TRUE(one.ok()) << one.status();
  Session other(&ReferenceRegistry(), 3);
  Start(*one, &other);
  EXPECT_EQ(ValuesOf(&other, "l.bias"), std::vector<float>(2, 0));
}

// Layers with names and without, parameters and running statistics.
const char kTower[] = R"(
  block { name: "tower"
    layer { name: "fc" linear { out_features: 3 } }
    layer { batch_norm1d {} }
    layer { relu {} }
    layer { linear { out_features: 3 } } }
  block { name: "other" layer { name: "fc" linear { out_features: 3 } } }
)";

std::string PaddleNamesOf(const BuiltModel& built) {
  std::vector<std::string> names;
  for (const auto& [name, paddle] : built.paddle_names)
    names.push_back(absl::StrCat(name, "=", paddle));
  return absl::StrJoin(names, " ");
}

TEST(Parameters, TwoUsesOfABlockShareThem) {
  const std::string left = R"(
    layer { name: "left" input: "x" block { use: "tower" } })";
  const auto one = Build("[-1, 3]", kTower + left);
  ASSERT_TRUE(one.ok()) << one.status();
  const auto two = Build("[-1, 3]", kTower + left + R"(
    layer { name: "right" input: "x" block { use: "tower" weights_of: "left" } }
    layer { input: "left" block { use: "tower" weights_of: "right" } }
    layer { name: "rows" input: "left"
            block { use: "tower" weights_of: "left" repeat: 2 } }
    layer { name: "own" input: "x" linear { out_features: 1 } }
    output: ["left", "right", "own"])");
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(NamesOf(*two), NamesOf(*one) + " own.weight own.bias");
  EXPECT_EQ(PaddleNamesOf(*two), PaddleNamesOf(*one) +
                                     " own.weight=linear_2.w_0 "
                                     "own.bias=linear_2.b_0");
  EXPECT_EQ(two->layers[4].name, "right/fc");
  EXPECT_EQ(absl::StrJoin(two->layers[4].parameters, " "),
            "left.fc.weight left.fc.bias");
  Session session(&ReferenceRegistry());
  Start(*two, &session);
  const NamedArrays feeds = {
      {"x", MakeArray({2, 3}, std::vector<float>{1, -2, 3, 0.5f, 4, -1})}};
  const auto results =
      session.Run(two->test, feeds, {two->outputs[0], two->outputs[1]});
  ASSERT_TRUE(results.ok()) << results.status();
  const Array& a = results->at(two->outputs[0]);
  const Array& b = results->at(two->outputs[1]);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(a.data<float>()[i], b.data<float>()[i]) << i;
}

TEST(Parameters, BlocksInsideOfSharedOnesShareTheirs) {
  const std::string outer = std::string(kTower) + R"(
    block { name: "outer"
      layer { name: "inner" block { use: "tower" } }
      layer { name: "again" block { use: "tower" weights_of: "inner" } } }
    layer { name: "a" input: "x" block { use: "outer" repeat: 2 } })";
  const auto one = Build("[-1, 3]", outer);
  ASSERT_TRUE(one.ok()) << one.status();
  const auto two = Build("[-1, 3]", outer + R"(
    layer { name: "b" input: "x"
            block { use: "outer" weights_of: "a" repeat: 2 } })");
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(NamesOf(*two), NamesOf(*one));
  EXPECT_EQ(PaddleNamesOf(*two), PaddleNamesOf(*one));
  EXPECT_EQ(absl::StrJoin(two->layers.back().parameters, " "),
            absl::StrJoin(one->layers.back().parameters, " "));
}

TEST(Parameters, ExplainsWeightsThatAreNotLent) {
  const auto error = [](const std::string& use) {
    return ErrorOf(std::string(kTower) + R"(
    layer { name: "left" input: "x" block { use: "tower" } }
    layer { name: "right" input: "x" block { )" +
                   use + " } }");
  };
  EXPECT_EQ(error("use: \"tower\" weights_of: \"lefft\""),
            "job.pbtxt:10:5: layer 'right' is to have the weights of 'lefft'; "
            "no layer of this name uses a block before it");
  EXPECT_EQ(error("use: \"other\" weights_of: \"left\""),
            "job.pbtxt:10:5: layer 'right' uses block 'other'; 'left', whose "
            "weights it is to have, uses 'tower'");
  EXPECT_EQ(ErrorOf(std::string(kTower) + R"(
    layer { name: "left" input: "x" block { use: "tower" repeat: 2 } }
    layer { name: "right" input: "x"
            block { use: "tower" repeat: 3 weights_of: "left" } })"),
            "job.pbtxt:10:5: layer 'right' repeats its block 3 times; 'left', "
            "whose weights it is to have, does so 2 times");
  EXPECT_EQ(ErrorOf(R"(
    block { name: "b" argument { name: "n" sets: "more.linear.out_features"
                           zero_leaves_out: "more" }
      layer { name: "fc" linear { out_features: 3 } }
      layer { name: "more" linear { out_features: 3 } } }
    layer { name: "left" input: "x" block { use: "b" set: "n=0" } }
    layer { name: "right" input: "x" block { use: "b" weights_of: "left" } })"),
            "job.pbtxt:7:5: the block that lends its weights has no "
            "'left.more.weight'; both uses need the same arguments");
}

}  // namespace test_parameters
}  // namespace pd
