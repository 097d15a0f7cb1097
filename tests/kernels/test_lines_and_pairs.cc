// SPDX-License-Identifier: Apache-2.0
// Kernels over lines and over pairs of numbers against the reference: Fourier
// transforms of lengths with every factor, and those that are refused; angles
// and powers at the ends of their domains; log of sums; products that are
// added.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_lines_and_pairs {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

OpDesc Fft(const std::string& type, std::vector<int64_t> axes, bool forward,
           const std::string& normalization) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {type == "fft_r2c" ? "x" : "z"});
  op.SetOutput("Out", {"y"});
  op.attrs["axes"] = std::move(axes);
  op.attrs["forward"] = forward;
  op.attrs["normalization"] = normalization;
  if (type == "fft_r2c") op.attrs["onesided"] = true;
  if (type == "fft_c2r") op.attrs["last_dim_size"] = int64_t{0};
  return op;
}

Array RandomComplex(const Shape& shape, uint64_t number) {
  Shape wide = shape;
  wide.push_back(2);
  Array array = RandomArray(wide, number);
  array.dtype = DType::kComplex64;
  array.shape = shape;
  return array;
}

// Relative to the largest number: of complex numbers as pairs of floats.
void ExpectSameTransform(const KernelCase& c, const std::string& type,
                         const std::string& label) {
  const KernelResult slow = RunCase(c, false), fast = RunCase(c, true);
  ASSERT_EQ(fast.labels.at(type), label);
  const Array &a = fast.values.at("y"), &b = slow.values.at("y");
  ASSERT_EQ(a.shape, b.shape);
  ASSERT_EQ(a.dtype, b.dtype);
  const size_t n = a.size_bytes() / sizeof(float);
  const auto* got = reinterpret_cast<const float*>(a.bytes.get());
  const auto* want = reinterpret_cast<const float*>(b.bytes.get());
  float largest = 0;
  for (size_t i = 0; i < n; ++i)
    largest = std::max(largest, std::fabs(want[i]));
  for (size_t i = 0; i < n; ++i)
    ASSERT_NEAR(got[i], want[i], 1e-6f * largest)
        << type << " " << ToString(a.shape) << " at " << i;
}

TEST(FourierTransforms, AreTheReferences) {
  const std::vector<std::pair<Shape, std::vector<int64_t>>> kCases = {
      {{5, 2}, {1}},           {{17, 8}, {1}},
      {{33, 30}, {1}},         {{4, 1024}, {1}},
      {{3, 14, 7}, {1}},       {{22, 5, 3}, {0}},
      {{2, 26, 4}, {-2}},      {{6, 10, 12}, {1, 2}},
      {{4, 6, 50}, {2, 0, 1}}, {{8, 2 * 3 * 5 * 7}, {1}},
      {{19, 1000}, {1}}};
  for (const auto& [shape, axes] : kCases) {
    for (const bool forward : {true, false}) {
      for (const char* norm : {"backward", "ortho"}) {
        for (const char* type : {"fft_c2c", "fft_r2c", "fft_c2r"}) {
          KernelCase c;
          Feed(&c, "x", RandomArray(shape, 1));
          Feed(&c, "z", RandomComplex(shape, 2));
          OpDesc op = Fft(type, axes, forward, norm);
          if (op.type == "fft_c2r") {
            const auto axis = static_cast<size_t>(
                (axes.back() + static_cast<int64_t>(shape.size())) %
                static_cast<int64_t>(shape.size()));
            // The first half of the numbers that are given counts.
            op.attrs["last_dim_size"] = shape[axis] / 2 * 2;
          }
          Append(&c, op);
          c.fetches = {"y"};
          ExpectSameTransform(c, type, "cpu:lines");
        }
      }
    }
  }
}

TEST(FourierTransforms, LengthsThatAreRefused) {
  // A large prime factor; a real length that is odd.
  for (const auto& [type, length] :
       {std::pair<const char*, int64_t>{"fft_c2c", 34},
        std::pair<const char*, int64_t>{"fft_r2c", 34},
        std::pair<const char*, int64_t>{"fft_r2c", 15}}) {
    KernelCase c;
    Feed(&c, "x", RandomArray({9, length}, 1));
    Feed(&c, "z", RandomComplex({9, length}, 2));
    Append(&c, Fft(type, {1}, true, "backward"));
    c.fetches = {"y"};
    ExpectSameTransform(c, type, "reference");
  }
}

