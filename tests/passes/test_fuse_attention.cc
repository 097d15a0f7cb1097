// SPDX-License-Identifier: Apache-2.0
// The pass fuse_attention: what it makes one op of, what it leaves, and that
// the op gives what the chain of ops gives, whose numbers PaddlePaddle's
// goldens prove: results, gradients, and what dropout drops; over sizes of
// several blocks, of fewer heads than threads, and of masks at odd places.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/exec/session.h"
#include "libcore/passes/amp.h"
#include "libcore/passes/pipeline.h"
#include "tests/passes/net.h"

namespace pd {
namespace test_fuse_attention {

constexpr char kFused[] = "scaled_dot_product_attention";

struct Form {
  const char* product = "matmul_v2";
  Shape query = {2, 3, 4, 6}, key = {2, 3, 5, 6}, value = {2, 3, 5, 7};
  std::optional<Shape> mask = std::nullopt;
  bool trained_mask = false;
  float before = 0, alpha = 1, behind = 0;  // scales; 0 for no op
  float dropout = -1;                       // below 0 for no op
  const char* how = "upscale_in_train";
  bool is_test = false;
};

void Product(const Form& f, const std::string& x, const std::string& y,
             bool transposed, const std::string& out, Net* net) {
  const bool old = std::string(f.product) == "matmul";
  std::map<std::string, Attribute> attrs = {
      {old ? "transpose_Y" : "trans_y", transposed}};
  if (old && transposed) attrs["alpha"] = f.alpha;
  net->Op(f.product, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}}, attrs);
}

