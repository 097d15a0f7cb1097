// SPDX-License-Identifier: Apache-2.0
// Integers of weights, worked out by hand.
#include "libcore/quant/weights.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pd {
namespace test_weights {

QuantizedWeight Quantize(const Array& w, int axis,
                         const WeightOptions& options = {}) {
  auto quantized = QuantizeWeight(w, axis, options);
  EXPECT_TRUE(quantized.ok()) << quantized.status();
  return *std::move(quantized);
}

TEST(QuantizeWeight, RoundsHalvesToEven) {
  // The scale is 127, so a weight is its own quotient.
  const auto q = Quantize(
      MakeArray<float>({6}, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 127}), -1);
  EXPECT_EQ(q.scales, std::vector<float>{127});
  EXPECT_EQ(q.values, (std::vector<int32_t>{0, 2, 2, 0, -2, 127}));
  EXPECT_EQ(q.AsIntegers().dtype, DType::kInt8);
}

TEST(QuantizeWeight, EachChannelHasItsScale) {
  const Array w = MakeArray<float>({2, 3}, {1, -2, 0.5f, 10, 4, -0.25f});
  const auto rows = Quantize(w, 0);
  EXPECT_EQ(rows.scales, (std::vector<float>{2, 10}));
  EXPECT_EQ(rows.values, (std::vector<int32_t>{64, -127, 32, 127, 51, -3}));
  const auto columns = Quantize(w, 1);
  EXPECT_EQ(columns.scales, (std::vector<float>{10, 4, 0.5f}));
  EXPECT_EQ(columns.values,
            (std::vector<int32_t>{13, -64, 127, 127, 127, -64}));
  WeightOptions whole;
  whole.per_channel = false;
  EXPECT_EQ(Quantize(w, 0, whole).scales, (std::vector<float>{10}));
  EXPECT_NEAR(columns.AsDequantized().data<float>()[0], 13 * 10 / 127.0, 1e-6);
}

TEST(QuantizeWeight, ChannelsOfZerosAndConstants) {
  const auto q =
      Quantize(MakeArray<float>({3, 2}, {0, 0, 3, 3, -1e-30f, 0}), 0);
  for (const float scale : q.scales) {
    EXPECT_TRUE(std::isfinite(scale));
    EXPECT_GT(scale, 0);
  }
  EXPECT_EQ(q.values, (std::vector<int32_t>{0, 0, 127, 127, -127, 0}));
}

TEST(QuantizeWeight, SixteenBits) {
  WeightOptions options;
  options.bits = 16;
  const auto q = Quantize(MakeArray<float>({2}, {1, -0.5f}), -1, options);
  EXPECT_EQ(q.values, (std::vector<int32_t>{32767, -16384}));
  EXPECT_EQ(q.AsIntegers().dtype, DType::kInt16);
}

double SquaredError(const Array& w, const QuantizedWeight& q) {
  const Array back = q.AsDequantized();
  double sum = 0;
  for (int64_t i = 0; i < w.size(); ++i)
    sum += std::pow(w.data<float>()[i] - back.data<float>()[i], 2);
  return sum;
}

TEST(QuantizeWeight, MseLosesLess) {
  std::vector<float> values;
  for (int i = 0; i < 5000; ++i) values.push_back(std::sin(i * 0.7f));
  values.push_back(1.02f);
  const Array w = MakeArray<float>({1, 5001}, values);
  WeightOptions mse;
  mse.mse = true;
  const auto by_mse = Quantize(w, 0, mse);
  EXPECT_LT(by_mse.scales[0], 1.02f);
  EXPECT_LT(SquaredError(w, by_mse), SquaredError(w, Quantize(w, 0)));
}

TEST(QuantizeWeight, MeansStayWhereAskedFor) {
  std::vector<float> values = {127};
  for (int i = 0; i < 40; ++i) values.push_back(10.4f);  // all round down
  const Array w = MakeArray<float>({1, 41}, values);
  WeightOptions options;
  options.keep_mean = true;
  int64_t plain = 0, kept = 0;
  for (const int32_t v : Quantize(w, 0).values) plain += v;
  for (const int32_t v : Quantize(w, 0, options).values) kept += v;
  EXPECT_EQ(plain, 127 + 400);
  EXPECT_EQ(kept, 127 + 416);
}

TEST(QuantizeWeight, RefusesWhatIsNoNumber) {
  const auto q = QuantizeWeight(MakeArray<float>({2}, {1, std::nanf("")}), -1,
                                WeightOptions());
  EXPECT_NE(q.status().message().find("element 1"), std::string::npos)
      << q.status();
}

}  // namespace test_weights
}  // namespace pd