// A line's NaN is no other line's.
TEST(FourierTransforms, LinesAreApart) {
  Array x = RandomArray({20, 16}, 3);
  std::vector<float> values(x.data<float>(), x.data<float>() + x.size());
  values[5 * 16 + 3] = kNan;
  KernelCase c;
  Feed(&c, "x", MakeArray<float>({20, 16}, values));
  Append(&c, Fft("fft_r2c", {1}, true, "backward"));
  c.fetches = {"y"};
  const KernelResult fast = RunCase(c, true);
  ASSERT_EQ(fast.labels.at("fft_r2c"), "cpu:lines");
  const auto* y =
      reinterpret_cast<const float*>(fast.values.at("y").bytes.get());
  for (int64_t i = 0; i < 20 * 18; ++i)
    EXPECT_EQ(std::isnan(y[i]), i / 18 == 5) << i;
}

OpDesc Pair(const std::string& type) {
  OpDesc op;
  op.type = type;
  op.SetInput(type == "atan2" ? "X1" : "X", {"x"});
  op.SetInput(type == "atan2" ? "X2" : "Y", {"y"});
  op.SetOutput("Out", {"z"});
  return op;
}

TEST(Pairs, AreTheReferences) {
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 11, 31}}) {
    std::vector<float> positive(static_cast<size_t>(NumElements(shape)));
    const Array around = RandomArray(shape, 1);
    for (size_t i = 0; i < positive.size(); ++i)
      positive[i] = 0.1f + std::fabs(around.data<float>()[i]);
    for (const char* type : {"atan2", "elementwise_pow"}) {
      KernelCase c;
      Feed(&c, "x",
           std::string(type) == "atan2" ? around
                                        : MakeArray<float>(shape, positive));
      Feed(&c, "y", RandomArray(shape, 2));
      Append(&c, Pair(type));
      c.wrt = {"x", "y"};
      c.fetches = {"z"};
      ExpectLikeReference(
          c,
          {{type, "cpu:vectors"}, {std::string(type) + "_grad", "cpu:vectors"}},
          2e-6);
    }
  }
}

// Every pair of numbers: their values, kinds and signs.
TEST(Pairs, AtTheEndsOfTheirDomains) {
  const std::vector<float> far = {-kInfinity, -3e38f,  -7.f,      -3.f, -2.5f,
                                  -1.f,       -1e-30f, -0.f,      0.f,  1e-40f,
                                  1e-30f,     0.5f,    1.f,       2.f,  3.f,
                                  16777217.f, 3e38f,   kInfinity, kNan};
  std::vector<float> x, y;
  for (const float a : far)
    for (const float b : far) {
      x.push_back(a);
      y.push_back(b);
    }
  const Shape shape = {static_cast<int64_t>(x.size())};
  for (const char* type : {"atan2", "elementwise_pow"}) {
    KernelCase c;
    Feed(&c, "x", MakeArray<float>(shape, x));
    Feed(&c, "y", MakeArray<float>(shape, y));
    Append(&c, Pair(type));
    c.fetches = {"z"};
    const KernelResult fast = RunCase(c, true), slow = RunCase(c, false);
    ASSERT_EQ(fast.labels.at(type), "cpu:vectors");
    const float* got = fast.values.at("z").data<float>();
    const float* want = slow.values.at("z").data<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(want[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << type << x[i] << " " << y[i];
        continue;
      }
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i]))
          << type << " " << x[i] << " " << y[i];
      if (std::isinf(want[i]))
        EXPECT_EQ(got[i], want[i]) << type << " " << x[i] << " " << y[i];
      else
        EXPECT_NEAR(got[i], want[i], 5e-7f * std::fabs(want[i]) + 1e-44f)
            << type << " " << x[i] << " " << y[i];
    }
  }
}

// Threads cut tensors anywhere, so a power is the same beside any other.
TEST(Pairs, PowersDoNotDependOnNeighbours) {
  const int64_t n = 1 << 16;  // powf and ours differ in 1 of 1000
  std::vector<float> x(n), with_zeros;
  const Array around = RandomArray({n}, 5);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = 0.1f + std::fabs(around.data<float>()[i]);
  with_zeros = x;
  for (size_t i = 0; i < x.size(); i += 4) with_zeros[i] = 0.0f;
  std::vector<Array> results;
  for (const auto& values : {x, with_zeros}) {
    KernelCase c;
    Feed(&c, "x", MakeArray<float>({n}, values));
    Feed(&c, "y", RandomArray({n}, 6));
    Append(&c, Pair("elementwise_pow"));
    c.fetches = {"z"};
    const KernelResult fast = RunCase(c, true);
    ASSERT_EQ(fast.labels.at("elementwise_pow"), "cpu:vectors");
    results.push_back(fast.values.at("z"));
  }
  for (int64_t i = 0; i < n; ++i) {
    if (i % 4 == 0) continue;
    ASSERT_EQ(results[0].data<float>()[i], results[1].data<float>()[i]) << i;
  }
}

