// SPDX-License-Identifier: Apache-2.0
// Layers that are random in training: what they do to each value, and how
// often. (What they give in evaluation is in testdata/layers.)
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_random_layers {

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

// Mean and standard deviation of numbers.
std::pair<double, double> Moments(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) sum += v;
  const double mean = sum / static_cast<double>(values.size());
  for (const float v : values) squares += (v - mean) * (v - mean);
  return {mean, std::sqrt(squares / static_cast<double>(values.size()))};
}

// The layer draws as many numbers as x has; the sum makes them depend on x.
std::vector<float> Draw(const std::string& layer, uint64_t seed = 5) {
  const std::string text = absl::StrCat(
      layer, " name: \"z\" } layer { input: [\"x\", \"z\"] add {}");
  return Train(text, {200, 100}, std::vector<float>(20000, 0), seed).y;
}

TEST(RandomLayers, NormalUniformAndGumbelHaveTheirMoments) {
  const auto normal = Moments(Draw("normal { mean: 3 std: 0.5 }"));
  EXPECT_NEAR(normal.first, 3, 0.02);
  EXPECT_NEAR(normal.second, 0.5, 0.02);
  const std::vector<float> drawn = Draw("uniform { min: 2 max: 5 }");
  for (const float v : drawn) EXPECT_TRUE(v >= 2 && v < 5) << v;
  const auto uniform = Moments(drawn);
  EXPECT_NEAR(uniform.first, 3.5, 0.04);
  EXPECT_NEAR(uniform.second, 3 / std::sqrt(12.0), 0.04);
  const auto gumbel = Moments(Draw("gumbel { loc: 1 scale: 2 }"));
  EXPECT_NEAR(gumbel.first, 1 + 2 * 0.5772, 0.08);
  EXPECT_NEAR(gumbel.second, 2 * M_PI / std::sqrt(6.0), 0.08);
  EXPECT_NE(Draw("normal {}"), Draw("normal {}", 6));
}

TEST(RandomLayers, BernoulliDrawsByItsProbabilities) {
  std::vector<float> x(20000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 0.2f : 0.7f;
  const std::vector<float> y =
      Train(
          "name: \"z\" bernoulli {} } layer { input: [\"z\", \"x\"] "
          "subtract {}",
          {200, 100}, x)
          .y;
  double ones[2] = {0, 0};
  for (size_t i = 0; i < y.size(); ++i) {
    const float drawn = std::round((y[i] + x[i]) * 1e4f) / 1e4f;
    EXPECT_TRUE(drawn == 0 || drawn == 1) << drawn;
    ones[i % 2] += drawn;
  }
  EXPECT_NEAR(ones[0] / 10000, 0.2, 0.02);
  EXPECT_NEAR(ones[1] / 10000, 0.7, 0.02);
}

// z = mean + std * noise: dz/dmean is 1, dz/dstd the noise.
TEST(RandomLayers, NormalHandsGradientsToMeanAndDeviation) {
  const std::vector<float> x = Spread(300);
  const Trained mean = Train(
      "name: \"s\" full_like { fill_value: 0.5 } } layer { normal { "
      "mean_of: \"x\" std_of: \"s\" }",
      {100, 3}, x);
  EXPECT_EQ(mean.dx, std::vector<float>(300, 1));
  const Trained both =
      Train("normal { mean_of: \"x\" std_of: \"x\" }", {100, 3}, x);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(both.dx[i], both.y[i] / x[i], 1e-3f * std::abs(both.dx[i]));
}

TEST(RandomLayers, DetachStopsTheGradient) {
  const Trained got = Train(
      "name: \"d\" detach {} } layer { input: [\"x\", \"d\"] "
      "multiply {}",
      {1, 3}, {2, -3, 5});
  EXPECT_EQ(got.y, (std::vector<float>{4, 9, 25}));
  EXPECT_EQ(got.dx, (std::vector<float>{2, -3, 5}));  // of one factor alone
}

// The two forms of a layer over x [-1, 2].
TEST(RandomLayers, MeansInEvaluation) {
  const std::vector<std::pair<std::string, float>> kMeans = {
      {"normal { mean: 3 in_evaluation: mean }", 3},
      {"normal { mean_of: \"x\" in_evaluation: mean }", 0.25},
      {"uniform { min: 1 max: 4 in_evaluation: mean }", 2.5},
      {"gumbel { loc: 1 in_evaluation: mean }", 1.5772157f},
      {"bernoulli { in_evaluation: mean }", 0.25}};
  for (const auto& [layer, mean] : kMeans) {
    const auto job = ParseJob(
        absl::StrCat("model { input { name: \"x\" shape: [-1, 2] } layer { ",
                     layer, " } }"),
        "job.pbtxt");
    ASSERT_TRUE(job.ok()) << job.status();
    const auto built = BuildModel(*job, ReferenceRegistry());
    ASSERT_TRUE(built.ok()) << built.status();
    Session session(&ReferenceRegistry(), 3);
    const NamedArrays feeds = {
        {"x", MakeArray({3, 2}, std::vector<float>(6, 0.25f))}};
    for (const bool test : {true, false}) {
      const auto results =
          session.Run(test ? built->test : built->main, feeds, built->outputs);
      ASSERT_TRUE(results.ok()) << results.status();
      const float* y = results->at(built->outputs[0]).data<float>();
      const bool same = std::all_of(y, y + 6, [expected = mean](float v) {
        return std::abs(v - expected) < 1e-6f;
      });
      EXPECT_EQ(same, test) << layer;
    }
  }
}

TEST(RandomLayers, SayWhatIsMissing) {
  const auto error = [](const std::string& layers) {
    const auto job = ParseJob(
        "model { input { name: \"x\" shape: [-1, 2] }\n" + layers + " }",
        "job.pbtxt");
    if (!job.ok()) return std::string(job.status().message());
    return std::string(
        BuildModel(*job, ReferenceRegistry()).status().message());
  };
  EXPECT_EQ(error("layer { normal { shape: [3] mean: 1 mean_of: \"x\" } }"),
            "job.pbtxt:2:1: 'mean' and 'mean_of' say the same; leave one out");
  EXPECT_EQ(error("layer { input: \"x\" uniform { shape: [3] } }"),
            "job.pbtxt:2:1: uniform has its shape from a field and reads no "
            "input; leave 'input' out");
  EXPECT_EQ(error("layer { uniform { min: 3 max: 2 } }"),
            "job.pbtxt:2:1: 'min' is 3 and 'max' 2; expected min <= max");
  EXPECT_EQ(error("layer { gumbel { dtype: int32 } }"),
            "job.pbtxt:2:1: gumbel draws float32 or float64; 'dtype' is int32");
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

}  // namespace test_random_layers
}  // namespace pd
