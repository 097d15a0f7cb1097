// SPDX-License-Identifier: Apache-2.0
// Random operators against the mean, the variance and the range of their
// distributions. Bounds are six standard errors of 20000 numbers, which are the
// same in each run: a wrong formula misses them by far.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/rng.h"
#include "libcore/exec/session.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_random_ops {

constexpr int64_t kNumbers = 20000;

// The result of an op on `feeds`, by slot.
absl::StatusOr<Array> Draw(const std::string& type, const NamedArrays& feeds,
                           std::map<std::string, Attribute> attrs = {}) {
  ProgramDesc program;
  program.version = 2006000;
  program.blocks.emplace_back();
  BlockBuilder builder(&ReferenceRegistry(), &program);
  OpDesc op;
  op.type = type;
  op.attrs = std::move(attrs);
  for (const auto& [slot, value] : feeds) {
    VarDesc var;
    var.name = slot;
    var.dtype = value.dtype;
    var.shape = value.shape;
    builder.AddVar(var);
    op.SetInput(slot, {slot});
  }
  op.SetOutput(ReferenceRegistry().Find(type)->outputs()[0].name, {"drawn"});
  const absl::Status status = builder.Append(op);
  if (!status.ok()) return status;
  Session session(&ReferenceRegistry(), 1);
  auto got = session.Run(program, feeds, {"drawn"});
  if (!got.ok()) return got.status();
  return got->at("drawn");
}

std::vector<double> Numbers(const Array& array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.size(); ++i)
    values.push_back(array.dtype == DType::kInt64
                         ? static_cast<double>(array.data<int64_t>()[i])
                         : array.data<double>()[i]);
  return values;
}

// `fourth`: the fourth central moment, which the variance's error follows from.
void ExpectMoments(const std::vector<double>& values, double mean,
                   double variance, double fourth, const std::string& what) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  for (const double v : values) squares += (v - mean) * (v - mean);
  EXPECT_NEAR(sum / n, mean, 6 * std::sqrt(variance / n)) << what;
  EXPECT_NEAR(squares / n, variance,
              6 * std::sqrt((fourth - variance * variance) / n))
      << what;
}

Array Constant(double value, int64_t n = kNumbers) {
  return MakeArray({n}, std::vector<double>(static_cast<size_t>(n), value));
}

TEST(RandomOps, StandardGammaHasItsMoments) {
  for (const double shape : {0.3, 1.0, 4.5, 80.0}) {
    const auto drawn = Draw("standard_gamma", {{"x", Constant(shape)}});
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    const std::vector<double> values = Numbers(*drawn);
    for (const double v : values) ASSERT_GE(v, 0.0);
    ExpectMoments(values, shape, shape, 3 * shape * shape + 6 * shape,
                  absl::StrCat("gamma ", shape));
  }
}

TEST(RandomOps, BinomialHasItsMoments) {
  const double cases[][2] = {{1, 0.3},   {7, 0.9},     {40, 0.02}, {40, 0.5},
                             {200, 0.1}, {1000, 0.75}, {5, 0},     {5, 1}};
  for (const auto& [trials, p] : cases) {
    const std::vector<int32_t> counts(kNumbers, static_cast<int32_t>(trials));
    const auto drawn =
        Draw("binomial",
             {{"count", MakeArray({kNumbers}, counts)}, {"prob", Constant(p)}});
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    const std::vector<double> values = Numbers(*drawn);
    for (const double v : values) ASSERT_TRUE(v >= 0 && v <= trials) << v;
    const double variance = trials * p * (1 - p);
    ExpectMoments(values, trials * p, variance,
                  variance * (1 + (3 * trials - 6) * p * (1 - p)),
                  absl::StrCat("binomial ", trials, " ", p));
  }
}

TEST(RandomOps, PoissonAndExponentialHaveTheirMoments) {
  for (const double mean : {0.4, 3.0, 60.0}) {
    const auto drawn = Draw("poisson", {{"X", Constant(mean)}});
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    ExpectMoments(Numbers(*drawn), mean, mean, mean * (1 + 3 * mean),
                  absl::StrCat("poisson ", mean));
  }
  const auto drawn =
      Draw("exponential", {{"X", Constant(0)}}, {{"lambda", 2.0f}});
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  ExpectMoments(Numbers(*drawn), 0.5, 0.25, 9.0 / 16, "exponential");
}

