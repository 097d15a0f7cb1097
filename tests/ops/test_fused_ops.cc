// SPDX-License-Identifier: Apache-2.0
// Ops that PaddlePaddle's passes make for devices that it has no CPU kernel
// for: against the ops that they stand for.
#include <gtest/gtest.h>

#include <cmath>

#include "libcore/base/rng.h"
#include "libcore/exec/session.h"
#include "libcore/ops/registry.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace test_fused_ops {

using Slots = std::vector<std::pair<std::string, std::string>>;

class FusedOps : public ::testing::Test {
 protected:
  FusedOps() : session_(&registry_) {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    program_.blocks.emplace_back();
  }

  void Feed(const std::string& name, Array value) {
    VarDesc var;
    var.name = name;
    var.dtype = value.dtype;
    var.shape = value.shape;
    BlockBuilder(&registry_, &program_).AddVar(var);
    feed_[name] = std::move(value);
  }
  void Random(const std::string& name, const Shape& shape) {
    RandomStream random(5, StreamOf(name));
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& v : values) v = 2 * random.Uniform() - 1;
    Feed(name, MakeArray(shape, values));
  }
  void Add(const std::string& type, const Slots& inputs, const Slots& outputs,
           std::map<std::string, Attribute> attrs = {}) {
    OpDesc op;
    op.type = type;
    op.attrs = std::move(attrs);
    for (const auto& [slot, name] : inputs) op.SetInput(slot, {name});
    for (const auto& [slot, name] : outputs) op.SetOutput(slot, {name});
    const absl::Status status =
        BlockBuilder(&registry_, &program_).Append(std::move(op));
    EXPECT_TRUE(status.ok()) << type << ": " << status;
  }
  void ExpectSame(const std::string& got, const std::string& want) {
    const auto results = session_.Run(program_, feed_, {got, want});
    ASSERT_TRUE(results.ok()) << results.status();
    const Array &a = results->at(got), &b = results->at(want);
    ASSERT_EQ(NumElements(a.shape), NumElements(b.shape));
    for (int64_t i = 0; i < NumElements(a.shape); ++i)
      EXPECT_NEAR(a.data<double>()[i], b.data<double>()[i], 1e-9) << got << i;
  }

  OpRegistry registry_;
  Session session_;
  ProgramDesc program_;
  NamedArrays feed_;
};

TEST_F(FusedOps, LayerNormsOfSums) {
  Random("x", {2, 3, 4});
  Random("y", {2, 3, 4});
  Random("z", {2, 3, 5});
  Random("w", {5, 4});
  Random("b", {4});
  Random("scale", {4});
  Random("bias", {4});
  const std::map<std::string, Attribute> axis = {
      {"begin_norm_axis", int32_t{2}}, {"epsilon", 1e-3f}};
  const Slots norm = {{"X", "sum"}, {"Scale", "scale"}, {"Bias", "bias"}};
  Add("skip_layernorm",
      {{"X", "x"}, {"Y", "y"}, {"Scale", "scale"}, {"Bias", "bias"}},
      {{"Out", "skip"}}, axis);
  Add("elementwise_add", {{"X", "x"}, {"Y", "y"}}, {{"Out", "sum"}});
  Add("layer_norm", norm, {{"Y", "want_skip"}}, axis);
  ExpectSame("skip", "want_skip");

  auto attrs = axis;
  attrs["x_num_col_dims"] = int32_t{2};
  attrs["activation_type"] = std::string("relu");
  Add("fused_fc_elementwise_layernorm",
      {{"X", "z"},
       {"W", "w"},
       {"Y", "y"},
       {"Bias0", "b"},
       {"Scale", "scale"},
       {"Bias1", "bias"}},
      {{"Out", "fc"}, {"Mean", "mean"}, {"Variance", "variance"}}, attrs);
  Add("matmul_v2", {{"X", "z"}, {"Y", "w"}}, {{"Out", "zw"}});
  Add("elementwise_add", {{"X", "zw"}, {"Y", "b"}}, {{"Out", "zwb"}});
  Add("relu", {{"X", "zwb"}}, {{"Out", "r"}});
  Add("elementwise_add", {{"X", "r"}, {"Y", "y"}}, {{"Out", "ry"}});
  Add("layer_norm", {{"X", "ry"}, {"Scale", "scale"}, {"Bias", "bias"}},
      {{"Y", "want_fc"}, {"Mean", "want_mean"}, {"Variance", "want_var"}},
      axis);
  ExpectSame("fc", "want_fc");
  ExpectSame("mean", "want_mean");
  ExpectSame("variance", "want_var");
}

