// SPDX-License-Identifier: Apache-2.0
// Equalised networks answer as they did; one whose channels were made unequal
// in size loses in 8 bits what equalisation gives back.
#include "libcore/quant/equalize.h"

#include <algorithm>
#include <cmath>

#include "libcore/program/verifier.h"
#include "libcore/quant/layer_errors.h"
#include "tests/quant/quant_fixture.h"

namespace pd {
namespace test_equalize {

float LargestDifference(const Array& a, const Array& b) {
  float largest = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    largest =
        std::max(largest, std::fabs(a.data<float>()[i] - b.data<float>()[i]));
  return largest;
}

class EqualizeLeNet : public QuantizeLeNet {
 protected:
  // Multiplies channel c of the first convolution's result by 8^(c % 4 - 1.5)
  // and divides the second filter's inputs by it.
  void Unbalance() {
    Array& filter = model_.params.at("conv2d_0.w_0");
    Array& bias = model_.params.at("conv2d_0.b_0");
    Array& next = model_.params.at("conv2d_1.w_0");
    std::vector<float> f(filter.data<float>(),
                         filter.data<float>() + filter.size());
    std::vector<float> b(bias.data<float>(), bias.data<float>() + bias.size());
    std::vector<float> n(next.data<float>(), next.data<float>() + next.size());
    const size_t channels = b.size(), each = f.size() / channels;
    const size_t taps = n.size() / 16 / channels;
    for (size_t c = 0; c < channels; ++c) {
      const float s = std::pow(8.0f, static_cast<float>(c % 4) - 1.5f);
      b[c] *= s;
      for (size_t i = 0; i < each; ++i) f[c * each + i] *= s;
      for (size_t o = 0; o < 16; ++o)
        for (size_t t = 0; t < taps; ++t) n[(o * channels + c) * taps + t] /= s;
    }
    filter = MakeArray<float>(filter.shape, f);
    bias = MakeArray<float>(bias.shape, b);
    next = MakeArray<float>(next.shape, n);
  }

