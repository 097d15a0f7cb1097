// SPDX-License-Identifier: Apache-2.0
// LeNet, quantized with PaddlePaddle's calibration pictures: its thresholds and
// its answers (testdata/quant).
#include "libcore/quant/quantize.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "formats/npz.h"
#include "libcore/quant/layer_errors.h"
#include "tests/quant/quant_fixture.h"

namespace pd {
namespace test_quantize {

TEST_F(QuantizeLeNet, ThresholdsArePaddlePaddles) {
  std::ifstream file(std::string(PD_TESTDATA) + "/quant/lenet-thresholds.json");
  const nlohmann::json all = nlohmann::json::parse(file);
  const Array x = Pictures("train", 512);
  for (const std::string& name : QuantAlgorithmNames()) {
    QuantizeOptions options;
    options.calibration.algorithm = *ParseQuantAlgorithm(name);
    const auto result = Quantize(x, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->calibration.records, 512);
    const auto& found = result->calibration.variables;
    ASSERT_GT(all[name].size(), 15u);
    for (const auto& [variable, want] : all[name].items()) {
      ASSERT_EQ(found.count(variable), 1u) << variable;
      const ActivationStats& stats = found.at(variable);
      if (name == "min_max") {
        EXPECT_NEAR(stats.range.min, want[0], 1e-5) << variable;
        EXPECT_NEAR(stats.range.max, want[1], 1e-5) << variable;
      } else {
        // A bin of their histogram, where there is one.
        const bool bins = name == "KL" || name == "hist";
        const double most =
            bins ? (stats.range.abs_max - stats.range.abs_min) / kHistogramBins
                 : 1e-5 * want.get<double>();
        EXPECT_NEAR(stats.threshold, want, 1.001 * most)
            << name << " of " << variable;
      }
    }
  }
}

TEST_F(QuantizeLeNet, AnswersArePaddlePaddles) {
  const auto want =
      ReadNpz(std::string(PD_TESTDATA) + "/quant/lenet-logits.npz");
  ASSERT_TRUE(want.ok()) << want.status();
  const Array calibration = Pictures("train", 512);
  const Array test = Pictures("t10k", 64);
  for (const auto& [name, logits] : *want) {
    const bool linear = absl::EndsWith(name, "_linear");
    QuantizeOptions options;
    options.calibration.algorithm =
        *ParseQuantAlgorithm(name.substr(0, name.find('_')));
    options.form =
        linear ? QuantizeOptions::Form::kLinear : QuantizeOptions::Form::kFake;
    const auto result = Quantize(calibration, options);
    ASSERT_TRUE(result.ok()) << result.status();
    const Array got =
        Answers(linear ? WithQuantizeLinear(model_, result->quantization)
                       : WithFakeQuantize(model_, result->quantization),
                test);
    ASSERT_EQ(got.shape, logits.shape);
    // A last bit may turn a rounding, which is worth a 127th of a threshold.
    int64_t far = 0;
    for (int64_t i = 0; i < got.size(); ++i) {
      const float d = std::fabs(got.data<float>()[i] - logits.data<float>()[i]);
      far += d > 1e-3f;
      EXPECT_LT(d, 0.3f) << name << " " << i;
    }
    EXPECT_LE(far, got.size() / 20) << name;
  }
}

TEST_F(QuantizeLeNet, WeightsAreQuartered) {
  const auto result = Quantize(Pictures("train", 32), QuantizeOptions());
  ASSERT_TRUE(result.ok()) << result.status();
  const InferenceModel small = WithQuantizeLinear(model_, result->quantization);
  EXPECT_LT(ParameterBytes(small), 0.27 * ParameterBytes(model_));
}

TEST_F(QuantizeLeNet, BadValuesAreNamed) {
  Array x = Pictures("train", 96);
  std::vector<float> values(x.data<float>(), x.data<float>() + x.size());
  values[40 * 784 + 3] = std::nanf("");
  const auto result =
      Quantize(MakeArray<float>(x.shape, values), QuantizeOptions());
  EXPECT_TRUE(absl::IsAborted(result.status()));
  EXPECT_EQ(result.status().message(),
            "batch 1 of the calibration set, records from 32 on: 'x' holds 1 "
            "NaN and 0 Inf among 25088 values");
}

TEST_F(QuantizeLeNet, ZerosStayInFloat) {
  const std::vector<float> zeros(32 * 784, 0.0f);
  const auto result =
      Quantize(MakeArray<float>({32, 1, 28, 28}, zeros), QuantizeOptions());
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->quantization.plan.left.size(), 1u);
  EXPECT_EQ(result->quantization.plan.left[0].why, "'x' was nothing but zeros");
}

TEST_F(QuantizeLeNet, SkipsAndRefusals) {
  const auto plan = PlanQuantization(model_, {"conv2d_0*", "linear_2.w_0"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ops.size(), 3u);
  ASSERT_EQ(plan->left.size(), 2u);
  EXPECT_EQ(plan->left[0].why, "skipped by 'conv2d_0*'");
  EXPECT_TRUE(
      absl::IsNotFound(PlanQuantization(model_, {"no_such_thing"}).status()));
  const auto result = Quantize(Pictures("train", 32), QuantizeOptions());
  ASSERT_TRUE(result.ok()) << result.status();
  for (const bool fake : {false, true}) {
    const auto again = PlanQuantization(
        fake ? WithFakeQuantize(model_, result->quantization)
             : WithQuantizeLinear(model_, result->quantization),
        {});
    EXPECT_TRUE(absl::IsFailedPrecondition(again.status()));
  }
}

TEST_F(QuantizeLeNet, ErrorsAndSensitivities) {
  const Array x = Pictures("train", 64);
  const auto result = Quantize(x, QuantizeOptions());
  ASSERT_TRUE(result.ok()) << result.status();
  const Quantization& q = result->quantization;
  const auto loader = LoaderOf(x);
  // Of a model and itself there is no error.
  const auto same = CompareModels(&registry_, model_, model_,
                                  model_.names.fetches, loader.get(), 1, {});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ((*same)[0].noise, 0);
  EXPECT_NEAR((*same)[0].Cosine(), 1, 1e-12);
  const auto order =
      MeasureSensitivity(&registry_, model_, q, loader.get(), 1, {});
  ASSERT_TRUE(order.ok()) << order.status();
  ASSERT_EQ(order->size(), 5u);
  for (size_t i = 0; i < order->size(); ++i) {
    EXPECT_GT((*order)[i].sqnr, 20);
    if (i > 0) {
      EXPECT_GE((*order)[i].sqnr, (*order)[i - 1].sqnr);
    }
  }
  const auto all =
      CompareModels(&registry_, model_, WithQuantizeLinear(model_, q),
                    model_.names.fetches, loader.get(), 1, {});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_LT((*all)[0].Sqnr(), (*order)[0].sqnr + 1e-9);
  EXPECT_GT((*all)[0].Cosine(), 0.99);
}

}  // namespace test_quantize
}  // namespace pd
