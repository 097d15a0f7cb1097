// SPDX-License-Identifier: Apache-2.0
// Learned roundings against all roundings that there are, against what the
// network itself gives, and on pictures that they were not learned from.
#include "libcore/quant/adaround.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/rng.h"
#include "libcore/quant/layer_errors.h"
#include "tests/quant/quant_fixture.h"

namespace pd {
namespace test_adaround {

std::vector<float> Numbers(size_t n, uint64_t stream) {
  const Philox random(7, stream);
  std::vector<float> numbers;
  for (size_t i = 0; i < n; ++i)
    numbers.push_back(static_cast<float>(random.Block(i)[0]) / 4294967296.0f);
  return numbers;
}

// Of inputs [count][size], not centred, so that they go together.
InputMoments MomentsOf(const std::vector<float>& inputs, int64_t size) {
  InputMoments m;
  m.rows.size = size;
  m.count = static_cast<int64_t>(inputs.size()) / size;
  m.sums.resize(static_cast<size_t>(size * size));
  for (int64_t n = 0; n < m.count; ++n)
    for (int64_t i = 0; i < size; ++i)
      for (int64_t k = 0; k < size; ++k)
        m.sums[static_cast<size_t>(i * size + k)] +=
            inputs[static_cast<size_t>(n * size + i)] *
            inputs[static_cast<size_t>(n * size + k)];
  return m;
}

double SquaredError(const std::vector<float>& inputs,
                    const std::vector<double>& e) {
  double total = 0;
  for (size_t n = 0; n < inputs.size(); n += e.size()) {
    double sum = 0;
    for (size_t k = 0; k < e.size(); ++k) sum += e[k] * inputs[n + k];
    total += sum * sum;
  }
  return total / static_cast<double>(inputs.size() / e.size());
}

TEST(LearnRounding, ErrorsOfEqualInputsCancel) {
  // The scale is the greatest weight, so a weight is its own quotient.
  const Array w = MakeArray<float>({1, 5}, {127, 10.4f, 20.4f, 30.4f, 40.4f});
  auto q = QuantizeWeight(w, 0, WeightOptions());
  ASSERT_TRUE(q.ok()) << q.status();
  InputMoments moments = MomentsOf(std::vector<float>(5, 1), 5);
  moments.rows.outputs = 1;
  const RoundingGain gain = LearnRounding(w, moments, &*q);
  int32_t sum = 0;
  for (const int32_t v : q->values) sum += v;
  EXPECT_EQ(sum, 127 + 102);  // of 101.6
  EXPECT_NEAR(gain.nearest, 1.6 * 1.6, 1e-3);
  EXPECT_NEAR(gain.learned, 0.4 * 0.4, 1e-3);
}

TEST(LearnRounding, IsNearTheBestOfAll) {
  constexpr int64_t kSize = 10;
  double nearest = 0, learned = 0, best = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::vector<float> values = Numbers(kSize, 2 * seed);
    values[0] = 1;
    const Array w = MakeArray<float>({1, kSize}, values);
    const std::vector<float> inputs = Numbers(kSize * 40, 2 * seed + 1);
    WeightOptions options;
    options.bits = 4;
    auto q = QuantizeWeight(w, 0, options);
    ASSERT_TRUE(q.ok()) << q.status();
    InputMoments moments = MomentsOf(inputs, kSize);
    moments.rows.outputs = 1;
    const RoundingGain gain = LearnRounding(w, moments, &*q);
    std::vector<double> e(kSize);
    for (size_t k = 0; k < kSize; ++k) e[k] = q->values[k] / 7.0 - values[k];
    EXPECT_NEAR(SquaredError(inputs, e), gain.learned, 1e-4 * gain.nearest);
    nearest += gain.nearest;
    learned += gain.learned;
    double least = std::numeric_limits<double>::infinity();
    for (int choice = 0; choice < 1 << kSize; ++choice) {
      for (size_t k = 0; k < kSize; ++k)
        e[k] =
            std::min(std::floor(values[k] * 7.0) + (choice >> k & 1), 7.0) / 7 -
            values[k];
      least = std::min(least, SquaredError(inputs, e));
    }
    best += least;
    EXPECT_LE(gain.learned, gain.nearest * 1.0001);
  }
  EXPECT_LT(learned, 0.8 * nearest);
  EXPECT_LT(learned, 1.5 * best);
}

class LearnLeNet : public QuantizeLeNet {
 protected:
  QuantizeResult Quantized(const Array& x, int bits, bool learn) {
    QuantizeOptions options;
    options.weights.bits = bits;
    options.learn_rounding = learn;
    options.skips = {"linear_0.w_0"};  // most of the weights, and the time
    auto result = Quantize(x, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  // The mean squared error of `variable` where only `weight` is rounded.
  double ErrorOf(const Quantization& q, const std::string& weight,
                 const std::string& variable, const Array& x) {
    InferenceModel rounded = model_;
    rounded.params[weight] = q.weights.at(weight).AsDequantized();
    const auto loader = LoaderOf(x);
    const auto errors = CompareModels(&registry_, model_, rounded, {variable},
                                      loader.get(), 1, nullptr);
    EXPECT_TRUE(errors.ok()) << errors.status();
    return (*errors)[0].noise;
  }
};

// So few pictures that every output counts: the errors that are said are those
// of the network.
TEST_F(LearnLeNet, ErrorsAreTheNetworks) {
  const Array x = Pictures("train", 2);
  const QuantizeResult nearest = Quantized(x, 8, false);
  const QuantizeResult learned = Quantized(x, 8, true);
  ASSERT_EQ(learned.roundings.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const RoundingGain& gain = learned.roundings[i];
    const std::string& output = learned.quantization.plan.ops[i].output;
    const double before = ErrorOf(nearest.quantization, gain.weight, output, x);
    const double after = ErrorOf(learned.quantization, gain.weight, output, x);
    EXPECT_NEAR(after / before, gain.learned / gain.nearest, 0.02)
        << gain.weight;
    EXPECT_LT(gain.learned, 0.5 * gain.nearest) << gain.weight;
    EXPECT_EQ(learned.quantization.weights.at(gain.weight).scales,
              nearest.quantization.weights.at(gain.weight).scales);
  }
}

TEST_F(LearnLeNet, HelpsOnOtherPictures) {
  const Array calibration = Pictures("train", 256);
  const Array test = Pictures("t10k", 64);
  for (const int bits : {8, 4}) {
    const QuantizeResult nearest = Quantized(calibration, bits, false);
    const QuantizeResult learned = Quantized(calibration, bits, true);
    for (const RoundingGain& gain : learned.roundings) {
      const auto& ops = learned.quantization.plan.ops;
      const auto op = std::find_if(ops.begin(), ops.end(), [&](const auto& o) {
        return o.weight == gain.weight;
      });
      EXPECT_LT(
          ErrorOf(learned.quantization, gain.weight, op->output, test),
          0.6 * ErrorOf(nearest.quantization, gain.weight, op->output, test))
          << gain.weight << " of " << bits << " bits";
    }
  }
}

}  // namespace test_adaround
}  // namespace pd