TEST(Pairs, PowersOfOneFactor) {
  for (const float factor : {-1.5f, 0.5f, 3.0f, 2.5f}) {
    KernelCase c;
    std::vector<float> x = {0.3f, 1.f, 2.f, 17.f, 1e-3f, 5e4f, 9.f};
    Feed(&c, "x", MakeArray<float>({7}, x));
    OpDesc op;
    op.type = "pow";
    op.SetInput("X", {"x"});
    op.SetOutput("Out", {"z"});
    op.attrs["factor"] = factor;
    Append(&c, op);
    c.fetches = {"z"};
    c.wrt = {"x"};
    ExpectLikeReference(
        c,
        {{"pow", "cpu:vectors"},
         {"pow_grad", factor == 3.0f ? "reference" : "cpu:vectors"}},
        1e-6);
  }
}

TEST(LogSumExp, IsTheReferences) {
  const auto expect = [](const Array& x, std::vector<int32_t> axis, bool keep,
                         const char* label) {
    KernelCase c;
    Feed(&c, "x", x);
    OpDesc op;
    op.type = "logsumexp";
    op.SetInput("X", {"x"});
    op.SetOutput("Out", {"y"});
    op.attrs["axis"] = std::move(axis);
    op.attrs["keepdim"] = keep;
    Append(&c, op);
    c.fetches = {"y"};
    c.wrt = {"x"};
    ExpectLikeReference(c, {{"logsumexp", label}, {"logsumexp_grad", label}},
                        1e-6);
  };
  expect(RandomArray({7, 33}, 1), {1}, true, "cpu:rows");
  expect(RandomArray({3, 5, 9001}, 2), {-1}, false, "cpu:rows");
  expect(RandomArray({3, 5, 7}, 3), {1, 2}, false, "cpu:rows");
  expect(RandomArray({3, 5, 1}, 4), {1}, false, "cpu:rows");
  expect(RandomArray({4, 1}, 5), {1}, false, "cpu:rows");
  expect(RandomArray({11}, 6), {0}, false, "cpu:rows");
  expect(RandomArray({5, 7}, 7), {0}, false, "reference");
  std::vector<float> x(6 * 19, 1.5f);
  x[3] = kNan;
  x[19 + 4] = kInfinity;
  x[2 * 19 + 18] = -kInfinity;
  for (size_t i = 3 * 19; i < 4 * 19; ++i) x[i] = -kInfinity;
  x[4 * 19] = 300.f;
  x[5 * 19 + 1] = kInfinity;
  x[5 * 19 + 18] = kNan;
  expect(MakeArray<float>({6, 19}, x), {1}, false, "cpu:rows");
}

TEST(Addmm, IsTheReferences) {
  for (const Shape& input : {Shape{5, 19}, Shape{19}, Shape{5, 1}, Shape{1}}) {
    for (const auto& [alpha, beta] : {std::pair<float, float>{1.f, 1.f},
                                      std::pair<float, float>{0.5f, -2.f},
                                      std::pair<float, float>{1.f, 0.f}}) {
      KernelCase c;
      Feed(&c, "i", RandomArray(input, 1));
      Feed(&c, "x", RandomArray({5, 33}, 2));
      Feed(&c, "y", RandomArray({33, 19}, 3));
      OpDesc op;
      op.type = "addmm";
      op.SetInput("Input", {"i"});
      op.SetInput("X", {"x"});
      op.SetInput("Y", {"y"});
      op.SetOutput("Out", {"z"});
      op.attrs["Alpha"] = alpha;
      op.attrs["Beta"] = beta;
      Append(&c, op);
      c.fetches = {"z"};
      c.wrt = {"i", "x", "y"};
      ExpectLikeReference(
          c, {{"addmm", "onednn:gemm"}, {"addmm_grad", "onednn:gemm"}});
    }
  }
}

}  // namespace test_lines_and_pairs
}  // namespace pd
