// SPDX-License-Identifier: Apache-2.0
// Ops that PaddlePaddle computes on GPUs alone, where chance or an error is
// what they do: the rest of them is in testdata/ops_more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "libcore/exec/session.h"
#include "libcore/ops/registry.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/op_test.h"

namespace pd {
namespace test_device_ops {

using Attrs = std::map<std::string, Attribute>;

class DeviceOps : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  // Runs one op with a variable a slot, named as the slot; gives all outputs.
  absl::StatusOr<NamedArrays> Run(const std::string& type,
                                  const NamedArrays& inputs, const Attrs& attrs,
                                  uint64_t seed = 1) {
    ProgramDesc program;
    program.blocks.emplace_back();
    BlockBuilder builder(&registry_, &program);
    OpDesc op;
    op.type = type;
    op.attrs = attrs;
    for (const auto& [slot, array] : inputs) {
      VarDesc var;
      var.name = "in_" + slot;
      var.dtype = array.dtype;
      var.shape = array.shape;
      builder.AddVar(var);
      op.SetInput(slot, {var.name});
    }
    std::vector<std::string> names;
    for (const SlotDef& slot : registry_.Find(type)->outputs()) {
      op.SetOutput(slot.name, {slot.name});
      names.push_back(slot.name);
    }
    const absl::Status status = builder.Append(std::move(op));
    if (!status.ok()) return status;
    NamedArrays feed;
    for (const auto& [slot, array] : inputs) feed["in_" + slot] = array;
    Session session(&registry_, seed);
    return session.Run(program, feed, names);
  }

