// SPDX-License-Identifier: Apache-2.0
// The numbers of paddle.summary (PaddlePaddle 2.6.2) of paddle.vision's
// networks. FLOPs are twice the multiply-adds that its convolutions and linear
// layers did in a pass, each output element times the elements of a filter or
// column.
#include "libcore/report/model_summary.h"

#include <gtest/gtest.h>

#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace test_model_summary {

ModelSummary Summarize(const std::string& model) {
  OpRegistry registry;
  EXPECT_TRUE(RegisterAllOps(&registry).ok());
  const auto job = ParseJob("name: \"x\" model { " + model + " }", "x.pbtxt");
  EXPECT_TRUE(job.ok()) << job.status();
  if (!job.ok()) return {};
  auto summary = SummarizeModel(registry, *job);
  EXPECT_TRUE(summary.ok()) << summary.status();
  return summary.ok() ? *std::move(summary) : ModelSummary();
}

TEST(ModelSummary, LeNet) {
  const ModelSummary s = Summarize(R"(
    input { name: "image" shape: [-1, 1, 28, 28] }
    layer { name: "conv1" conv2d { out_channels: 6 kernel_size: 3 padding: 1 } }
    layer { relu {} }
    layer { max_pool2d { kernel_size: 2 stride: 2 } }
    layer { conv2d { out_channels: 16 kernel_size: 5 } }
    layer { relu {} }
    layer { max_pool2d { kernel_size: 2 stride: 2 } }
    layer { flatten {} }
    layer { linear { out_features: 120 } }
    layer { linear { out_features: 84 } }
    layer { linear { out_features: 10 } })");
  EXPECT_EQ(s.parameters, 61610);
  EXPECT_EQ(s.trainable, 61610);
  EXPECT_EQ(s.flops, 2 * (42336 + 240000 + 48000 + 10080 + 840));
  ASSERT_EQ(s.rows.size(), 10u);
  EXPECT_EQ(s.rows[0].type, "Conv2D-1");
  EXPECT_EQ(s.rows[0].name, "conv1");
  EXPECT_EQ(s.rows[3].type, "Conv2D-2");
  EXPECT_EQ(s.rows[3].inputs, (std::vector<Shape>{{1, 6, 14, 14}}));
  EXPECT_EQ(s.rows[3].outputs, (std::vector<Shape>{{1, 16, 10, 10}}));
  EXPECT_EQ(s.rows[3].parameters, 2416);
  EXPECT_EQ(s.rows[3].flops, 2 * 240000);
  EXPECT_EQ(s.rows[4].type, "ReLU-2");
  EXPECT_EQ(s.rows[7].flops, 2 * 48000);
  EXPECT_NEAR(s.input_mb, 0.00299, 1e-5);
  // The outputs of PaddlePaddle's layers, and 400 of our flatten.
  EXPECT_NEAR(s.pass_mb, 0.11, 0.01);
  EXPECT_NEAR(s.parameters_mb, 0.235, 1e-3);
}

TEST(ModelSummary, ResNet18) {
  const ModelSummary s = Summarize(R"(
    input { name: "image" shape: [-1, 3, 224, 224] }
    layer { block { use: "resnet18" } })");
  EXPECT_EQ(s.parameters, 11699112);
  EXPECT_EQ(s.trainable, 11689512);
  EXPECT_EQ(s.flops, 2 * int64_t{1814073344});
  EXPECT_NEAR(s.input_mb, 0.57, 0.01);
  EXPECT_NEAR(s.parameters_mb, 44.63, 0.01);
}

TEST(ModelSummary, MobileNetV2) {
  const ModelSummary s = Summarize(R"(
    input { name: "image" shape: [-1, 3, 224, 224] }
    layer { block { use: "mobilenet_v2" } })");
  EXPECT_EQ(s.parameters, 3538984);
  EXPECT_EQ(s.trainable, 3504872);
  EXPECT_EQ(s.flops, 2 * int64_t{300774272});
}

// Tables that the output layer shares count once: the well-known sizes of BERT
// base, of its heads for pretraining and of GPT-2 small.
TEST(ModelSummary, SharedTables) {
  const std::string texts = R"(
    input { name: "a" shape: [-1, 8] dtype: int64 }
    input { name: "b" shape: [-1, 8] dtype: int64 } )";
  EXPECT_EQ(
      Summarize(texts + R"(layer { input: ["a", "b"] block { use: "bert" } })")
          .parameters,
      109482240);
  EXPECT_EQ(Summarize(texts + R"(layer { input: ["a", "b"]
                                         block { use: "bert_pretraining" } })")
                .parameters,
            110106428);
  const ModelSummary gpt = Summarize(texts + R"(layer {
      input: "a" block { use: "gpt_lm" set: "vocab_size=50257" } })");
  EXPECT_EQ(gpt.parameters, 124439808);
  EXPECT_LT(gpt.pass_mb, 20);
}

TEST(ModelSummary, OpenExtents) {
  const ModelSummary s = Summarize(R"(
    input { name: "x" shape: [-1, -1, 8] }
    layer { linear { out_features: 4 } })");
  EXPECT_EQ(s.assumed.count("x"), 1u);
  EXPECT_EQ(s.parameters, 36);
  EXPECT_EQ(s.rows[0].outputs[0].back(), 4);
}

TEST(PaddleClassName, Names) {
  EXPECT_EQ(PaddleClassName("max_pool2d"), "MaxPool2D");
  EXPECT_EQ(PaddleClassName("adaptive_avg_pool2d"), "AdaptiveAvgPool2D");
  EXPECT_EQ(PaddleClassName("batch_norm1d"), "BatchNorm1D");
  EXPECT_EQ(PaddleClassName("leaky_relu"), "LeakyReLU");
  EXPECT_EQ(PaddleClassName("lstm"), "LSTM");
  EXPECT_EQ(PaddleClassName("simple_rnn_cell"), "SimpleRNNCell");
  EXPECT_EQ(PaddleClassName("log_softmax"), "LogSoftmax");
}

}  // namespace test_model_summary
}  // namespace pd
