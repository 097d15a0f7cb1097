// SPDX-License-Identifier: Apache-2.0
// Ops that no file of cases holds: updates of parameters, oneDNN's int8 ops,
// selected rows, and the conditional block of inference models.
#include <gtest/gtest.h>

#include "libcore/exec/session.h"
#include "libcore/ops/registry.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace test_update_ops {

using Attrs = std::map<std::string, Attribute>;
using Slots = std::map<std::string, std::vector<std::string>>;
using Strings = std::vector<std::string>;

// A program of one block and its feeds, built op by op.
class UpdateOps : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    program_.blocks.emplace_back();
  }

  void Feed(const std::string& name, Array array) {
    VarDesc var;
    var.name = name;
    var.dtype = array.dtype;
    var.shape = array.shape;
    BlockBuilder(&registry_, &program_).AddVar(std::move(var));
    feeds_[name] = std::move(array);
  }

  void FeedFloats(const std::string& name, const std::vector<float>& values) {
    Feed(name, MakeArray({static_cast<int64_t>(values.size())}, values));
  }

  absl::Status Append(const std::string& type, const Slots& inputs,
                      const Slots& outputs, const Attrs& attrs = {},
                      int32_t block = 0) {
    OpDesc op;
    op.type = type;
    op.attrs = attrs;
    for (const auto& [slot, names] : inputs) op.SetInput(slot, names);
    for (const auto& [slot, names] : outputs) op.SetOutput(slot, names);
    return BlockBuilder(&registry_, &program_, block).Append(std::move(op));
  }

  absl::StatusOr<NamedArrays> Run(const Strings& fetches) {
    Session session(&registry_);
    return session.Run(program_, feeds_, fetches);
  }

  // The array that one op makes of one input.
  template <typename T>
  absl::StatusOr<Array> RunOnInput(const std::string& type,
                                   const std::vector<T>& input,
                                   const Attrs& attrs) {
    program_.blocks.assign(1, BlockDesc());
    feeds_.clear();
    Feed("x", MakeArray({1, static_cast<int64_t>(input.size())}, input));
    const absl::Status status =
        Append(type, {{"Input", {"x"}}}, {{"Output", {"y"}}}, attrs);
    if (!status.ok()) return status;
    auto results = Run({"y"});
    if (!results.ok()) return results.status();
    return results->at("y");
  }

  OpRegistry registry_;
  ProgramDesc program_;
  NamedArrays feeds_;
};

