// SPDX-License-Identifier: Apache-2.0
// Gradients of sequence and recurrent ops by finite differences, where
// PaddlePaddle's own are wrong or missing: filters of sequence_conv that look
// ahead only, recurrent layers in both directions over sequences of unequal
// lengths, LSTMs of a width that is a multiple of 8, sums of embeddings. And
// LoD that does not fit is refused.
#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/exec/session.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/op_test.h"

namespace pd {
namespace test_sequence_ops {

using Ints = std::vector<int32_t>;

class SequenceOps : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  void Check(const GradientCase& check) {
    const absl::Status status = CheckGradients(registry_, check, 1e-6);
    EXPECT_TRUE(status.ok()) << check.type << ": " << status;
  }

  OpRegistry registry_;
};

TEST_F(SequenceOps, ConvFromAnyStart) {
  for (const int32_t start : {-4, -2, -1, 0, 1, 2}) {
    for (const int32_t length : {1, 3}) {
      GradientCase check{"sequence_conv",
                         {{"X", {{6, 2}}}, {"Filter", {{2 * length, 3}}}}};
      check.attrs = {{"contextLength", length}, {"contextStart", start}};
      check.lods = {{"X_0", {{0, 2, 2, 5, 6}}}};
      Check(check);
      const int64_t rows =
          std::max(0, -start) + std::max(0, start + length - 1);
      if (rows == 0) continue;
      check.inputs.push_back({"PaddingData", {{rows, 2}}});
      check.attrs["paddingTrainable"] = true;
      Check(check);
    }
  }
}

TEST_F(SequenceOps, PoolAndMove) {
  for (const char* pool : {"SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST"}) {
    GradientCase check{"sequence_pool", {{"X", {{6, 2}}}}};
    check.attrs = {{"pooltype", std::string(pool)}};
    check.lods = {{"X_0", {{0, 2, 2, 5, 6}}}};
    check.output_shape = {4, 2};
    Check(check);
  }
  GradientCase unpad{"sequence_unpad", {{"X", {{3, 4, 2}}}}};
  unpad.constants = {{"Length", MakeArray<int64_t>({3}, {2, 0, 4})}};
  unpad.output_shape = {6, 2};
  Check(unpad);
  GradientCase expand{"sequence_expand", {{"X", {{3, 2}}}}};
  expand.constants = {{"Y", MakeArray<float>({4, 1}, {0, 0, 0, 0})}};
  expand.lods = {{"Y", {{0, 3, 3, 4}}}};
  expand.output_shape = {4, 2};
  Check(expand);
}

TEST_F(SequenceOps, RankTables) {
  for (const char* type : {"reorder_lod_tensor_by_rank", "shrink_rnn_memory"}) {
    GradientCase check{type, {{"X", {{3, 2}}}}};
    check.constants = {
        {"RankTable", MakeArray<int64_t>({3, 2}, {1, 4, 2, 3, 0, 1})}};
    check.output_shape = {3, 2};
    if (check.type == "shrink_rnn_memory") {
      check.constants["I"] = MakeArray<int64_t>({1}, {1});
      check.output_shape = {2, 2};
    }
    Check(check);
  }
}

TEST_F(SequenceOps, PooledEmbeddings) {
  for (const int64_t padding : {-1, 2}) {
    GradientCase check{"fused_embedding_seq_pool", {{"W", {{4, 3}}}}};
    check.attrs = {{"padding_idx", padding}};
    check.constants = {
        {"Ids", MakeArray<int64_t>({3, 2, 1}, {0, 2, 2, 3, 2, 0})}};
    check.lods = {{"Ids", {{0, 2, 3}}}};
    check.output_shape = {2, 6};
    Check(check);
  }
}

TEST_F(SequenceOps, RecurrentLayersOverLengths) {
  struct Mode {
    const char* name;
    int64_t gates;
  };
  for (const Mode& mode : std::vector<Mode>{
           {"LSTM", 4}, {"GRU", 3}, {"RNN_TANH", 1}, {"RNN_RELU", 1}}) {
    const int64_t n = 3, layers = 2, pairs = 2 * layers;
    std::vector<Shape> weights;
    for (int64_t layer = 0; layer < layers; ++layer)
      for (int direction = 0; direction < 2; ++direction)
        for (int64_t width : {layer == 0 ? int64_t{2} : 2 * n, n})
          weights.push_back({mode.gates * n, width});
    for (int64_t i = 0; i < 2 * pairs; ++i) weights.push_back({mode.gates * n});
    const size_t states = mode.gates == 4 ? 2 : 1;
    GradientCase check{"rnn",
                       {{"Input", {{5, 3, 2}}},
                        {"PreState", std::vector<Shape>(states, {pairs, 3, n})},
                        {"WeightList", weights}}};
    check.attrs = {{"mode", std::string(mode.name)},
                   {"is_bidirec", true},
                   {"hidden_size", static_cast<int32_t>(n)},
                   {"input_size", int32_t{2}},
                   {"num_layers", static_cast<int32_t>(layers)}};
    check.constants = {{"SequenceLength", MakeArray<int32_t>({3}, {5, 2, 3})}};
    Check(check);
    check.output = "State";
    check.outputs = states;
    if (states == 1) Check(check);
  }
}

TEST_F(SequenceOps, RecurrentOverLoD) {
  for (const bool reverse : {false, true}) {
    GradientCase lstm{"lstm",
                      {{"Input", {{7, 32}}},
                       {"H0", {{3, 8}}},
                       {"C0", {{3, 8}}},
                       {"Weight", {{8, 32}}},
                       {"Bias", {{1, 56}}}}};
    lstm.attrs = {{"is_reverse", reverse}};
    lstm.lods = {{"Input_0", {{0, 2, 6, 7}}}};
    lstm.output = "Hidden";
    Check(lstm);
    for (const bool origin : {false, true}) {
      GradientCase gru{"gru",
                       {{"Input", {{7, 6}}},
                        {"H0", {{3, 2}}},
                        {"Weight", {{2, 6}}},
                        {"Bias", {{1, 6}}}}};
      gru.attrs = {{"is_reverse", reverse}, {"origin_mode", origin}};
      gru.lods = {{"Input_0", {{0, 2, 2, 7}}}};
      gru.output = "Hidden";
      Check(gru);
    }
  }
}

TEST_F(SequenceOps, RefuseLoDThatDoesNotFit) {
  EXPECT_TRUE(CheckLoD({}, 6, "X").ok());
  EXPECT_TRUE(CheckLoD({{0, 2}, {0, 0, 6}}, 6, "X").ok());
  for (const LoD& lod : std::vector<LoD>{{{}},
                                         {{1, 6}},
                                         {{0, 5}},
                                         {{0, 7}},
                                         {{0, 4, 3, 6}},
                                         {{0, 3}, {0, 2, 6}},
                                         {{0, 2}, {}}})
    EXPECT_EQ(CheckLoD(lod, 6, "X").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SequenceOps, MergeTakesBackWhatSplitGave) {
  ProgramDesc program;
  program.blocks.emplace_back();
  BlockBuilder builder(&registry_, &program);
  NamedArrays feed = {{"x", MakeArray<float>({5, 1}, {0, 1, 2, 3, 4})},
                      {"m", MakeArray<uint8_t>({3, 1}, {1, 0, 1})}};
  feed["m"].dtype = DType::kBool;
  feed["x"].lod = {{0, 1, 3, 5}};
  for (const auto& [name, value] : feed) {
    VarDesc var;
    var.name = name;
    var.dtype = value.dtype;
    var.shape = value.shape;
    var.lod_level = static_cast<int32_t>(value.lod.size());
    builder.AddVar(var);
  }
  OpDesc split, merge;
  split.type = "split_lod_tensor";
  split.SetInput("X", {"x"});
  split.SetInput("Mask", {"m"});
  split.SetOutput("OutTrue", {"yes"});
  split.SetOutput("OutFalse", {"no"});
  merge.type = "merge_lod_tensor_infer";
  merge.SetInput("X", {"x"});
  merge.SetInput("Mask", {"m"});
  merge.SetInput("InTrue", {"yes"});
  merge.SetInput("InFalse", {"no"});
  merge.SetOutput("Out", {"out"});
  ASSERT_TRUE(builder.Append(split).ok());
  ASSERT_TRUE(builder.Append(merge).ok());
  Session session(&registry_);
  const auto got = session.Run(program, feed, {"yes", "no", "out"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->at("yes").shape, (Shape{3, 1}));
  EXPECT_EQ(got->at("no").lod, (LoD{{0, 2}}));
  EXPECT_EQ(got->at("out").lod, feed["x"].lod);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(got->at("out").data<float>()[i], static_cast<float>(i));
}

// The fused parts of a tensor that several weights share.
TEST_F(SequenceOps, CoalesceTensor) {
  ProgramDesc program;
  program.blocks.emplace_back();
  BlockBuilder builder(&registry_, &program);
  NamedArrays feed = {{"a", MakeArray<float>({2}, {1, 2})},
                      {"b", MakeArray<float>({1, 3}, {3, 4, 5})}};
  for (const auto& [name, value] : feed) {
    VarDesc var;
    var.name = name;
    var.shape = value.shape;
    builder.AddVar(var);
  }
  OpDesc op;
  op.type = "coalesce_tensor";
  op.SetInput("Input", {"a", "b"});
  op.SetOutput("Output", {"c", "d"});
  op.SetOutput("FusedOutput", {"all"});
  op.attrs = {{"dtype", int32_t{5}},
              {"copy_data", true},
              {"use_align", true},
              {"align_size", int32_t{16}}};
  ASSERT_TRUE(builder.Append(op).ok());
  Session session(&registry_);
  const auto got = session.Run(program, feed, {"all", "d"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->at("all").shape, (Shape{8}));
  EXPECT_EQ(got->at("all").data<float>()[1], 2);
  EXPECT_EQ(got->at("all").data<float>()[6], 5);
  EXPECT_EQ(got->at("d").data<float>()[2], 5);
}

}  // namespace test_sequence_ops
}  // namespace pd
