// SPDX-License-Identifier: Apache-2.0
// while, cond and recurrences over an open number of steps: gradients against
// finite differences in float64, extents that change, and what is said about
// what does not fit. testdata/layers compares them with PaddlePaddle.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_control_flow {

absl::StatusOr<BuiltModel> Build(const std::string& text) {
  const auto job = ParseJob(text, "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

using Numbers = std::vector<double>;

Array ArrayOf(const Shape& shape, const Numbers& values) {
  return MakeArray(shape, values);
}

double SumOf(const Array& array) {
  const auto* values = reinterpret_cast<const double*>(array.bytes.get());
  double sum = 0;
  for (size_t i = 0; i < array.size_bytes() / sizeof(double); ++i)
    sum += values[i];
  return sum;
}

// The gradient of the sum of the model's output by its input 'x', at `x`.
absl::StatusOr<Numbers> Gradient(BuiltModel built, const Shape& shape,
                                 const Numbers& x) {
  BackwardOptions options;
  options.targets[built.outputs[0]] = "";
  options.wrt = {"x"};
  PD_ASSIGN_OR_RETURN(
      const auto gradients,
      AppendBackward(ReferenceRegistry(), options, &built.main));
  Session session(&ReferenceRegistry());
  PD_ASSIGN_OR_RETURN(
      const NamedArrays results,
      session.Run(built.main, {{"x", ArrayOf(shape, x)}}, {gradients.at("x")}));
  const Array& made = results.begin()->second;
  const auto* values = reinterpret_cast<const double*>(made.bytes.get());
  return Numbers(values, values + x.size());
}

absl::StatusOr<double> Value(const BuiltModel& built, const Shape& shape,
                             const Numbers& x) {
  Session session(&ReferenceRegistry());
  PD_ASSIGN_OR_RETURN(
      const NamedArrays results,
      session.Run(built.main, {{"x", ArrayOf(shape, x)}}, built.outputs));
  return SumOf(results.begin()->second);
}

// The model's gradient is that of central differences.
void CheckGradient(const std::string& model, const Shape& shape,
                   const Numbers& at) {
  const auto built = Build(absl::StrCat(
      "model { input { name: \"x\" shape: [-1, 3] dtype: float64 }\n", model,
      "}"));
  ASSERT_TRUE(built.ok()) << built.status();
  const auto gradient = Gradient(*built, shape, at);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  constexpr double kStep = 1e-6;
  for (size_t i = 0; i < at.size(); ++i) {
    Numbers more = at, less = at;
    more[i] += kStep;
    less[i] -= kStep;
    const auto above = Value(*built, shape, more);
    const auto below = Value(*built, shape, less);
    ASSERT_TRUE(above.ok()) << above.status();
    ASSERT_TRUE(below.ok()) << below.status();
    EXPECT_NEAR((*gradient)[i], (*above - *below) / (2 * kStep), 1e-7) << i;
  }
}

constexpr char kSmall[] =
    "block { name: \"large\" layer { square {} } layer { name: \"size\" sum {} "
    "} layer { name: "
    "\"limit\" full { shape: 1 fill_value: 0.5 dtype: float64 } } layer { "
    "input: [\"size\", \"limit\"] greater_than {} } }\n"
    "block { name: \"step\" layer { name: \"s\" sin {} } layer { name: "
    "\"half\" scale { scale: "
    "0.6 } } layer { name: \"m\" input: [\"half\", \"input\"] multiply {} } "
    "}\n";

// The number of runs depends on the values.
TEST(ControlFlow, GradientsOfALoop) {
  CheckGradient(absl::StrCat(kSmall,
                             "layer { name: \"l\" input: \"x\" while { cond { "
                             "block { use: \"large\" } } body { block { use: "
                             "\"step\" } } } }\n"),
                {2, 3}, {0.9, -1.3, 0.4, 1.7, -0.8, 0.3});
}

TEST(ControlFlow, GradientsOfBothBranches) {
  const std::string model = absl::StrCat(
      kSmall,
      "block { name: \"other\" layer { tanh {} } }\n"
      "layer { name: \"c\" input: \"x\" block { use: \"large\" } }\n"
      "layer { name: \"l\" input: [\"c\", \"x\"] cond { true_fn { block { use: "
      "\"step\" } } false_fn { block { use: \"other\" } } } }\n");
  CheckGradient(model, {1, 3}, {0.9, -1.3, 0.4});
  CheckGradient(model, {1, 3}, {0.1, -0.2, 0.3});
}

// A value that is read in the loop and behind it is kept.
TEST(ControlFlow, ALoopLeavesItsFirstValues) {
  CheckGradient(
      absl::StrCat(kSmall,
                   "layer { name: \"y\" input: \"x\" scale { scale: 2 "
                   "} }\n"
                   "layer { name: \"l\" input: \"y\" while { cond { "
                   "block { use: \"large\" } } body { block { use: "
                   "\"step\" } } } }\n"
                   "layer { input: [\"l\", \"y\"] multiply {} }\n"
                   "layer { name: \"all\" input: [\"multiply_0\", "
                   "\"x\"] add {} }\n"),
      {2, 3}, {0.9, -1.3, 0.4, 1.7, -0.8, 0.3});
}

// Line 2 holds the inputs, lines from 3 on are `lines`.
std::string ErrorOf(const std::string& lines) {
  const auto built = Build(absl::StrCat(
      "model {\ninput { name: \"x\" shape: [-1, 3] } input { name: "
      "\"n\" shape: [-1, 1] dtype: int64 }\n",
      lines, "\n}\n"));
  return built.ok() ? "no error" : std::string(built.status().message());
}

TEST(ControlFlow, WhatDoesNotFit) {
  const auto loop = [](const std::string& cond, const std::string& body) {
    return ErrorOf(absl::StrCat(
        "block { name: \"c\" ", cond, " } block { name: \"b\" ", body,
        " }\nlayer { name: \"l\" input: \"x\" while {\n  cond { block { use: "
        "\"c\" } }\n  body { block { use: \"b\" } } } }"));
  };
  const std::string tanh = "layer { tanh {} }";
  EXPECT_EQ(loop(tanh, tanh),
            "job.pbtxt:4:1: the result of 'cond' is float32[-1, 3]; expected "
            "one bool, as a comparison of numbers [1] gives it");
  const std::string large =
      "layer { name: \"s\" sum {} } layer { name: \"o\" full { shape: 1 "
      "fill_value: 0 } } "
      "layer { input: [\"s\", \"o\"] greater_than {} }";
  EXPECT_EQ(loop(large, tanh), "no error");
  EXPECT_EQ(loop(large, "layer { name: \"a\" tanh {} } output: [\"a\", \"a\"]"),
            "job.pbtxt:4:1: 'body' gives 2 results; the loop has 1 variables: "
            "'output' of the block names their new values, in the order of the "
            "layer's 'input'");
  EXPECT_EQ(
      loop(large, "layer { sum { axis: 1 } }"),
      "job.pbtxt:4:1: variable 1 of the loop (input 'x') is float32[-1, "
      "3] before a run of the loop and float32[-1] after it; it keeps its "
      "element type and rank");
}

TEST(ControlFlow, BranchesGiveTheSame) {
  const auto branch = [](const std::string& body, const char* condition) {
    return ErrorOf(absl::StrCat(
        "block { name: \"a\" layer { tanh {} } } block { name: \"b\" ", body,
        " }\nlayer { name: \"s\" input: \"x\" sum {} } layer { name: \"o\" "
        "full { "
        "shape: 1 fill_value: 0 } } layer { name: \"g\" input: [\"s\", \"o\"] "
        "greater_than {} "
        "}\nlayer { name: \"l\" input: [\"",
        condition,
        "\", \"x\"] cond { true_fn { block { use: \"a\" } } false_fn { block { "
        "use: \"b\" } } } }"));
  };
  EXPECT_EQ(branch("layer { tanh {} }", "g"), "no error");
  EXPECT_EQ(branch("layer { tanh {} }", "s"),
            "job.pbtxt:5:1: the condition (layer 's') is float32[1]; expected "
            "one bool, as a comparison of numbers [1] gives it");
  EXPECT_EQ(branch("layer { name: \"t\" tanh {} } output: [\"t\", \"t\"]", "g"),
            "job.pbtxt:5:1: 'true_fn' gives 1 results and 'false_fn' 2; "
            "expected as many");
  EXPECT_EQ(branch("layer { sum { axis: 1 } }", "g"),
            "job.pbtxt:5:1: 'true_fn' gives float32[-1, 3] and 'false_fn' "
            "float32[-1]; expected one element type and one rank");
}

// An optional input of a block that a use leaves out.
TEST(ControlFlow, OptionalInputs) {
  const auto use = [](const std::string& layers, const std::string& reads) {
    return ErrorOf(absl::StrCat(
        "block { name: \"b\" input: \"ids\" optional_input: \"cache\" ", layers,
        " }\nlayer { name: \"u\" input: [", reads, "] block { use: \"b\" } }"));
  };
  const std::string places =
      "layer { input: \"ids\" positions { cache: \"cache\" } }";
  EXPECT_EQ(use(places, "\"n\""), "no error");
  EXPECT_EQ(use(places, "\"n\", \"x\""),
            "job.pbtxt:3:56 (used at job.pbtxt:4:1): layer 'u/positions_0' "
            "(positions) expects cached keys [N, heads, keys, size]; input 'x' "
            "gives [-1, 3]");
  EXPECT_EQ(use(places, "\"n\", \"x\", \"x\""),
            "job.pbtxt:4:1: block 'b' has 1 inputs and 1 optional ones; layer "
            "'u' names 3");
  EXPECT_EQ(use("layer { input: [\"ids\", \"cache\"] add {} }", "\"n\""),
            "job.pbtxt:3:56 (used at job.pbtxt:4:1): layer 'u/add_0' reads "
            "'cache', an optional input that this use of the block leaves out; "
            "only fields of layers and inputs of blocks read one");
}

}  // namespace test_control_flow
}  // namespace pd