  // Of the answers in 8 bits, dB.
  double Sqnr(bool per_channel) {
    QuantizeOptions options;
    options.calibration.algorithm = QuantAlgorithm::kAbsMax;
    options.weights.per_channel = per_channel;
    const Array x = Pictures("train", 64);
    const auto result = Quantize(x, options);
    EXPECT_TRUE(result.ok()) << result.status();
    const auto loader = LoaderOf(Pictures("t10k", 64));
    const auto errors = CompareModels(
        &registry_, model_, WithQuantizeLinear(model_, result->quantization),
        model_.names.fetches, loader.get(), 0, nullptr);
    EXPECT_TRUE(errors.ok()) << errors.status();
    return (*errors)[0].Sqnr();
  }
};

TEST_F(EqualizeLeNet, AnswersStay) {
  const Array x = Pictures("t10k", 32);
  const Array before = Answers(model_, x);
  // Two convolutions and three products in a row.
  EXPECT_EQ(EqualizeLayers(&model_), 4);
  EXPECT_LT(LargestDifference(Answers(model_, x), before), 1e-4);
  Unbalance();
  EXPECT_LT(LargestDifference(Answers(model_, x), before), 1e-4);
  EqualizeLayers(&model_);
  EXPECT_LT(LargestDifference(Answers(model_, x), before), 1e-4);
}

TEST_F(EqualizeLeNet, GivesBackWhatUnequalChannelsLose) {
  for (const bool per_channel : {true, false}) {
    auto model = ReadInferenceModel(DeployData("lenet"));
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    const double good = Sqnr(per_channel);
    Unbalance();
    const double bad = Sqnr(per_channel);
    EXPECT_LT(bad, good - 10) << per_channel;
    EqualizeLayers(&model_);
    EXPECT_GT(Sqnr(per_channel), good - 3) << per_channel;
  }
}

// conv2d -> `activation` -> depthwise_conv2d -> `activation` -> conv2d, with
// four channels of very unequal sizes.
InferenceModel Separable(const OpRegistry& registry,
                         const std::string& activation) {
  InferenceModel model;
  BlockDesc block;
  const auto add_var = [&](const std::string& name, Shape shape) {
    VarDesc var;
    var.name = name;
    var.dtype = DType::kFloat32;
    var.shape = std::move(shape);
    var.persistable = model.params.count(name) > 0;
    block.vars.push_back(std::move(var));
  };
  const auto add_filter = [&](const std::string& name, Shape shape) {
    std::vector<float> values;
    for (int64_t i = 0; i < NumElements(shape); ++i)
      values.push_back(std::sin(static_cast<float>(7 * i + 1)) *
                       std::pow(4.0f, static_cast<float>(i % 4)));
    model.params[name] = MakeArray<float>(shape, values);
    add_var(name, shape);
  };
  const auto add_conv = [&](const char* type, const std::string& x,
                            const std::string& w, const std::string& y) {
    OpDesc op;
    op.type = type;
    op.SetInput("Input", {x});
    op.SetInput("Filter", {w});
    op.SetOutput("Output", {y});
    const int32_t groups = type[0] == 'd' ? 4 : 1;
    const int32_t pad = groups == 1 ? 0 : 1;
    op.attrs = {{"strides", std::vector<int32_t>{1, 1}},
                {"paddings", std::vector<int32_t>{pad, pad}},
                {"dilations", std::vector<int32_t>{1, 1}},
                {"groups", groups}};
    block.ops.push_back(std::move(op));
    add_var(y, {-1, groups == 1 && y == "y" ? 2 : 4, 6, 6});
  };
  const auto add_activation = [&](const std::string& x, const std::string& y) {
    OpDesc op;
    op.type = activation;
    op.SetInput("X", {x});
    op.SetOutput("Out", {y});
    block.ops.push_back(std::move(op));
    add_var(y, {-1, 4, 6, 6});
  };
  add_var("x", {-1, 3, 6, 6});
  add_filter("w0", {4, 3, 1, 1});
  add_filter("w1", {4, 1, 3, 3});
  add_filter("w2", {2, 4, 1, 1});
  add_conv("conv2d", "x", "w0", "a");
  add_activation("a", "b");
  add_conv("depthwise_conv2d", "b", "w1", "c");
  add_activation("c", "d");
  add_conv("conv2d", "d", "w2", "y");
  model.program.blocks = {block};
  EXPECT_TRUE(NormalizeOps(registry, &model.program).ok());
  model.names = {{"x"}, {"y"}};
  return model;
}

TEST_F(EqualizeLeNet, DepthwiseLayersBelongToBothPairs) {
  std::vector<float> values;
  for (int i = 0; i < 2 * 3 * 36; ++i)
    values.push_back(std::cos(static_cast<float>(i)));
  const Array x = MakeArray<float>({2, 3, 6, 6}, values);
  InferenceModel model = Separable(registry_, "relu");
  const Array before = Answers(model, x);
  float most = 0;
  for (int64_t i = 0; i < before.size(); ++i)
    most = std::max(most, std::fabs(before.data<float>()[i]));
  ASSERT_GT(most, 0);
  EXPECT_EQ(EqualizeLayers(&model), 2);
  EXPECT_LT(LargestDifference(Answers(model, x), before), 1e-5f * most);
  // All three are of one size now, channel by channel.
  for (int64_t c = 0; c < 4; ++c) {
    float r[3] = {};
    const auto see = [&](int which, const char* name, int64_t i) {
      r[which] =
          std::max(r[which], std::fabs(model.params.at(name).data<float>()[i]));
    };
    for (int64_t i = 0; i < 3; ++i) see(0, "w0", c * 3 + i);
    for (int64_t i = 0; i < 9; ++i) see(1, "w1", c * 9 + i);
    for (int64_t o = 0; o < 2; ++o) see(2, "w2", o * 4 + c);
    EXPECT_NEAR(r[0] / r[1], 1, 0.03) << c;
    EXPECT_NEAR(r[1] / r[2], 1, 0.03) << c;
  }
}

TEST_F(EqualizeLeNet, WhatBendsAtAFixedSizeIsLeftAlone) {
  for (const char* activation : {"relu6", "hard_swish", "sigmoid"}) {
    InferenceModel model = Separable(registry_, activation);
    EXPECT_EQ(EqualizeLayers(&model), 0) << activation;
  }
}

}  // namespace test_equalize
}  // namespace pd
