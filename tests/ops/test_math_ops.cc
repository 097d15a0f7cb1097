// SPDX-License-Identifier: Apache-2.0
// Mathematical ops whose cases in testdata/ops leave something open: gradients
// against finite differences (also of gradient ops), Fourier transforms of any
// length against their definition, and gradients that are zero.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/ops/linalg/fft.h"
#include "libcore/ops/registry.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/op_test.h"

namespace pd {
namespace test_math_ops {

using Ints = std::vector<int32_t>;

class MathOps : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  void Check(const GradientCase& check, double tolerance = 1e-6) {
    const absl::Status status = CheckGradients(registry_, check, tolerance);
    EXPECT_TRUE(status.ok()) << check.type << ": " << status;
  }
  // An op of one input, with slots x, out or X, Out.
  void CheckOne(const std::string& type, const Shape& shape,
                std::map<std::string, Attribute> attrs = {}, double low = -2,
                double high = 2) {
    const bool lower = registry_.Find(type)->FindInput("x") != nullptr;
    GradientCase check{type, {{lower ? "x" : "X", {shape}}}, std::move(attrs)};
    check.low = low;
    check.high = high;
    check.output = registry_.Find(type)->outputs()[0].name;
    Check(check);
  }

  OpRegistry registry_;
};

TEST_F(MathOps, GradientsOfSpecialFunctions) {
  for (const char* type : {"i0", "i0e", "i1", "i1e"}) {
    CheckOne(type, {3, 4}, {}, 0.2, 6);
    CheckOne(type, {3, 4}, {}, -40, -31);
  }
  for (int32_t n : {0, 1, 4}) CheckOne("polygamma", {2, 3}, {{"n", n}}, 0.5, 9);
  Check({"atan2", {{"X1", {{2, 3}}}, {"X2", {{2, 3}}}}});
  Check({"atan2", {{"X1", {{2, 1}}}, {"X2", {{3}}}}});
}

TEST_F(MathOps, GradientsAlongAnAxis) {
  for (bool reverse : {false, true})
    for (bool flatten : {false, true})
      CheckOne(
          "logcumsumexp", {3, 4},
          {{"axis", int32_t{0}}, {"reverse", reverse}, {"flatten", flatten}});
  CheckOne("cumprod", {2, 4, 2}, {{"dim", int32_t{1}}});
  CheckOne("cummax", {4, 5}, {{"axis", int32_t{0}}});
  CheckOne("cummin", {4, 5}, {{"axis", int32_t{-1}}});
  CheckOne("logsumexp", {2, 3, 4}, {{"axis", Ints{0, 2}}, {"keepdim", true}});
  CheckOne("logsumexp", {2, 3}, {{"axis", Ints{}}, {"reduce_all", true}});
}

TEST_F(MathOps, GradientsOfMovedElements) {
  CheckOne("fill_diagonal", {7, 3}, {{"value", 2.0f}, {"wrap", true}});
  CheckOne("fill_diagonal", {4, 5}, {{"offset", int32_t{-1}}});
  CheckOne("tril_triu", {2, 3, 4}, {{"diagonal", int32_t{1}}, {"lower", true}});
  for (int32_t axis : {0, -1}) {
    CheckOne("frame", {11},
             {{"frame_length", int32_t{4}},
              {"hop_length", int32_t{3}},
              {"axis", axis}});
    CheckOne("overlap_add", {3, 4},
             {{"hop_length", int32_t{2}}, {"axis", axis}});
  }
  CheckOne("unfold", {2, 3, 6, 5},
           {{"kernel_sizes", Ints{2, 3}},
            {"strides", Ints{2, 1}},
            {"paddings", Ints{1, 0, 0, 2}},
            {"dilations", Ints{1, 2}}});
  CheckOne("fold", {2, 8, 6},
           {{"output_sizes", Ints{3, 4}},
            {"kernel_sizes", Ints{2, 2}},
            {"strides", Ints{1, 1}},
            {"paddings", Ints{0, 0, 0, 0}},
            {"dilations", Ints{1, 1}}});
}

// The product's gradient where elements are 0.
TEST_F(MathOps, GradientsOfProductsWithZeros) {
  const std::vector<double> values = {0, 2, 3, 0, 5, 0, 7, 2, 1};
  for (const char* type : {"cumprod", "reduce_prod"}) {
    ProgramDesc program;
    program.blocks.emplace_back();
    BlockBuilder builder(&registry_, &program);
    VarDesc x;
    x.name = "x";
    x.dtype = DType::kFloat64;
    x.shape = {3, 3};
    builder.AddVar(x);
    OpDesc op;
    op.type = type;
    op.SetInput("X", {"x"});
    op.SetOutput("Out", {"y"});
    op.attrs["dim"] = Ints{1};
    if (op.type == "cumprod") op.attrs["dim"] = int32_t{1};
    ASSERT_TRUE(builder.Append(op).ok());
    BackwardOptions options;
    options.targets = {{"y", ""}};
    options.wrt = {"x"};
    const auto grads = AppendBackward(registry_, options, &program);
    ASSERT_TRUE(grads.ok()) << grads.status();
    Session session(&registry_, 1);
    const auto got = session.Run(program, {{"x", MakeArray({3, 3}, values)}},
                                 {grads->at("x")});
    ASSERT_TRUE(got.ok()) << got.status();
    // d/dx of x0 + x0 x1 + x0 x1 x2, and of x0 x1 x2.
    for (int row = 0; row < 3; ++row) {
      const double a = values[3 * row], b = values[3 * row + 1],
                   c = values[3 * row + 2];
      const double* d = got->at(grads->at("x")).data<double>() + 3 * row;
      const bool sums = op.type == "cumprod";
      EXPECT_DOUBLE_EQ(d[0], (sums ? 1 + b : 0) + b * c);
      EXPECT_DOUBLE_EQ(d[1], (sums ? a : 0) + a * c);
      EXPECT_DOUBLE_EQ(d[2], a * b);
    }
  }
}

TEST_F(MathOps, FourierTransformsOfAnyLength) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int64_t n : {1, 2, 3, 4, 6, 7, 16, 30, 31, 37, 64, 97, 210, 257, 1009}) {
    std::vector<std::complex<double>> x(static_cast<size_t>(n));
    for (auto& v : x) v = {uniform(random), uniform(random)};
    const Fft fft(n);
    for (bool inverse : {false, true}) {
      std::vector<std::complex<double>> got = x;
      fft.Run(got.data(), inverse);
      for (int64_t k = 0; k < n; k += 1 + n / 7) {
        std::complex<double> want;
        for (int64_t j = 0; j < n; ++j)
          want += x[static_cast<size_t>(j)] *
                  std::polar(1.0, (inverse ? 2 : -2) * M_PI *
                                      static_cast<double>(j * k % n) /
                                      static_cast<double>(n));
        EXPECT_LT(std::abs(got[static_cast<size_t>(k)] - want),
                  1e-12 * n + 1e-14)
            << "n " << n << " k " << k;
      }
    }
  }
}

