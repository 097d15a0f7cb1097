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
#include "tests/ops/registry.h"

namespace pd {
namespace {

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
  auto built = BuildModel(*job, ReferenceRegistry());
  EXPECT_TRUE(built.ok()) << built.status();
  BackwardOptions options;
  const std::string y = built->outputs[0];
  options.targets[y] = "";
  options.wrt = {"x"};
  const auto gradients =
      AppendBackward(ReferenceRegistry(), options, &built->main);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  Session session(&ReferenceRegistry(), seed);
  const std::string dx = gradients->at("x");
  const auto results =
      session.Run(built->main, {{"x", MakeArray(shape, x)}}, {y, dx});
  EXPECT_TRUE(results.ok()) << results.status();
  const auto values = [&](const std::string& name) {
    const Array& array = results->at(name);
    const float* data = array.data<float>();
    return std::vector<float>(data, data + NumElements(array.shape));
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

// Logits 0, 1, 2 give class k with probability e^k / (1 + e + e^2).
TEST(RandomLayers, GumbelSoftmaxDrawsByTheLogits) {
  const Shape shape = {20000, 3};
  std::vector<float> x(60000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 3);
  const Trained got = Train("gumbel_softmax { hard: true }", shape, x);
  double drawn[3] = {0, 0, 0};
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_TRUE(got.y[i] == 0 || got.y[i] == 1) << got.y[i];
    drawn[i % 3] += got.y[i];
  }
  const double total = 1 + M_E + M_E * M_E;
  EXPECT_EQ(drawn[0] + drawn[1] + drawn[2], 20000);  // one of each row
  for (int k = 0; k < 3; ++k)
    EXPECT_NEAR(drawn[k] / 20000, std::exp(k) / total, 0.015);
  EXPECT_NE(got.y, Train("gumbel_softmax { hard: true }", shape, x, 6).y);
}

// y = softmax((x + g) / t) whatever g: dy_0/dx_0 = y_0 (1 - y_0) / t, and the
// hard sample has the soft one's gradient.
TEST(RandomLayers, GumbelSoftmaxDifferentiatesTheSoftSample) {
  const Shape shape = {40, 2, 3};
  const std::vector<float> x = Spread(240);
  const std::string second =
      " } layer { name: \"l\" slice { axes: 1 starts: 0 ends: 1 }";
  const auto train = [&](const std::string& more) {
    return Train(absl::StrCat("gumbel_softmax { axis: 1 temperature: 0.5 ",
                              more, " }", second),
                 shape, x);
  };
  const Trained soft = train(""), hard = train("hard: true");
  EXPECT_EQ(soft.dx, hard.dx);
  for (size_t n = 0; n < 40; ++n)
    for (size_t k = 0; k < 3; ++k) {
      const float y = soft.y[n * 3 + k];  // of class 0: [40, 1, 3]
      EXPECT_EQ(hard.y[n * 3 + k], y > 0.5f ? 1 : 0);
      EXPECT_NEAR(soft.dx[n * 6 + k], y * (1 - y) / 0.5f, 1e-5f);
      EXPECT_NEAR(soft.dx[n * 6 + 3 + k], -y * (1 - y) / 0.5f, 1e-5f);
    }
}

TEST(RandomLayers, ClassCenterSampleKeepsTheLabelsClasses) {
  const auto job = ParseJob(
      "model { input { name: \"x\" shape: -1 dtype: int64 } layer { name: "
      "\"l\" class_center_sample { num_classes: 12 num_samples: 6 } } output: "
      "[\"l\", \"l:sampled_class_center\"] }",
      "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto built = BuildModel(*job, ReferenceRegistry());
  ASSERT_TRUE(built.ok()) << built.status();
  const std::vector<int64_t> labels = {7, 2, 7, 11, 2};
  std::vector<int> drawn(12, 0);
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Session session(&ReferenceRegistry(), seed);
    const auto got = session.Run(built->main, {{"x", MakeArray({5}, labels)}},
                                 built->outputs);
    ASSERT_TRUE(got.ok()) << got.status();
    const Array& remapped = got->at(built->outputs[0]);
    const Array& centers = got->at(built->outputs[1]);
    ASSERT_EQ(centers.shape, Shape{6});
    const int64_t* classes = centers.data<int64_t>();
    EXPECT_EQ(std::set<int64_t>(classes, classes + 6).size(), 6u);
    for (size_t i = 0; i < labels.size(); ++i) {
      const int64_t place = remapped.data<int64_t>()[i];
      ASSERT_TRUE(place >= 0 && place < 6);
      EXPECT_EQ(classes[place], labels[i]);
    }
    for (int i = 0; i < 6; ++i) ++drawn[static_cast<size_t>(classes[i])];
  }
  // Three of the nine others each time: 200 of 600, a deviation of 11.5.
  for (size_t c = 0; c < 12; ++c)
    EXPECT_NEAR(drawn[c], c == 2 || c == 7 || c == 11 ? 600 : 200, 55) << c;
}

}  // namespace
}  // namespace pd
