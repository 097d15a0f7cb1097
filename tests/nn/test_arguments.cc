// SPDX-License-Identifier: Apache-2.0
// Errors about inputs and arguments that do not fit: layers of positions,
// beams and classes, sparse attention, activations that are named.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_arguments {

// Inputs `x` of this shape and type, and what `more` adds.
std::string ErrorOf(const std::string& x, const std::string& layer,
                    const std::string& more = "") {
  const auto job =
      ParseJob(absl::StrCat("model { input { name: \"x\" shape: ", x, " }\n",
                            more, "\nlayer { name: \"l\" ", layer, " } }"),
               "job.pbtxt");
  const absl::Status status =
      job.ok() ? BuildModel(*job, ReferenceRegistry()).status() : job.status();
  return status.ok() ? "no error" : std::string(status.message());
}

std::string Input(const std::string& name, const std::string& shape) {
  return absl::StrCat("input { name: \"", name, "\" shape: ", shape, " } ");
}

TEST(Arguments, PositionsOfImages) {
  EXPECT_EQ(ErrorOf("[-1, 2, 4]", "affine_grid { out_shape: [1, 1, 2, 2] }"),
            "job.pbtxt:3:1: layer 'l' (affine_grid) expects matrices [N, 2, 3] "
            "for an 'out_shape' of 4 numbers; input 'x' gives [-1, 2, 4]");
  EXPECT_EQ(ErrorOf("[-1, 2, 3]", "affine_grid { out_shape: [1, 1, -1, 2] }"),
            "job.pbtxt:3:1: 'out_shape' holds -1; expected 1 or more");
  EXPECT_NE(ErrorOf("[-1, 2, 3]", "affine_grid { out_shape: [1, 1, 2] }")
                .find("'out_shape'"),
            std::string::npos);
  EXPECT_EQ(ErrorOf("[-1, 1, 4, 4]", "input: [\"x\", \"g\"] grid_sample {}",
                    Input("g", "[-1, 4, 4, 3]")),
            "job.pbtxt:3:1: layer 'l' (grid_sample) expects positions [N, H, "
            "W, 2]; input 'g' gives [-1, 4, 4, 3]");
  EXPECT_EQ(ErrorOf("[-1, 4, 4]", "input: [\"x\", \"x\"] grid_sample {}"),
            "job.pbtxt:3:1: layer 'l' (grid_sample) expects images [N, C, H, "
            "W] or [N, C, D, H, W]; input 'x' gives [-1, 4, 4]");
  EXPECT_EQ(ErrorOf("[-1, 4, 4]", "temporal_shift { seg_num: 2 }"),
            "job.pbtxt:3:1: layer 'l' (temporal_shift) expects images [N, C, "
            "H, W]; input 'x' gives [-1, 4, 4]");
}