// The gradient by the cotangent of a gradient, in a program that has a variable
// called x@GRAD already.
TEST_F(MathOps, SecondGradientOfClip) {
  ProgramDesc program;
  program.blocks.emplace_back();
  BlockBuilder builder(&registry_, &program);
  for (const char* name : {"x", "c"}) {
    VarDesc var;
    var.name = name;
    var.shape = {4};
    builder.AddVar(var);
  }
  OpDesc op;
  op.type = "clip";
  op.SetInput("X", {"x"});
  op.SetOutput("Out", {"y"});
  op.attrs["min"] = -1.0f;
  op.attrs["max"] = 1.0f;
  ASSERT_TRUE(builder.Append(op).ok());
  BackwardOptions options;
  options.targets = {{"y", "c"}};
  options.wrt = {"x"};
  const auto first = AppendBackward(registry_, options, &program);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->at("x"), "x@GRAD");
  options.targets = {{"x@GRAD", ""}};
  options.wrt = {"c"};
  const auto second = AppendBackward(registry_, options, &program);
  ASSERT_TRUE(second.ok()) << second.status();
  Session session(&registry_, 1);
  const auto got =
      session.Run(program,
                  {{"x", MakeArray({4}, std::vector<float>{-2, -0.5, 0.5, 3})},
                   {"c", MakeArray({4}, std::vector<float>{1, 2, 3, 4})}},
                  {"x@GRAD", second->at("c")});
  ASSERT_TRUE(got.ok()) << got.status();
  for (int i = 0; i < 4; ++i) {
    const float inside = i == 1 || i == 2 ? 1.0f : 0.0f;
    EXPECT_EQ(got->at("x@GRAD").data<float>()[i], inside * (i + 1));
    EXPECT_EQ(got->at(second->at("c")).data<float>()[i], inside);
  }
}

