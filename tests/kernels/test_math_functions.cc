// SPDX-License-Identifier: Apache-2.0
// Element-wise functions in vectors against the reference: values and gradients
// over sizes that do not fill vectors, at the ends of their domains, with
// attributes, and attributes that are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_math_functions {

OpDesc Unary(const std::string& type) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {"x"});
  op.SetOutput("Out", {"y"});
  if (type == "clip") {
    op.attrs["min"] = -0.7f;
    op.attrs["max"] = 0.4f;
  }
  return op;
}

bool IsRounding(const std::string& type) {
  return type == "floor" || type == "ceil" || type == "round";
}

// Functions of all numbers, and those of positive ones.
const char* const kEverywhere[] = {
    "abs",        "clip",        "floor",      "ceil",       "round",
    "exp",        "expm1",       "sin",        "cos",        "tan",
    "atan",       "softplus",    "mish",       "elu",        "selu",
    "softshrink", "hard_shrink", "logsigmoid", "tanh_shrink"};
const char* const kPositive[] = {"sqrt",  "rsqrt", "log",  "log2",
                                 "log10", "log1p", "logit"};

void ExpectAlike(const std::string& type, const Array& x) {
  KernelCase c;
  Feed(&c, "x", x);
  Append(&c, Unary(type));
  c.fetches = {"y"};
  std::map<std::string, std::string> labels = {{type, "cpu:any_layout"}};
  if (!IsRounding(type)) {
    c.wrt = {"x"};
    labels[type + "_grad"] = "cpu:any_layout";
  }
  ExpectLikeReference(c, labels, 1e-6);
}

TEST(MathFunctions, AreTheReferences) {
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 11, 31}}) {
    const Array around = RandomArray(shape, 1);
    for (const char* type : kEverywhere) {
      SCOPED_TRACE(type);
      ExpectAlike(type, around);
    }
    std::vector<float> inside(static_cast<size_t>(around.size()));
    for (size_t i = 0; i < inside.size(); ++i)
      inside[i] = 0.01f + 0.98f / (1 + std::fabs(around.data<float>()[i]));
    for (const char* type : kPositive) {
      SCOPED_TRACE(type);
      ExpectAlike(type, MakeArray<float>(shape, inside));
    }
  }
}

// Relative errors, since values go from 0 to 1e38.
void ExpectNear(const std::string& type, const std::vector<float>& x) {
  KernelCase c;
  Feed(&c, "x", MakeArray<float>({static_cast<int64_t>(x.size())}, x));
  Append(&c, Unary(type));
  c.fetches = {"y"};
  const KernelResult fast = RunCase(c, true), slow = RunCase(c, false);
  ASSERT_EQ(fast.labels.at(type), "cpu:any_layout");
  const float* a = fast.values.at("y").data<float>();
  const float* b = slow.values.at("y").data<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(b[i]))
      EXPECT_TRUE(std::isnan(a[i])) << x[i] << " gives " << a[i];
    else if (std::isinf(b[i]))
      EXPECT_EQ(a[i], b[i]) << x[i];
    else
      EXPECT_NEAR(a[i], b[i], 2e-6 * std::fabs(b[i]) + 1e-37) << x[i];
    EXPECT_EQ(std::signbit(a[i]) && !std::isnan(a[i]),
              std::signbit(b[i]) && !std::isnan(b[i]))
        << x[i];
  }
}

TEST(MathFunctions, AtTheEndsOfTheirDomains) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> far = {
      -kInfinity, -3e38f,      -1e10f,      -89.f,     -80.f,
      -20.f,      -1.5f,       -1.f,        -0.5f,     -1e-3f,
      -1e-8f,     -0.f,        0.f,         1e-8f,     1e-3f,
      0.5f,       0.99999f,    1.f,         1.5f,      2.5f,
      20.f,       88.f,        89.f,        1e10f,     3e38f,
      8388609.f,  -8388607.5f, 0.49999997f, kInfinity, std::nanf("")};
  for (const char* type : kEverywhere) {
    SCOPED_TRACE(type);
    if (std::string(type) == "tanh_shrink" || std::string(type) == "tan" ||
        std::string(type) == "logsigmoid" || std::string(type) == "softplus")
      continue;  // differences of near numbers; below
    ExpectNear(type, far);
  }
  for (const char* type : {"sqrt", "rsqrt", "log", "log2", "log10", "log1p"}) {
    SCOPED_TRACE(type);
    ExpectNear(type, far);
  }
  const std::vector<float> ends = {
      -kInfinity, -100.f, -3.f, 3.f, 30.f, 1e30f, kInfinity, std::nanf("")};
  for (const char* type : {"tanh_shrink", "logsigmoid", "softplus"}) {
    SCOPED_TRACE(type);
    ExpectNear(type, ends);
  }
  ExpectNear("tan", {-kInfinity, -1e10f, 1e5f, kInfinity, std::nanf("")});
}