TEST(Arguments, BeamsAndClasses) {
  const std::string whole = "[3, -1, 2] dtype: int64";
  EXPECT_EQ(ErrorOf("[3, -1, 2]", "input: [\"x\", \"x\"] gather_tree {}"),
            "job.pbtxt:3:1: layer 'l' (gather_tree) expects integers "
            "(int64 or int32), not float32; input 'x' gives [3, -1, 2]");
  EXPECT_EQ(ErrorOf(whole, "input: [\"x\", \"p\"] gather_tree {}",
                    Input("p", "[3, -1, 4] dtype: int64")),
            "job.pbtxt:3:1: layer 'l' (gather_tree) expects parents of the "
            "ids' shape, [3, -1, 2]; input 'p' gives [3, -1, 4]");
  EXPECT_EQ(ErrorOf(whole, "input: [\"x\", \"p\"] gather_tree {}",
                    Input("p", "[3, -1, 2] dtype: int32")),
            "job.pbtxt:3:1: layer 'l' (gather_tree) expects parents of the "
            "ids' type, int64, not int32; input 'p' gives [3, -1, 2]");
  EXPECT_EQ(ErrorOf("[-1]", "sequence_mask { maxlen: 3 }"),
            "job.pbtxt:3:1: layer 'l' (sequence_mask) expects integers "
            "(int64 or int32), not float32; input 'x' gives [-1]");
  EXPECT_EQ(ErrorOf("-1 dtype: int64",
                    "class_center_sample { num_classes: 4 num_samples: 5 }"),
            "job.pbtxt:3:1: 'num_samples' is 5; it must be at most "
            "'num_classes', 4");
  EXPECT_EQ(ErrorOf("[-1, 1] dtype: int64",
                    "class_center_sample { num_classes: 4 num_samples: 2 }"),
            "job.pbtxt:3:1: layer 'l' (class_center_sample) expects labels "
            "[N]; input 'x' gives [-1, 1]");
  EXPECT_NE(ErrorOf("[-1, 3]", "gumbel_softmax { temperature: 0 }")
                .find("'temperature' is 0"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[-1, 3]", "gumbel_softmax { axis: 2 }").find("'axis'"),
            std::string::npos);
}

TEST(Arguments, SparseAttention) {
  const std::string rows = Input("o", "[-1, 2, 5] dtype: int32");
  const std::string places = Input("c", "[-1, 2, 6] dtype: int32");
  const std::string reads = "input: [\"x\", \"x\", \"x\", \"o\", \"c\"] ";
  EXPECT_EQ(
      ErrorOf("[-1, 2, 4, 3]", reads + "sparse_attention {}", rows + places),
      "no error");
  EXPECT_EQ(ErrorOf("[-1, 2, 4, 3]", reads + "sparse_attention {}",
                    rows + Input("c", "[-1, 2, 6]")),
            "job.pbtxt:3:1: layer 'l' (sparse_attention) expects int32 columns "
            "[N, num_heads, places]; input 'c' gives [-1, 2, 6]");
  EXPECT_EQ(
      ErrorOf("[-1, 2, 4, 3]", reads + "sparse_attention { attn_mask: \"m\" }",
              rows + places + Input("m", "[-1, 5]")),
      "job.pbtxt:3:1: layer 'l' (sparse_attention) expects an attn_mask "
      "[length, length] of the query's type; input 'm' gives [-1, 5]");
}

// PaddlePaddle's answer in its manual, from a GPU.
TEST(Arguments, SparseAttentionGivesTheManualsNumbers) {
  const auto job = ParseJob(R"(model {
    input { name: "q" shape: [-1, 1, 4, 2] }
    input { name: "o" shape: [-1, 1, 5] dtype: int32 }
    input { name: "c" shape: [-1, 1, 8] dtype: int32 }
    input { name: "k" shape: [-1, 4] }
    input { name: "a" shape: [-1, 4] }
    layer { name: "l" input: ["q", "q", "q", "o", "c"]
            sparse_attention { key_padding_mask: "k" attn_mask: "a" } } })",
                            "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto built = BuildModel(*job, ReferenceRegistry());
  ASSERT_TRUE(built.ok()) << built.status();
  const auto run = [&](const std::vector<int32_t>& offset,
                       const std::vector<int32_t>& columns) {
    Session session(&ReferenceRegistry(), 1);
    return session.Run(
        built->main,
        {{"q", MakeArray<float>({1, 1, 4, 2},
                                {0.f, 1.f, 2.f, 3.f, 0.f, 1.f, 2.f, 3.f})},
         {"o", MakeArray({1, 1, 5}, offset)},
         {"c", MakeArray({1, 1, 8}, columns)},
         {"k", MakeArray<float>({1, 4}, {1.f, 1.f, 1.f, 0.f})},
         {"a",
          MakeArray<float>({4, 4}, {1.f, 0.f, 1.f, 1.f, 1.f, 1.f, 1.f, 1.f, 1.f,
                                    1.f, 1.f, 1.f, 1.f, 1.f, 1.f, 1.f})}},
        built->outputs);
  };
  const std::vector<int32_t> columns = {0, 1, 0, 1, 2, 3, 2, 3};
  const auto got = run({0, 2, 4, 6, 8}, columns);
  ASSERT_TRUE(got.ok()) << got.status();
  const float* y = got->begin()->second.data<float>();
  const float want[] = {0, 1, 1.99830270f, 2.99830270f, 0, 1, 0, 1};
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(y[i], want[i], 1e-6) << i;
  // A matrix that is none.
  for (const std::vector<int32_t>& offset : std::vector<std::vector<int32_t>>{
           {0, 2, 1, 6, 8}, {0, 2, 4, 6, 9}, {-1, 2, 4, 6, 8}})
    EXPECT_NE(run(offset, columns).status().message().find("'Offset' holds"),
              absl::string_view::npos);
  EXPECT_NE(run({0, 2, 4, 6, 8}, {0, 1, 0, 4, 2, 3, 2, 3})
                .status()
                .message()
                .find("'Columns' holds 4"),
            absl::string_view::npos);
}

TEST(Arguments, ActivationsByName) {
  const auto layer = [](const std::string& activation) {
    return ErrorOf("[-1, 3, 4]",
                   absl::StrCat("transformer_encoder_layer { nhead: 2 "
                                "dim_feedforward: 6 activation: \"",
                                activation, "\" }"));
  };
  EXPECT_EQ(layer("gelu { approximate: true }"), "no error");
  EXPECT_EQ(layer("hardtanh { min: -2 max: 2 }"), "no error");
  // A word needs no quotes.
  EXPECT_EQ(ErrorOf("[-1, 3, 4]",
                    "transformer_encoder_layer { nhead: 2 "
                    "dim_feedforward: 6 activation: gelu }"),
            "no error");
  EXPECT_EQ(ErrorOf("[-1, 3, 4]",
                    "transformer_encoder_layer { nhead: 2 "
                    "dim_feedforward: 6 activation: geluu }"),
            "job.pbtxt:3:1: 'activation' is 'geluu'; it takes an activation's "
            "name, like relu, did you mean 'gelu'?");
  EXPECT_EQ(layer("geluu"),
            "job.pbtxt:3:1: 'activation' is 'geluu'; it takes an activation's "
            "name, like relu, did you mean 'gelu'?");
  EXPECT_EQ(layer("gelu { aproximate: true }"),
            "job.pbtxt:3:1: 'activation': unknown field 'aproximate', did you "
            "mean 'approximate'?");
  for (const char* wrong :
       {"gelu { approximate: 3 }", "gelu { approximate: true", "gelu }",
        "gelu { approximate: true } relu", "hardtanh { min: 2 max: 1 }",
        "celu { alpha: 0 }", "maxout", "softplus { beta: 0 }", "", "linear"})
    EXPECT_EQ(layer(wrong).rfind("job.pbtxt:3:1: ", 0), 0u)
        << wrong << ": " << layer(wrong);
}

}  // namespace test_arguments
}  // namespace pd