template <typename T>
void ExpectValues(const absl::StatusOr<Array>& array,
                  const std::vector<T>& want) {
  ASSERT_TRUE(array.ok()) << array.status();
  ASSERT_EQ(array->dtype, DTypeOf<T>());
  ASSERT_EQ(array->size(), static_cast<int64_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(static_cast<double>(array->data<T>()[i]),
                static_cast<double>(want[i]), 1e-6)
        << "element " << i;
}

TEST_F(UpdateOps, DpsgdWithoutNoise) {
  // PaddlePaddle 2.6.2: the gradient, of norm 13, over a clip and under one.
  const std::pair<float, std::vector<float>> cases[] = {
      {6.5f, {0.85f, 2.2f, -3.6f, 0.5f}}, {20.0f, {0.7f, 2.4f, -4.2f, 0.5f}}};
  FeedFloats("p", {1, 2, -3, 0.5f});
  FeedFloats("g", {3, -4, 12, 0});
  FeedFloats("lr", {0.1f});
  for (const auto& [clip, want] : cases) {
    program_.blocks[0].ops.clear();
    const absl::Status status = Append(
        "dpsgd", {{"Param", {"p"}}, {"Grad", {"g"}}, {"LearningRate", {"lr"}}},
        {{"ParamOut", {"out"}}},
        {{"clip", clip}, {"batch_size", 4.0f}, {"sigma", 0.0f}, {"seed", 1}});
    ASSERT_TRUE(status.ok()) << status;
    const auto results = Run({"out"});
    ASSERT_TRUE(results.ok()) << results.status();
    ExpectValues(absl::StatusOr<Array>(results->at("out")), want);
  }
}

TEST_F(UpdateOps, ProximalAdagrad) {
  // PaddlePaddle 2.6.2 has the op no more. By hand after its definition: the
  // step with the new moment's root, shrunk by LearningRate * l1 (which takes
  // the third element to 0), over 1 + LearningRate * l2.
  struct Case {
    float l1, l2;
    std::vector<float> want;
  };
  const Case cases[] = {
      {0.1f, 0.2f, {0.925f / 1.05f, -1.85f / 1.05f, 0, 0.225f / 1.05f}},
      {0,
       0.5f,
       {0.95f / 1.125f, -1.875f / 1.125f, -0.015f / 1.125f, 0.25f / 1.125f}}};
  FeedFloats("p", {1, -2, 0.01f, 0.5f});
  FeedFloats("m", {0.24f, 3, 3.96f, 0});
  FeedFloats("g", {0.1f, -1, 0.2f, 3});
  FeedFloats("lr", {0.25f});
  for (const Case& c : cases) {
    program_.blocks[0].ops.clear();
    const absl::Status status =
        Append("proximal_adagrad",
               {{"Param", {"p"}},
                {"Moment", {"m"}},
                {"Grad", {"g"}},
                {"LearningRate", {"lr"}}},
               {{"ParamOut", {"p_out"}}, {"MomentOut", {"m_out"}}},
               {{"l1", c.l1}, {"l2", c.l2}});
    ASSERT_TRUE(status.ok()) << status;
    const auto results = Run({"p_out", "m_out"});
    ASSERT_TRUE(results.ok()) << results.status();
    ExpectValues(absl::StatusOr<Array>(results->at("p_out")), c.want);
    ExpectValues<float>(results->at("m_out"), {0.25f, 4, 4, 9});
  }
}

// The numbers of the int8 ops are PaddlePaddle 2.6.2's, through oneDNN.
TEST_F(UpdateOps, Quantize) {
  const std::vector<float> x = {-0.5f,    0.25f,  1, 0.0125f,
                                -0.0125f, 0.025f, 5, -5};
  ExpectValues<int8_t>(
      RunOnInput("quantize", x,
                 {{"Scale", 100.0f}, {"is_negative_input", true}}),
      {-50, 25, 100, 1, -1, 2, 127, -128});
  ExpectValues<uint8_t>(RunOnInput("quantize", x, {{"Scale", 100.0f}}),
                        {0, 25, 100, 1, 0, 2, 255, 0});
  ExpectValues<uint8_t>(
      RunOnInput(
          "quantize", x,
          {{"Scale", 100.0f}, {"Shift", 60.0f}, {"is_negative_input", true}}),
      {10, 85, 160, 61, 59, 62, 255, 0});
  const auto half = RunOnInput<float>(
      "quantize", {1.00390625f, -2.3f, 3.14159f, 1e-3f}, {{"bfloat16", true}});
  ASSERT_TRUE(half.ok()) << half.status();
  ASSERT_EQ(half->dtype, DType::kBFloat16);
  const uint16_t want[] = {16256, 49171, 16457, 14979};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(half->data<uint16_t>()[i], want[i]);
}

TEST_F(UpdateOps, Dequantize) {
  ExpectValues<float>(RunOnInput<int8_t>("dequantize", {-128, -7, 0, 100, 127},
                                         {{"Scale", 50.0f}}),
                      {-2.56f, -0.14f, 0, 2, 2.54f});
  ExpectValues<float>(RunOnInput<uint8_t>("dequantize", {0, 7, 100, 200, 255},
                                          {{"Scale", 50.0f}, {"Shift", 10.0f}}),
                      {-0.2f, -0.06f, 1.8f, 3.8f, 4.9f});
}

Attrs Requantization(float scale_in, float scale_out, float shift_in = 0,
                     float shift_out = 0) {
  return {{"Scale_in", scale_in},
          {"Scale_out", scale_out},
          {"Shift_in", shift_in},
          {"Shift_out", shift_out}};
}

TEST_F(UpdateOps, RequantizeSigned) {
  const std::vector<int8_t> x = {-128, -7, 0, 100, 127};
  ExpectValues<int8_t>(RunOnInput("requantize", x, Requantization(2, 1)),
                       {-64, -4, 0, 50, 64});
  ExpectValues<int8_t>(RunOnInput("requantize", x, Requantization(2, 3)),
                       {-128, -10, 0, 127, 127});
  EXPECT_EQ(
      RunOnInput("requantize", x, Requantization(4, 2, 11, 20)).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(UpdateOps, RequantizeUnsigned) {
  const std::vector<uint8_t> x = {0, 7, 100, 200, 255};
  ExpectValues<uint8_t>(RunOnInput("requantize", x, Requantization(2, 3)),
                        {0, 10, 150, 255, 255});
  ExpectValues<uint8_t>(
      RunOnInput("requantize", x, Requantization(2, 3, 10, 20)),
      {5, 16, 155, 255, 255});
  // The zero point -30 becomes 0.
  ExpectValues<uint8_t>(RunOnInput("requantize", x, Requantization(2, 3, 20)),
                        {0, 10, 150, 255, 255});
  // The zero point 14.5 becomes 15.
  ExpectValues<uint8_t>(
      RunOnInput("requantize", x, Requantization(4, 2, 11, 20)),
      {15, 18, 65, 115, 142});
}

TEST_F(UpdateOps, SelectedRowsAreMergedAndMadeDense) {
  Feed("w", MakeArray<float>({6, 2}, std::vector<float>(12, 1)));
  Feed("dy", MakeArray<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  Feed("ids", MakeArray<int64_t>({4}, {4, 1, 4, 0}));
  for (const absl::Status& status :
       {Append("lookup_table_v2_grad",
               {{"W", {"w"}}, {"Ids", {"ids"}}, {"Out@GRAD", {"dy"}}},
               {{"W@GRAD", {"dw"}}}, {{"is_sparse", true}}),
        Append("merge_selected_rows", {{"X", {"dw"}}}, {{"Out", {"merged"}}}),
        Append("get_tensor_from_selected_rows", {{"X", {"merged"}}},
               {{"Out", {"dense"}}}),
        Append("get_tensor_from_selected_rows", {{"X", {"dw"}}},
               {{"Out", {"as_it_is"}}})})
    ASSERT_TRUE(status.ok()) << status;
  // By hand: rows 0, 1 and 4, the last the sum of two.
  auto results = Run({"dense", "as_it_is"});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at("dense").shape, (Shape{3, 2}));
  ExpectValues<float>(results->at("dense"), {7, 8, 3, 4, 6, 8});
  EXPECT_EQ(results->at("as_it_is").shape, (Shape{4, 2}));
  ExpectValues<float>(results->at("as_it_is"), {1, 2, 3, 4, 5, 6, 7, 8});
  // Without repeats the rows stay as they are.
  feeds_["ids"] = MakeArray<int64_t>({4}, {4, 1, 5, 0});
  results = Run({"dense"});
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectValues<float>(results->at("dense"), {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_FALSE(
      Append("merge_selected_rows", {{"X", {"w"}}}, {{"Out", {"no"}}}).ok());
}

Array Bool(bool value) {
  Array array = MakeArray<uint8_t>({1}, {value});
  array.dtype = DType::kBool;
  return array;
}

TEST_F(UpdateOps, ConditionalBlockOfInference) {
  // out = cond ? 2 x : -x, each side in its own block.
  FeedFloats("x", {1, -2, 3});
  Feed("cond", Bool(false));
  ASSERT_TRUE(
      Append("logical_not", {{"X", {"cond"}}}, {{"Out", {"not"}}}).ok());
  ASSERT_TRUE(Append("cast", {{"X", {"cond"}}}, {{"Out", {"mask"}}},
                     {{"in_dtype", static_cast<int32_t>(DType::kBool)},
                      {"out_dtype", static_cast<int32_t>(DType::kInt32)}})
                  .ok());
  struct Side {
    const char *cond, *out, *scope;
    float factor;
  };
  const Side sides[] = {{"not", "a", "scope_a", -1},
                        {"cond", "b", "scope_b", 2}};
  for (const Side& side : sides) {
    VarDesc out;
    out.name = side.out;
    out.shape = {3};
    VarDesc scope;
    scope.name = side.scope;
    scope.kind = VarKind::kStepScopes;
    BlockBuilder builder(&registry_, &program_);
    builder.AddVar(std::move(out));
    builder.AddVar(std::move(scope));
    BlockDesc block;
    block.idx = static_cast<int32_t>(program_.blocks.size());
    block.parent_idx = 0;
    program_.blocks.push_back(block);
    ASSERT_TRUE(Append("scale", {{"X", {"x"}}}, {{"Out", {side.out}}},
                       {{"scale", side.factor}}, block.idx)
                    .ok());
    const absl::Status status = Append(
        "conditional_block_infer", {{"Cond", {side.cond}}, {"Input", {"x"}}},
        {{"Out", {side.out}}, {"Scope", {side.scope}}},
        {{"sub_block", BlockRef{block.idx}}, {"is_scalar_condition", true}});
    ASSERT_TRUE(status.ok()) << status;
  }
  ASSERT_TRUE(Append("select_input", {{"X", {"a", "b"}}, {"Mask", {"mask"}}},
                     {{"Out", {"out"}}})
                  .ok());
  for (const bool cond : {true, false, true}) {
    feeds_["cond"] = Bool(cond);
    const auto results = Run({"out"});
    ASSERT_TRUE(results.ok()) << results.status();
    if (cond)
      ExpectValues<float>(results->at("out"), {2, -4, 6});
    else
      ExpectValues<float>(results->at("out"), {-1, 2, -3});
  }
}

}  // namespace test_update_ops
}  // namespace pd