TEST_F(FusedOps, LayerNormOfEmbeddings) {
  Random("table0", {5, 4});
  Random("table1", {3, 4});
  Random("scale", {4});
  Random("bias", {4});
  Feed("ids0", MakeArray<int64_t>({2, 2, 1}, {4, 0, 1, 1}));
  Feed("ids1", MakeArray<int64_t>({2, 2, 1}, {2, 0, 1, 2}));
  OpDesc op;
  op.type = "fused_embedding_eltwise_layernorm";
  op.SetInput("Ids", {"ids0", "ids1"});
  op.SetInput("Embs", {"table0", "table1"});
  op.SetInput("Scale", {"scale"});
  op.SetInput("Bias", {"bias"});
  op.SetOutput("Out", {"got"});
  ASSERT_TRUE(BlockBuilder(&registry_, &program_).Append(std::move(op)).ok());
  for (const std::string i : {"0", "1"})
    Add("lookup_table_v2", {{"W", "table" + i}, {"Ids", "ids" + i}},
        {{"Out", "rows" + i}});
  Add("elementwise_add", {{"X", "rows0"}, {"Y", "rows1"}}, {{"Out", "sum"}});
  Add("layer_norm", {{"X", "sum"}, {"Scale", "scale"}, {"Bias", "bias"}},
      {{"Y", "want"}}, {{"begin_norm_axis", int32_t{3}}});
  ExpectSame("got", "want");
}

TEST_F(FusedOps, MultiheadMatmul) {
  constexpr int64_t kBatch = 2, kSteps = 3, kWidth = 4;
  Random("x", {kBatch, kSteps, 6});
  Random("w", {6, 3, 2 * kWidth});
  Random("b", {3, 2 * kWidth});
  const std::map<std::string, Attribute> attrs = {{"alpha", 0.7f},
                                                  {"head_number", int32_t{2}}};
  Add("multihead_matmul", {{"Input", "x"}, {"W", "w"}, {"Bias", "b"}},
      {{"Out", "got"}}, attrs);
  Add("reshape2", {{"X", "w"}}, {{"Out", "w2"}},
      {{"shape", std::vector<int32_t>{6, 6 * kWidth}}});
  Add("reshape2", {{"X", "b"}}, {{"Out", "b2"}},
      {{"shape", std::vector<int32_t>{6 * kWidth}}});
  Add("matmul_v2", {{"X", "x"}, {"Y", "w2"}}, {{"Out", "xw"}});
  Add("elementwise_add", {{"X", "xw"}, {"Y", "b2"}}, {{"Out", "xwb"}});
  Add("reshape2", {{"X", "xwb"}}, {{"Out", "qkv"}},
      {{"shape", std::vector<int32_t>{kBatch, kSteps, 3, 2, kWidth}}});
  Add("self_dp_attention", {{"X", "qkv"}}, {{"Out", "want"}}, attrs);
  ExpectSame("got", "want");

  // A bias that leaves the first step alone gives its values everywhere.
  Feed("mask", MakeArray<double>({1, 1, 1, kSteps}, {0, -1e9, -1e9}));
  Add("multihead_matmul",
      {{"Input", "x"}, {"W", "w"}, {"Bias", "b"}, {"BiasQK", "mask"}},
      {{"Out", "first"}}, attrs);
  const auto results = session_.Run(program_, feed_, {"first", "qkv"});
  ASSERT_TRUE(results.ok()) << results.status();
  const double* first = results->at("first").data<double>();
  const double* qkv = results->at("qkv").data<double>();
  for (int64_t n = 0; n < kBatch; ++n)
    for (int64_t s = 0; s < kSteps; ++s)
      for (int64_t i = 0; i < 2 * kWidth; ++i)
        EXPECT_NEAR(first[(n * kSteps + s) * 2 * kWidth + i],
                    qkv[(n * kSteps * 3 + 2) * 2 * kWidth + i], 1e-9);
}

}  // namespace test_fused_ops
}  // namespace pd