// Levels and widths are computed by floor(log2(x)).
TEST(MathFunctions, PowersOfTwoHaveWholeLogarithms) {
  std::vector<float> powers;
  for (int k = -126; k < 128; ++k) powers.push_back(std::ldexp(1.0f, k));
  KernelCase c;
  Feed(&c, "x",
       MakeArray<float>({static_cast<int64_t>(powers.size())}, powers));
  Append(&c, Unary("log2"));
  c.fetches = {"y"};
  const KernelResult fast = RunCase(c, true);
  ASSERT_EQ(fast.labels.at("log2"), "cpu:any_layout");
  for (int k = -126; k < 128; ++k)
    EXPECT_EQ(fast.values.at("y").data<float>()[k + 126],
              static_cast<float>(k));
}

// Where clip and abs have no slope, an infinite gradient is none either.
TEST(MathFunctions, ZeroSlopesStayZero) {
  for (const char* type : {"abs", "clip"}) {
    SCOPED_TRACE(type);
    KernelCase c;
    Feed(&c, "x", MakeArray<float>({3}, {0.f, -5.f, 5.f}));
    Feed(&c, "dy",
         MakeArray<float>({3}, std::vector<float>(
                                   3, std::numeric_limits<float>::infinity())));
    OpDesc op = Unary(type);
    op.type += "_grad";
    op.SetInput("Out@GRAD", {"dy"});
    op.outputs.clear();
    op.SetOutput("X@GRAD", {"dx"});
    Append(&c, op);
    c.fetches = {"dx"};
    ExpectLikeReference(c, {{op.type, "cpu:any_layout"}});
  }
}

TEST(MathFunctions, ReadTheirAttributes) {
  const std::vector<std::pair<std::string, std::map<std::string, Attribute>>>
      kCases = {{"softplus", {{"beta", 2.5f}, {"threshold", 1.0f}}},
                {"mish", {{"threshold", 12.0f}}},
                {"elu", {{"alpha", 0.3f}}},
                {"selu", {{"scale", 2.0f}, {"alpha", 0.5f}}},
                {"softshrink", {{"lambda", 0.8f}}},
                {"hard_shrink", {{"threshold", 0.2f}}},
                {"logit", {{"eps", 0.2f}}}};
  for (const auto& [type, attrs] : kCases) {
    SCOPED_TRACE(type);
    KernelCase c;
    Feed(&c, "x", RandomArray({5, 37}, 3));
    OpDesc op = Unary(type);
    op.attrs = attrs;
    Append(&c, op);
    c.fetches = {"y"};
    c.wrt = {"x"};
    ExpectLikeReference(
        c, {{type, "cpu:any_layout"}, {type + "_grad", "cpu:any_layout"}},
        1e-6);
  }
}

TEST(MathFunctions, RefuseWhatTheyDoNotCompute) {
  const std::vector<std::pair<std::string, std::map<std::string, Attribute>>>
      kCases = {{"mish", {{"threshold", 1.0f}}},
                {"softshrink", {{"lambda", -0.5f}}},
                {"hard_shrink", {{"threshold", -0.5f}}},
                {"logit", {{"eps", 0.0f}}}};
  for (const auto& [type, attrs] : kCases) {
    SCOPED_TRACE(type);
    KernelCase c;
    Feed(&c, "x", RandomArray({5, 37}, 3));
    OpDesc op = Unary(type);
    op.attrs = attrs;
    Append(&c, op);
    c.fetches = {"y"};
    ExpectLikeReference(c, {{type, "reference"}});
  }
}

}  // namespace test_math_functions
}  // namespace pd