// Numbers that are drawn in order, and by several threads, are bit for bit
// those of the generator, one at a time.
TEST(RandomOps, NumbersInOrderAreTheGenerators) {
  const std::vector<int64_t> shape = {9999};
  const Philox numbers(1, StreamOf("drawn"));
  const auto normal =
      Draw("gaussian_random", {}, {{"shape", shape}, {"dtype", int32_t{6}}});
  ASSERT_TRUE(normal.ok()) << normal.status();
  const auto uniform = Draw("uniform_random", {}, {{"shape", shape}});
  ASSERT_TRUE(uniform.ok()) << uniform.status();
  for (uint64_t i = 0; i < 9999; ++i) {
    EXPECT_EQ(normal->data<double>()[i],
              double{static_cast<float>(0.0 + 1.0 * numbers.Normal(i))})
        << i;
    EXPECT_EQ(uniform->data<float>()[i], -1.0f + 2.0f * numbers.Uniform(i))
        << i;
  }
}

// Component i of a Dirichlet variable is a beta variable of alpha_i and the sum
// of the others.
TEST(RandomOps, DirichletLiesOnTheSimplexWithItsMoments) {
  const std::vector<double> alpha = {0.5, 2, 4};
  std::vector<double> rows;
  for (int64_t i = 0; i < kNumbers; ++i)
    rows.insert(rows.end(), alpha.begin(), alpha.end());
  const auto drawn =
      Draw("dirichlet", {{"Alpha", MakeArray({kNumbers, 3}, rows)}});
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  const std::vector<double> values = Numbers(*drawn);
  for (size_t i = 0; i < values.size(); i += 3)
    ASSERT_NEAR(values[i] + values[i + 1] + values[i + 2], 1, 1e-12);
  for (size_t k = 0; k < 3; ++k) {
    std::vector<double> component;
    for (size_t i = k; i < values.size(); i += 3)
      component.push_back(values[i]);
    const double a = alpha[k], b = 6.5 - a, s = 6.5;
    const double variance = a * b / (s * s * (s + 1));
    const double excess = 6 * ((a - b) * (a - b) * (s + 1) - a * b * (s + 2)) /
                          (a * b * (s + 2) * (s + 3));
    ExpectMoments(component, a / s, variance,
                  (excess + 3) * variance * variance,
                  absl::StrCat("dirichlet ", k));
  }
}

TEST(RandomOps, MultinomialCountsFollowTheWeights) {
  const std::vector<double> weights = {1, 0, 3, 4};
  const auto drawn = Draw(
      "multinomial", {{"X", MakeArray({4}, weights)}},
      {{"num_samples", static_cast<int32_t>(kNumbers)}, {"replacement", true}});
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  const std::vector<double> values = Numbers(*drawn);
  for (size_t k = 0; k < 4; ++k) {
    std::vector<double> chosen;
    for (const double v : values)
      chosen.push_back(v == static_cast<double>(k) ? 1 : 0);
    const double p = weights[k] / 8, variance = p * (1 - p);
    ExpectMoments(chosen, p, variance, variance * (1 - 3 * variance),
                  absl::StrCat("multinomial ", k));
  }
  const auto once = Draw("multinomial", {{"X", MakeArray({4}, weights)}},
                         {{"num_samples", int32_t{3}}, {"replacement", false}});
  ASSERT_TRUE(once.ok()) << once.status();
  std::vector<double> order = Numbers(*once);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<double>{0, 2, 3}));
}

TEST(RandomOps, NumbersOutsideOfADistributionAreRefused) {
  EXPECT_EQ(Draw("standard_gamma", {{"x", Constant(-1, 2)}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const Array counts = MakeArray({2}, std::vector<int32_t>{3, -1});
  EXPECT_EQ(Draw("binomial", {{"count", counts}, {"prob", Constant(0.5, 2)}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Draw("binomial", {{"count", counts}, {"prob", Constant(1.5, 3)}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace test_random_ops
}  // namespace pd
