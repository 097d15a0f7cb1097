// SPDX-License-Identifier: Apache-2.0
// Quantization-aware training from a job: PaddlePaddle's ImperativeQuantAware
// over the same network, start and batches (testdata/quant/aware), and what a
// job may say wrong.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/exec/session.h"
#include "libcore/train/train_program.h"
#include "tests/ops/registry.h"
#include "tests/train/aware_case.h"

namespace pd {
namespace test_quant_aware {

class Aware : public ::testing::TestWithParam<AwareCase> {};

TEST_P(Aware, TrainsAsPaddlePaddle) {
  Session session(&Registry());
  TrainAsPaddlePaddle(GetParam(), BuildAware(GetParam(), Registry()), &session);
}

INSTANTIATE_TEST_SUITE_P(Options, Aware, ::testing::ValuesIn(AwareCases()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

// In mixed precision the same, to what a half can say and a rounding that it
// turns over: PaddlePaddle has it on GPUs alone, so its answers in float32 are
// the measure.
INSTANTIATE_TEST_SUITE_P(
    Mixed, Aware,
    ::testing::Values(
        AwareCase{"channels",
                  {"quant.weight_quantize_type=channel_wise_abs_max",
                   "amp.level=O1", "amp.dtype=bfloat16"},
                  5e-2},
        AwareCase{
            "whole",
            {"quant.moving_rate=0.5", "amp.level=O1", "amp.dtype=float16"},
            3e-2},
        AwareCase{"linear_only",
                  {"quant.quantizable_layer_type=linear", "amp.level=O2",
                   "amp.dtype=bfloat16"},
                  5e-2}),
    [](const auto& info) { return std::string(info.param.name); });

absl::StatusOr<TrainProgram> Build(const std::string& layers,
                                   const std::string& quant) {
  const auto job =
      ParseJob(absl::StrCat("model { input { name: \"x\" shape: [-1, 4] }\n",
                            layers, "}\nquant { ", quant,
                            " }\nloss { mse_loss {} }\noptimizer { sgd {} }\n"),
               "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildTrainProgram(Registry(), *job);
}

std::string ErrorOf(const std::string& layers, const std::string& quant) {
  const auto built = Build(layers, quant);
  return built.ok() ? "no error" : std::string(built.status().message());
}

const char kTwo[] =
    "layer { name: \"fc1\" linear { out_features: 4 } }\n"
    "layer { name: \"fc2\" linear { out_features: 2 } }\n";

TEST(QuantJob, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf(kTwo, "skip: \"fc3\""),
            "job.pbtxt:5:9: 'fc3' matches no layer that would be quantized, "
            "did you mean 'fc1'?");
  EXPECT_EQ(ErrorOf(kTwo, "skip: \"fc*\""),
            "job.pbtxt:5:1: the model has no layer to quantize: 'skip' leaves "
            "all of them out");
  EXPECT_EQ(ErrorOf("layer { relu {} }", ""),
            "job.pbtxt:3:1: the model has no layer to quantize; expected a "
            "conv2d, linear or conv2d_transpose of the kinds asked for, with a "
            "weight");
  EXPECT_TRUE(absl::StrContains(ErrorOf(kTwo, "weight_bits: 1"),
                                "job.pbtxt:5:9: 'weight_bits'"))
      << ErrorOf(kTwo, "weight_bits: 1");
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(kTwo, "moving_rate: 1"), "'moving_rate'"));
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(kTwo, "weight_quantize_type: channel_abs_max"),
                        "channel_wise_abs_max"));
}

int Count(const ProgramDesc& program, const std::string& type) {
  int count = 0;
  for (const OpDesc& op : program.global().ops) count += op.type == type;
  return count;
}

constexpr char kInput[] = "fake_quantize_dequantize_moving_average_abs_max";
constexpr char kWeight[] = "fake_quantize_dequantize_abs_max";

TEST(QuantJob, NumbersLayersWithoutNames) {
  const auto built = Build("layer { linear { out_features: 2 } }", "");
  ASSERT_TRUE(built.ok()) << built.status();
  for (const char* name :
       {"linear_0.w_0.scale_0", "linear_0.scale_0", "linear_0.state_0",
        "linear_0.accum_0", "linear_0._ma_output_scale._scale"})
    EXPECT_NE(built->main.global().FindVar(name), nullptr) << name;
}

TEST(QuantJob, QuantizesWhatSeveralReadOnce) {
  const auto built = Build(
      "layer { name: \"a\" input: \"x\" linear { out_features: 2 } }\n"
      "layer { name: \"b\" input: \"x\" linear { out_features: 2 } }\n"
      "layer { name: \"c\" input: \"a\" input: \"b\" add {} }\n",
      "");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(Count(built->main, kInput), 1);
  EXPECT_EQ(Count(built->main, kWeight), 2);
  EXPECT_EQ(Count(built->test, kInput), 1);
}

TEST(QuantJob, ReachesPartsOfLayersAndBothForms) {
  const auto built = Build(
      "layer { reshape { shape: [-1, 1, 4] } }\n"
      "layer { name: \"t\" transformer_encoder_layer { d_model: 4 nhead: 2 "
      "dim_feedforward: 8 } }\n"
      "layer { when: train dropout {} }\n"
      "layer { name: \"out\" linear { out_features: 2 } }\n",
      "skip: \"t.self_attn.k_proj\"");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(Count(built->main, kWeight), 6);  // q, v, out; two; one
  EXPECT_EQ(Count(built->test, kWeight), 6);
  EXPECT_EQ(Count(built->test, kInput), Count(built->main, kInput));
  EXPECT_NE(built->main.global().FindVar(
                "t.self_attn.q_proj._fake_quant_input._scale"),
            nullptr);
}

TEST(QuantJob, BatchesHaveTheirOwnScalesIfAsked) {
  const auto built = Build(kTwo, "activation_quantize_type: abs_max");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(Count(built->main, kInput), 0);
  EXPECT_EQ(Count(built->main, kWeight), 4);
}

}  // namespace test_quant_aware
}  // namespace pd
