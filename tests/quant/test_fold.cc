// SPDX-License-Identifier: Apache-2.0
// Batch norms that become part of integers change no answer.
#include "libcore/quant/fold.h"

#include <cmath>
#include <string>

#include "formats/npz.h"
#include "tests/quant/quant_fixture.h"

namespace pd {
namespace test_fold {

class FoldQuantizedTest : public QuantizeLeNet {
 protected:
  void SetUp() override {
    QuantizeLeNet::SetUp();
    auto model = ReadInferenceModel(DeployData("cifar_resnet"));
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    const auto feed = ReadNpz(DeployData("cifar_resnet-feed.npz"));
    ASSERT_TRUE(feed.ok()) << feed.status();
    x_ = feed->begin()->second;
  }

  const OpDesc& FirstNorm() const {
    for (const OpDesc& op : model_.program.global().ops)
      if (op.type == "batch_norm") return op;
    ADD_FAILURE() << "no batch norm";
    return model_.program.global().ops[0];
  }

  // Sets channel 1 of the first batch norm's scale.
  void SetFactor(float value) {
    Array& scale = model_.params.at(FirstNorm().In("Scale"));
    std::vector<float> values(scale.data<float>(),
                              scale.data<float>() + scale.size());
    values[1] = value;
    scale = MakeArray<float>(scale.shape, values);
  }

  Quantization Quantized(const WeightOptions& weights) {
    QuantizeOptions options;
    options.calibration.algorithm = QuantAlgorithm::kAbsMax;
    options.weights = weights;
    auto result = Quantize(x_, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result->quantization;
  }

  // The greatest difference, as a part of the greatest answer.
  double Difference(const InferenceModel& a, const InferenceModel& b) {
    const Array p = Answers(a, x_), q = Answers(b, x_);
    EXPECT_EQ(p.shape, q.shape);
    double most = 0, difference = 0;
    for (int64_t i = 0; i < p.size(); ++i) {
      const double v = p.data<float>()[i];
      most = std::max(most, std::fabs(v));
      difference = std::max(difference, std::fabs(v - q.data<float>()[i]));
    }
    return difference / most;
  }

  Array x_;
};

TEST_F(FoldQuantizedTest, AnswersStay) {
  // A negative factor turns integers round; of none, nothing is left.
  for (const float factor : {0.7f, -0.7f, 0.0f}) {
    SetFactor(factor);
    const Quantization before = Quantized({});
    for (const bool fake : {false, true}) {
      InferenceModel model = model_;
      Quantization q = before;
      const auto folded = FoldQuantized(&model, &q);
      ASSERT_TRUE(folded.ok()) << folded.status();
      EXPECT_EQ(*folded, 9);
      ASSERT_EQ(q.plan.ops.size(), before.plan.ops.size());
      for (const QuantOp& op : q.plan.ops)
        EXPECT_EQ(q.thresholds.count(op.output), op.output[0] == 'c' ? 0 : 1)
            << op.output;
      const auto write = fake ? WithFakeQuantize
                              : +[](const InferenceModel& m,
                                    const Quantization& quantization) {
                                  return WithQuantizeLinear(m, quantization);
                                };
      const InferenceModel small = write(model, q);
      // A last bit may turn a rounding.
      EXPECT_LT(Difference(write(model_, before), small), 0.03) << factor;
      for (const OpDesc& op : small.program.global().ops)
        EXPECT_NE(op.type, "batch_norm");
      if (!fake) {
        EXPECT_LT(ParameterBytes(small), 0.26 * ParameterBytes(model_));
      }
    }
  }
}

TEST_F(FoldQuantizedTest, IntegersStay) {
  SetFactor(-0.7f);
  const std::string filter = model_.program.global().ops[0].In("Filter");
  const Quantization before = Quantized({});
  Quantization q = before;
  InferenceModel model = model_;
  ASSERT_TRUE(FoldQuantized(&model, &q).ok());
  const QuantizedWeight &was = before.weights.at(filter),
                        &is = q.weights.at(filter);
  const size_t each = was.values.size() / was.scales.size();
  for (size_t i = 0; i < was.values.size(); ++i)
    EXPECT_EQ(is.values[i], i / each == 1 ? -was.values[i] : was.values[i]);
  const Array& variance = model_.params.at(FirstNorm().In("Variance"));
  EXPECT_FLOAT_EQ(
      is.scales[1],
      was.scales[1] * 0.7f / std::sqrt(variance.data<float>()[1] + 1e-5f));
}

TEST_F(FoldQuantizedTest, OneScaleAndBadNumbers) {
  WeightOptions weights;
  weights.per_channel = false;
  Quantization q = Quantized(weights);
  InferenceModel model = model_;
  EXPECT_EQ(FoldQuantized(&model, &q).value(), 0);
  q = Quantized({});
  SetFactor(std::nanf(""));
  model = model_;
  const auto folded = FoldQuantized(&model, &q);
  EXPECT_TRUE(absl::IsInvalidArgument(folded.status())) << folded.status();
}

}  // namespace test_fold
}  // namespace pd