// out = attention of the parameters q, k, v; the loss weighs its elements.
Net AttentionNet(const Form& f) {
  Net net;
  net.Var("q", f.query, true);
  net.Var("k", f.key, true);
  net.Var("v", f.value, true);
  Shape out = f.query;
  out[3] = f.value[3];
  net.Var("c", out, false);
  std::string x = "q";
  const auto unary = [&](const char* type, const std::string& to,
                         std::map<std::string, Attribute> attrs) {
    net.Op(type, {{"X", {x}}}, {{"Out", {to}}}, std::move(attrs));
    x = to;
  };
  if (f.before != 0) unary("scale", "qs", {{"scale", f.before}});
  Product(f, x, "k", true, "s", &net);
  x = "s";
  if (f.behind != 0) unary("scale", "ss", {{"scale", f.behind}});
  if (f.mask) {
    net.Var("mask", *f.mask, f.trained_mask);
    net.Op("elementwise_add", {{"X", {x}}, {"Y", {"mask"}}}, {{"Out", {"m"}}});
    x = "m";
  }
  unary("softmax", "p", {{"axis", int32_t{-1}}});
  if (f.dropout >= 0) {
    net.Op("dropout", {{"X", {x}}}, {{"Out", {"d"}}, {"Mask", {"kept"}}},
           {{"dropout_prob", f.dropout},
            {"is_test", f.is_test},
            {"dropout_implementation", std::string(f.how)}});
    x = "d";
  }
  Product(f, x, "v", false, "out", &net);
  net.Op("elementwise_mul", {{"X", {"out"}}, {"Y", {"c"}}}, {{"Out", {"w"}}});
  net.Op("reduce_sum", {{"X", {"w"}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  return net;
}

const std::vector<Form>& Forms() {
  static const std::vector<Form>* const kForms = [] {
    auto* forms = new std::vector<Form>(11);
    std::vector<Form>& f = *forms;
    f[1].before = 0.4f, f[1].mask = Shape{5};
    f[2].product = "matmul", f[2].alpha = 0.4f, f[2].behind = 1.5f;
    f[2].mask = Shape{2, 1, 1, 5};
    f[3].dropout = 0.3f, f[3].behind = 0.5f, f[3].mask = Shape{4, 5};
    f[4].dropout = 0.3f, f[4].how = "downgrade_in_infer";
    f[4].mask = Shape{1, 3, 4, 1};
    f[5].dropout = 0.3f, f[5].how = "downgrade_in_infer", f[5].is_test = true;
    f[6].dropout = 0.3f, f[6].is_test = true, f[6].product = "matmul";
    f[7].dropout = 0, f[7].mask = Shape{};
    // One head, blocks of 163 queries and less.
    f[8] = {"matmul_v2", {1, 1, 341, 9}, {1, 1, 201, 9}, {1, 1, 201, 5}};
    f[8].dropout = 0.1f, f[8].mask = Shape{341, 201}, f[8].before = 0.3f;
    f[9] = {"matmul_v2", {3, 1, 300, 4}, {3, 1, 203, 4}, {3, 1, 203, 4}};
    f[9].dropout = 0.2f, f[9].mask = Shape{3, 1, 1, 203};
    f[10] = {"matmul", {2, 4, 128, 64}, {2, 4, 128, 64}, {2, 4, 128, 64}};
    f[10].dropout = 0.1f, f[10].alpha = 0.125f;
    return forms;
  }();
  return *kForms;
}

PassOptions Off() {
  PassOptions options;
  options.disabled = {"fuse_attention"};
  return options;
}

// With the implementations of this registry.
NamedArrays Answers(const OpRegistry& registry, const Net& net,
                    const PassOptions& options) {
  Session session(&registry);
  session.set_pass_options(options);
  for (const auto& [name, value] : net.params)
    EXPECT_TRUE(session.scope().Set(name, value).ok());
  auto values = session.Run(net.program, net.feeds, net.fetches);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : NamedArrays();
}

class FuseAttention : public ::testing::TestWithParam<int> {};

TEST_P(FuseAttention, IsTheChain) {
  OpRegistry references;
  ASSERT_TRUE(RegisterAllOps(&references).ok());
  for (size_t i = 0; i < Forms().size(); ++i) {
    SCOPED_TRACE(i);
    for (const bool train : {false, true}) {
      Net net = AttentionNet(Forms()[i]);
      net.fetches = {"out"};
      if (train) net.Backward("loss");
      SetThreads(GetParam());
      const NamedArrays want = AnswersOf(net, Off());
      const NamedArrays got = AnswersOf(net, {});
      net.Run();
      const NamedArrays simple = Answers(references, net, {});
      SetThreads(0);
      ASSERT_EQ(want.size(), train ? 5u : 1u);
      ExpectNear(want, got, 2e-5);
      ExpectNear(want, simple, 2e-5);
      EXPECT_EQ(net.Types(),
                std::string(kFused) + " elementwise_mul reduce_sum" +
                    (train ? std::string(" fill_any_like reduce_sum_grad ") +
                                 "elementwise_mul_grad " + kFused + "_grad"
                           : ""));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, FuseAttention, ::testing::Values(1, 2, 4));

bool IsFused(Net net) {
  net.Run();
  return net.Types().find(kFused) != std::string::npos;
}

TEST(FuseAttentionLeaves, WhatOthersRead) {
  Form f = Forms()[3];
  f.before = 0.5f;
  for (const char* name : {"s", "ss", "m", "p", "d", "kept", "p@GRAD", "s@GRAD",
                           "m@GRAD", "d@GRAD", "ss@GRAD"}) {
    Net net = AttentionNet(f);
    net.Backward("loss");
    EXPECT_TRUE(IsFused(net));
    net.fetches.push_back(name);
    EXPECT_FALSE(IsFused(net)) << name;
  }
}

TEST(FuseAttentionLeaves, AnotherShape) {
  Form rows = Forms()[0];
  rows.query = {3, 4, 6}, rows.key = {3, 5, 6}, rows.value = {3, 5, 7};
  Net net;  // of rank 3
  net.Var("q", rows.query, true);
  net.Var("k", rows.key, true);
  net.Var("v", rows.value, true);
  Product(rows, "q", "k", true, "s", &net);
  net.Op("softmax", {{"X", {"s"}}}, {{"Out", {"p"}}});
  Product(rows, "p", "v", false, "out", &net);
  net.fetches = {"out"};
  EXPECT_FALSE(IsFused(net));

  for (const auto& [type, attr] : {std::make_pair("matmul_v2", "trans_x"),
                                   std::make_pair("softmax", "axis")}) {
    Form f;
    f.query = f.key = f.value = {2, 3, 4, 4};
    Net other = AttentionNet(f);
    other.fetches = {"out"};
    EXPECT_TRUE(IsFused(other));
    for (OpDesc& op : other.program.global().ops)
      if (op.type == type)
        op.attrs[attr] =
            op.type == "softmax" ? Attribute(int32_t{2}) : Attribute(true);
    EXPECT_FALSE(IsFused(other)) << type;
  }
}

TEST(FuseAttentionLeaves, WhatOnlyTheReferenceHas) {
  Net net = AttentionNet({});
  net.fetches = {"out"};
  EXPECT_TRUE(IsFused(net));
  OpRegistry references;
  ASSERT_TRUE(RegisterAllOps(&references).ok());
  PassContext context;
  context.registry = &references;
  context.keep = {"out"};
  Net other = net;
  ASSERT_TRUE(RunPasses(context, {}, &other.program).ok());
  EXPECT_EQ(other.Types(), net.Types());
  for (VarDesc& var : net.program.global().vars) var.dtype = DType::kFloat64;
  EXPECT_FALSE(IsFused(net));
}

TEST(FuseAttentionLeaves, OneQueryInTraining) {
  Form f;
  f.query[2] = 1;
  Net net = AttentionNet(f);
  net.fetches = {"out"};
  EXPECT_TRUE(IsFused(net));
  net.Backward("loss");
  EXPECT_FALSE(IsFused(net));
}

TEST(FuseAttentionLeaves, AMaskThatIsTrained) {
  Form f;
  f.mask = Shape{5};
  f.trained_mask = true;
  Net net = AttentionNet(f);
  net.Backward("loss");
  EXPECT_FALSE(IsFused(net));
}

// Scaled for another op too: the op begins behind the scale.
TEST(FuseAttentionLeaves, AQueryThatIsScaledForOthers) {
  Form f;
  f.before = 0.4f;
  Net net = AttentionNet(f);
  net.Backward("loss");
  net.fetches.push_back("qs");
  const NamedArrays want = AnswersOf(net, Off());
  ExpectNear(want, AnswersOf(net, {}), 1e-5);
  net.Run();
  EXPECT_EQ(net.Types().find(std::string("scale ") + kFused), 0u)
      << net.Types();
}

// Inputs of the first product that are overwritten cannot be read later; those
// of the last one may be made on the way.
TEST(FuseAttentionLeaves, WhatIsWrittenAnew) {
  for (const char* name : {"q", "k", "v"}) {
    Net net = AttentionNet({});
    net.fetches = {"out"};
    OpDesc twice;
    twice.type = "scale";
    twice.SetInput("X", {name});
    twice.SetOutput("Out", {name});
    twice.attrs["scale"] = 2.0f;
    auto& ops = net.program.global().ops;
    ops.insert(ops.begin() + 1, twice);
    ExpectNear(AnswersOf(net, Off()), AnswersOf(net, {}), 1e-5);
    EXPECT_EQ(IsFused(net), *name == 'v') << name;
  }
}

// The types of the ops that the pass makes for a GPU in mixed precision.
std::string TypesOnGpu(const Form& f, const AmpSpec& spec,
                       std::vector<std::string> fetches = {}) {
  Net net = AttentionNet(f);
  net.program.global().ops.resize(net.program.global().ops.size() - 2);
  EXPECT_TRUE(MixPrecision(Registry(), spec, &net.program).ok());
  PassContext context;
  context.registry = &Registry();
  context.on_gpu = true;
  context.keep = {"out"};
  context.keep.insert(fetches.begin(), fetches.end());
  PassOptions only;
  for (const Pass& pass : AllPasses())
    if (pass.name != std::string("fuse_attention"))
      only.disabled.insert(pass.name);
  EXPECT_TRUE(RunPasses(context, only, &net.program).ok());
  const auto& ops = net.program.global().ops;
  for (const OpDesc& op : ops) {
    if (op.type != kFused) continue;
    EXPECT_EQ(op.AttrOr("scale", 0.0f), 0.5f);
    for (const auto& [slot, names] : op.inputs)
      EXPECT_EQ(net.program.FindVar(0, names[0])->dtype, spec.dtype) << slot;
    EXPECT_EQ(net.program.FindVar(0, op.Out("output"))->dtype, spec.dtype);
  }
  return net.Types();
}

TEST(FuseAttentionOnGpu, IsOfHalvesAndTakesTheirCasts) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16})
    for (const auto level : {AmpSpec::Level::kO1, AmpSpec::Level::kO2}) {
      AmpSpec spec;
      spec.level = level;
      spec.dtype = half;
      Form f;
      f.behind = 0.5f;
      EXPECT_EQ(TypesOnGpu(f, spec), std::string("cast cast cast ") + kFused);
      f.dropout = 0.3f, f.is_test = true, f.mask = Shape{2, 1, 1, 5};
      EXPECT_EQ(TypesOnGpu(f, spec),
                std::string("cast cast cast cast ") + kFused);
      // Probabilities that are fetched or dropped out are still computed.
      EXPECT_EQ(TypesOnGpu(f, spec, {"p"}).find(kFused), std::string::npos);
      f.is_test = false;
      EXPECT_EQ(TypesOnGpu(f, spec).find(kFused), std::string::npos);
    }
}

// A mask that is added in float32 may be below what halves hold.
TEST(FuseAttentionOnGpu, LeavesSumsInFloat32) {
  AmpSpec spec;
  spec.custom_black_list = {"elementwise_add"};
  Form f;
  f.behind = 0.5f, f.mask = Shape{5};
  EXPECT_EQ(TypesOnGpu(f, spec).find(kFused), std::string::npos);
  f.mask = std::nullopt;
  EXPECT_NE(TypesOnGpu(f, spec).find(kFused), std::string::npos);
  spec.custom_black_list = {"matmul_v2"};
  EXPECT_EQ(TypesOnGpu(f, spec).find(kFused), std::string::npos);
}

// A row without a key is NaN, one whose keys are all at -1e9 is their mean.
TEST(FuseAttentionMask, OfWholeRows) {
  Form f;
  f.mask = Shape{4, 5};
  Net net = AttentionNet(f);
  net.fetches = {"out"};
  net.Backward("loss");
  std::vector<float> mask(20);
  for (int i = 0; i < 5; ++i) mask[static_cast<size_t>(5 + i)] = -1e9f;
  net.feeds["mask"] = MakeArray<float>({4, 5}, mask);
  ExpectNear(AnswersOf(net, Off()), AnswersOf(net, {}), 1e-5);
  for (int i = 0; i < 5; ++i)
    mask[static_cast<size_t>(5 + i)] = -std::numeric_limits<float>::infinity();
  net.feeds["mask"] = MakeArray<float>({4, 5}, mask);
  const NamedArrays out = AnswersOf(net, {});
  for (int64_t i = 0; i < 2 * 3 * 4 * 7; ++i)
    EXPECT_EQ(std::isnan(out.at("out").data<float>()[i]), i / 7 % 4 == 1) << i;
}

TEST(Attention, SavesLogSumExp) {
  OpRegistry references;
  ASSERT_TRUE(RegisterAllOps(&references).ok());
  Form f;
  f.mask = Shape{4, 5};
  Net net = AttentionNet(f);
  net.fetches = {"m"};
  const NamedArrays scores = AnswersOf(net, Off());
  Net fused;
  fused.Var("q", f.query, true);
  fused.Var("k", f.key, true);
  fused.Var("v", f.value, true);
  fused.Var("mask", *f.mask, false);
  fused.Op(
      kFused,
      {{"query", {"q"}}, {"key", {"k"}}, {"value", {"v"}}, {"bias", {"mask"}}},
      {{"output", {"out"}}, {"logsumexp", {"lse"}}});
  fused.fetches = {"lse"};
  for (const OpRegistry* registry :
       std::initializer_list<const OpRegistry*>{&references, &Registry()}) {
    const NamedArrays got = Answers(*registry, fused, {});
    ASSERT_EQ(got.at("lse").shape, (Shape{2, 3, 4}));
    for (int64_t r = 0; r < 24; ++r) {
      double sum = 0;
      for (int64_t j = 0; j < 5; ++j)
        sum += std::exp(double{scores.at("m").data<float>()[5 * r + j]});
      EXPECT_NEAR(got.at("lse").data<float>()[r], std::log(sum), 1e-5) << r;
    }
  }
}

}  // namespace test_fuse_attention
}  // namespace pd