// Shuffling is orthogonal: x . x@GRAD = out . out@GRAD.
TEST_F(MathOps, ShuffledRowsAndTheirGradients) {
  ProgramDesc program;
  program.blocks.emplace_back();
  BlockBuilder builder(&registry_, &program);
  for (const char* name : {"x", "c"}) {
    VarDesc var;
    var.name = name;
    var.shape = {5, 2};
    builder.AddVar(var);
  }
  OpDesc op;
  op.type = "shuffle_batch";
  op.SetInput("X", {"x"});
  op.SetOutput("Out", {"y"});
  op.SetOutput("ShuffleIdx", {"order"});
  op.SetOutput("SeedOut", {"next"});
  op.attrs["startup_seed"] = int32_t{7};
  ASSERT_TRUE(builder.Append(op).ok());
  OpDesc like;
  like.type = "gaussian_random_batch_size_like";
  like.SetInput("Input", {"x"});
  like.SetOutput("Out", {"noise"});
  like.attrs["shape"] = Ints{3, -1};
  like.attrs["output_dim_idx"] = int32_t{1};
  ASSERT_TRUE(builder.Append(like).ok());
  BackwardOptions options;
  options.targets = {{"y", "c"}};
  options.wrt = {"x"};
  const auto grads = AppendBackward(registry_, options, &program);
  ASSERT_TRUE(grads.ok()) << grads.status();
  std::vector<float> x(10), c(10);
  for (int i = 0; i < 10; ++i) {
    x[static_cast<size_t>(i)] = static_cast<float>(i);
    c[static_cast<size_t>(i)] = static_cast<float>(i * i);
  }
  Session session(&registry_, 1);
  const auto got = session.Run(
      program, {{"x", MakeArray({5, 2}, x)}, {"c", MakeArray({5, 2}, c)}},
      {"y", "noise", grads->at("x")});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->at("noise").shape, (Shape{3, 5}));
  float forward = 0, backward = 0;
  for (int i = 0; i < 10; ++i) {
    forward += got->at("y").data<float>()[i] * c[static_cast<size_t>(i)];
    backward +=
        got->at(grads->at("x")).data<float>()[i] * x[static_cast<size_t>(i)];
  }
  EXPECT_EQ(forward, backward);
  EXPECT_GT(forward, 0.0f);
}

// Gradients that are zero: the values do not depend on X.
TEST_F(MathOps, ZeroGradients) {
  for (const char* type : {"exponential", "poisson", "uniform_random_inplace",
                           "gaussian_inplace", "fill_any"}) {
    const bool lower = registry_.Find(type)->FindInput("x") != nullptr;
    OpDesc op;
    op.type = std::string(type) + "_grad";
    op.SetInput(lower ? "out@GRAD" : "Out@GRAD", {"d"});
    op.SetOutput(lower ? "x@GRAD" : "X@GRAD", {"dx"});
    ProgramDesc program;
    program.blocks.emplace_back();
    BlockBuilder builder(&registry_, &program);
    VarDesc d;
    d.name = "d";
    d.shape = {3};
    builder.AddVar(d);
    ASSERT_TRUE(builder.Append(op).ok()) << type;
    Session session(&registry_, 1);
    const auto got = session.Run(
        program, {{"d", MakeArray({3}, std::vector<float>{1, 2, 3})}}, {"dx"});
    ASSERT_TRUE(got.ok()) << got.status();
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(got->at("dx").data<float>()[i], 0.0f) << type;
  }
}

}  // namespace test_math_ops
}  // namespace pd
