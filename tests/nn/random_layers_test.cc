// SPDX-License-Identifier: Apache-2.0
// Layers that are random in training: what they do to each value, and how
// often. (What they give in evaluation is in testdata/layers.)
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"

namespace pd {
namespace {

const OpRegistry& Registry() {
  static const OpRegistry* const kRegistry = [] {
    auto* registry = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(registry).ok());
    return registry;
  }();
  return *kRegistry;
}

struct Trained {
  std::vector<float> y, dx;  // of sum(y)
};

// The training program of one layer `text` over x, run once with this seed.
Trained Train(const std::string& text, const Shape& shape,
              const std::vector<float>& x, uint64_t seed = 5) {
  std::string extents = "-1";
  for (size_t i = 1; i < shape.size(); ++i)
    absl::StrAppend(&extents, ", ", shape[i]);
  const auto job = ParseJob(absl::StrCat("model { input { name: \"x\" shape: [",
                                         extents, "] } layer { ", text, " } }"),
                            "job.pbtxt");
  EXPECT_TRUE(job.ok()) << job.status();
  auto built = BuildModel(*job, Registry());
  EXPECT_TRUE(built.ok()) << built.status();
  BackwardOptions options;
  const std::string y = built->outputs[0];
  options.targets[y] = "";
  options.wrt = {"x"};
  const auto gradients = AppendBackward(Registry(), options, &built->main);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  Session session(&Registry(), seed);
  const std::string dx = gradients->at("x");
  const auto results =
      session.Run(built->main, {{"x", MakeArray(shape, x)}}, {y, dx});
  EXPECT_TRUE(results.ok()) << results.status();
  const auto values = [&](const std::string& name) {
    const float* data = results->at(name).data<float>();
    return std::vector<float>(data, data + x.size());
  };
  return {values(y), values(dx)};
}

// Values of a normal distribution's shape: its quantiles, in a fixed order.
std::vector<float> Spread(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const double u =
        (static_cast<double>((i * 7919) % n) + 0.5) / static_cast<double>(n);
    // The logistic's quantile with variance 1.
    x[i] = static_cast<float>(std::log(u / (1 - u)) * std::sqrt(3.0) / M_PI);
  }
  return x;
}

TEST(RandomLayers, DropoutOfWholeChannels) {
  const Shape shape = {50, 40, 2, 3};
  const std::vector<float> x(50 * 40 * 6, 3.0f);
  const Trained got = Train("dropout2d { p: 0.25 }", shape, x);
  size_t zeros = 0;
  for (size_t i = 0; i < got.y.size(); ++i) {
    EXPECT_EQ(got.y[i], got.y[i / 6 * 6]);  // the channel's first
    EXPECT_TRUE(got.y[i] == 0 || std::abs(got.y[i] - 4) < 1e-5f) << got.y[i];
    EXPECT_FLOAT_EQ(got.dx[i] * 3, got.y[i]);
    zeros += got.y[i] == 0 ? 1 : 0;
  }
  // 2000 channels: a deviation of 0.01.
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(x.size()), 0.25,
              0.04);
  EXPECT_NE(got.y, Train("dropout2d { p: 0.25 }", shape, x, 6).y);
}

TEST(RandomLayers, DropoutAlongAnAxis) {
  const Shape shape = {7, 300, 2};
  const std::vector<float> x(7 * 300 * 2, 1.0f);
  const Trained got =
      Train("dropout { p: 0.5 axis: 1 mode: downscale_in_infer }", shape, x);
  size_t zeros = 0;
  for (size_t i = 0; i < got.y.size(); ++i) {
    EXPECT_EQ(got.y[i], got.y[i % 600 / 2 * 2]);
    EXPECT_TRUE(got.y[i] == 0 || got.y[i] == 1) << got.y[i];
    zeros += got.y[i] == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(x.size()), 0.5,
              0.12);
}

TEST(RandomLayers, Dropout3DOfChannelsLast) {
  const Shape shape = {30, 2, 1, 2, 20};
  const std::vector<float> x(30 * 4 * 20, 1.0f);
  const Trained got =
      Train("dropout3d { p: 0.5 data_format: NDHWC }", shape, x);
  std::set<float> values;
  for (size_t i = 0; i < got.y.size(); ++i) {
    EXPECT_EQ(got.y[i], got.y[i / 80 * 80 + i % 20]);
    values.insert(got.y[i]);
  }
  EXPECT_EQ(values, (std::set<float>{0, 2}));
}

// PaddlePaddle's formula: a and b for p = 0.3 as its program has them.
TEST(RandomLayers, AlphaDropoutKeepsMeanAndVariance) {
  const Shape shape = {200, 100};
  const std::vector<float> x = Spread(20000);
  const Trained got = Train("alpha_dropout { p: 0.3 }", shape, x);
  constexpr float kA = 0.860952615737915f, kB = 0.4540920555591583f;
  constexpr float kDropped = -1.7580993175506592f * kA + kB;
  double sum = 0, squares = 0;
  size_t dropped = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool kept = std::abs(got.dx[i] - kA) < 1e-5f;
    EXPECT_NEAR(got.y[i], kept ? kA * x[i] + kB : kDropped, 1e-5f);
    EXPECT_TRUE(kept || got.dx[i] == 0) << got.dx[i];
    dropped += kept ? 0 : 1;
    sum += got.y[i];
    squares += static_cast<double>(got.y[i]) * got.y[i];
  }
  EXPECT_NEAR(static_cast<double>(dropped) / 20000, 0.3, 0.015);
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
}

TEST(RandomLayers, RReluDrawsItsSlopes) {
  const Shape shape = {100, 50};
  const std::vector<float> x = Spread(5000);
  const Trained got = Train("rrelu { lower: 0.2 upper: 0.6 }", shape, x);
  double sum = 0;
  size_t below = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] >= 0) {
      EXPECT_EQ(got.y[i], x[i]);
      continue;
    }
    const double slope = got.y[i] / x[i];
    EXPECT_GE(slope, 0.2 - 1e-5);
    EXPECT_LE(slope, 0.6 + 1e-5);
    EXPECT_NEAR(got.dx[i], slope, 1e-5);
    sum += slope;
    ++below;
  }
  EXPECT_NEAR(sum / static_cast<double>(below), 0.4, 0.02);
}

}  // namespace
}  // namespace pd