  OpRegistry registry_;
};

TEST_F(DeviceOps, DropoutAddHasOneMaskForBothWays) {
  const int n = 20000;
  const std::vector<double> ones(n, 1.0), zeros(n, 0.0);
  const Attrs attrs = {{"p", 0.25f},
                       {"is_test", false},
                       {"mode", std::string("upscale_in_train")}};
  const auto forward = Run("fused_dropout_add",
                           {{"x", MakeArray<double>({n}, ones)},
                            {"y", MakeArray<double>({n}, zeros)}},
                           attrs);
  ASSERT_TRUE(forward.ok()) << forward.status();
  const auto other = Run("fused_dropout_add",
                         {{"x", MakeArray<double>({n}, ones)},
                          {"y", MakeArray<double>({n}, zeros)}},
                         attrs, 2);
  ASSERT_TRUE(other.ok()) << other.status();
  const auto backward = Run("fused_dropout_add_grad",
                            {{"seed_offset", forward->at("seed_offset")},
                             {"out@GRAD", MakeArray<double>({n}, ones)}},
                            attrs);
  ASSERT_TRUE(backward.ok()) << backward.status();
  int kept = 0, same = 0;
  for (int i = 0; i < n; ++i) {
    const double out = forward->at("out").data<double>()[i];
    EXPECT_TRUE(out == 0 || std::fabs(out - 4.0 / 3) < 1e-9) << out;
    EXPECT_EQ(backward->at("x@GRAD").data<double>()[i], out);
    EXPECT_EQ(backward->at("y@GRAD").data<double>()[i], 1.0);
    kept += out != 0;
    same += out == other->at("out").data<double>()[i];
  }
  EXPECT_NEAR(kept, 0.75 * n, 0.02 * n);
  EXPECT_LT(same, 0.7 * n);  // another seed, another mask
}

TEST_F(DeviceOps, TopPDrawsInProportion) {
  const int n = 30000;
  std::vector<float> rows, share(n, 0.75f);
  for (int i = 0; i < n; ++i) rows.insert(rows.end(), {0.1f, 0.5f, 0.1f, 0.3f});
  const auto result = Run("top_p_sampling",
                          {{"x", MakeArray<float>({n, 4}, rows)},
                           {"ps", MakeArray<float>({n, 1}, share)}},
                          {});
  ASSERT_TRUE(result.ok()) << result.status();
  int counts[4] = {};
  for (int i = 0; i < n; ++i) {
    const int64_t id = result->at("ids").data<int64_t>()[i];
    ASSERT_TRUE(id >= 0 && id < 4);
    ++counts[id];
    EXPECT_EQ(result->at("out").data<float>()[i], rows[i * 4 + id]);
  }
  // The words of 0.5 and 0.3 reach 0.75, of which the second has 0.25.
  EXPECT_EQ(counts[0] + counts[2], 0);
  EXPECT_NEAR(counts[1], n * 0.5 / 0.75, 0.02 * n);
}

TEST_F(DeviceOps, BernoulliPrimitiveHasItsMean) {
  const auto drawn = Run("bernoulli_p", {},
                         {{"shape", std::vector<int64_t>{100, 200}},
                          {"dtype", int32_t{5}},
                          {"p", 0.3f}});
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  double sum = 0;
  for (int i = 0; i < 20000; ++i) sum += drawn->at("Y").data<float>()[i];
  EXPECT_NEAR(sum / 20000, 0.3, 0.02);
}

TEST_F(DeviceOps, NeighboursAreDistinctOnesOfTheNode) {
  std::vector<int64_t> row(50);
  for (int64_t i = 0; i < 50; ++i) row[static_cast<size_t>(i)] = 100 + i;
  const NamedArrays graph = {{"Row", MakeArray<int64_t>({50}, row)},
                             {"Col_Ptr", MakeArray<int64_t>({3}, {0, 40, 50})},
                             {"X", MakeArray<int64_t>({2}, {1, 0})}};
  std::set<int64_t> seen;
  for (uint64_t seed = 1; seed < 40; ++seed) {
    const auto result = Run("graph_sample_neighbors", graph,
                            {{"sample_size", int32_t{8}}}, seed);
    ASSERT_TRUE(result.ok()) << result.status();
    const int64_t* out = result->at("Out").data<int64_t>();
    EXPECT_EQ(result->at("Out_Count").data<int32_t>()[0], 8);
    EXPECT_EQ(result->at("Out_Count").data<int32_t>()[1], 8);
    EXPECT_EQ(std::set<int64_t>(out, out + 16).size(), 16u);
    for (int i = 0; i < 16; ++i) EXPECT_EQ(out[i] >= 140, i < 8) << out[i];
    seen.insert(out, out + 16);
  }
  EXPECT_EQ(seen.size(), 50u);  // each has its chance
}

TEST_F(DeviceOps, HeavyEdgesAreChosen) {
  std::vector<int64_t> row(20);
  std::vector<float> weights(20, 1e-6f);
  for (int64_t i = 0; i < 20; ++i) row[static_cast<size_t>(i)] = i;
  weights[3] = weights[17] = 1.0f;
  const auto result =
      Run("weighted_sample_neighbors",
          {{"row", MakeArray<int64_t>({20}, row)},
           {"colptr", MakeArray<int64_t>({2}, {0, 20})},
           {"edge_weight", MakeArray<float>({20}, weights)},
           {"input_nodes", MakeArray<int64_t>({1}, {0})}},
          {{"sample_size", int32_t{2}}, {"return_eids", false}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->at("out_neighbors").data<int64_t>()[0], 3);
  EXPECT_EQ(result->at("out_neighbors").data<int64_t>()[1], 17);
}

TEST_F(DeviceOps, GradientsByDifferences) {
  const Attrs wide = {{"pad_size", int32_t{2}},
                      {"kernel_size", int32_t{3}},
                      {"max_displacement", int32_t{2}},
                      {"stride1", int32_t{2}},
                      {"stride2", int32_t{1}}};
  GradientCase correlation{
      "correlation",
      {{"Input1", {{2, 2, 6, 5}}}, {"Input2", {{2, 2, 6, 5}}}},
      wide};
  correlation.output = "Output";
  EXPECT_TRUE(CheckGradients(registry_, correlation).ok())
      << CheckGradients(registry_, correlation);
  GradientCase shared{
      "flash_attn",
      {{"q", {{1, 3, 4, 2}}}, {"k", {{1, 4, 2, 2}}}, {"v", {{1, 4, 2, 3}}}},
      {{"causal", true}}};
  shared.output = "out";
  EXPECT_TRUE(CheckGradients(registry_, shared).ok())
      << CheckGradients(registry_, shared);
}

TEST_F(DeviceOps, BytesGoBackAsTheyCame) {
  const auto back =
      Run("view_dtype_grad",
          {{"input", MakeArray<double>({1}, {0})},
           {"out@GRAD", MakeArray<int32_t>({2}, {0, 0x40080000})}},
          {{"dtype", int32_t{2}}});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->at("input@GRAD").data<double>()[0], 3.0);
}

TEST_F(DeviceOps, RefusesWhatDoesNotFit) {
  const Array x = MakeArray<float>({4}, {1, 2, 3, 4});
  const auto view = Run("as_strided", {{"input", x}},
                        {{"dims", std::vector<int64_t>{2, 2}},
                         {"stride", std::vector<int64_t>{2, 1}},
                         {"offset", int64_t{4}}});
  EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(view.status().message(),
                                "does not fit into 4 elements"))
      << view.status();
  const auto numbers =
      Run("check_numerics", {{"tensor", MakeArray<float>({2}, {1, NAN})}},
          {{"var_name", std::string("loss")}});
  EXPECT_EQ(numbers.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(numbers.status().message(), "'loss'"));
  const auto dropout = Run("flash_attn",
                           {{"q", MakeArray<float>({1, 1, 1, 1}, {1})},
                            {"k", MakeArray<float>({1, 1, 1, 1}, {1})},
                            {"v", MakeArray<float>({1, 1, 1, 1}, {1})}},
                           {{"dropout", 0.5f}});
  EXPECT_FALSE(dropout.ok());
  const auto scale = Run("fused_matmul",
                         {{"X", MakeArray<float>({1, 1}, {1})},
                          {"Y", MakeArray<float>({1, 1}, {1})}},
                         {{"Scale_x", 2.0f}});
  EXPECT_FALSE(scale.ok());
  const auto positions = Run("assign_pos",
                             {{"X", MakeArray<int64_t>({2}, {0, 0})},
                              {"cum_count", MakeArray<int64_t>({1}, {1})},
                              {"eff_num_len", MakeArray<int64_t>({1}, {2})}},
                             {});
  EXPECT_EQ(positions.status().code(), absl::StatusCode::kOutOfRange);
}

}  // namespace test_device_ops
}  // namespace pd
