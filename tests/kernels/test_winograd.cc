// SPDX-License-Identifier: Apache-2.0
// Winograd's convolutions: against the sum by definition in double precision,
// and the ops that use them against the reference.
#include "libcore/kernels/cpu/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "libcore/kernels/cpu/blocked_channels.h"
#include "libcore/kernels/cpu/vector_floats.h"
#include "libcore/tensor/tensor.h"
#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_winograd {

using cpu::ConvArgs;
using cpu::WinogradGeometry;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

size_t Size(int64_t n) { return static_cast<size_t>(n); }

std::vector<float> Random(int64_t n, uint64_t number) {
  const Array array = RandomArray({n}, number);
  return {array.data<float>(), array.data<float>() + n};
}

// Where element [n, c, p] of [N, C, pixels] lies in blocks.
struct InBlocks {
  int64_t channels, pixels;
  int64_t lanes = cpu::VectorFloats();

  int64_t Blocks() const { return (channels + lanes - 1) / lanes; }
  size_t At(int64_t n, int64_t c, int64_t p) const {
    return Size(((n * Blocks() + c / lanes) * pixels + p) * lanes + c % lanes);
  }
  std::vector<float> Of(const std::vector<float>& rows, int64_t batch) const {
    std::vector<float> to(Size(batch * Blocks() * pixels * lanes));
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t p = 0; p < pixels; ++p)
          to[At(n, c, p)] = rows[Size((n * channels + c) * pixels + p)];
    return to;
  }
};

double Direct(const WinogradGeometry& g, const std::vector<float>& x,
              const std::vector<float>& w, int64_t n, int64_t o, int64_t p) {
  double sum = 0;
  for (int64_t i = 0; i < g.in_channels; ++i)
    for (int64_t k = 0; k < 9; ++k) {
      const int64_t h = p / g.out_w + k / 3 - g.pad_top;
      const int64_t v = p % g.out_w + k % 3 - g.pad_left;
      if (h < 0 || v < 0 || h >= g.in_h || v >= g.in_w) continue;
      const int64_t at = ((n * g.in_channels + i) * g.in_h + h) * g.in_w + v;
      sum += double{x[Size(at)]} *
             double{w[Size((o * g.in_channels + i) * 9 + k)]};
    }
  return sum;
}

// The largest difference from the sum by definition.
double Worst(const WinogradGeometry& g) {
  const auto x = Random(g.batch * g.in_channels * g.in_h * g.in_w, 1);
  const auto w = Random(g.out_channels * g.in_channels * 9, 2);
  const InBlocks in{g.in_channels, g.in_h * g.in_w};
  const InBlocks out{g.out_channels, g.out_h * g.out_w};
  const std::vector<float> blocks = in.Of(x, g.batch);
  std::vector<float> u(Size(WinogradWeights(g))),
      scratch(Size(WinogradScratch(g)), NAN),
      y(Size(g.batch * out.Blocks() * out.pixels * out.lanes), NAN);
  Tensor rows(DType::kFloat32, {g.out_channels, g.in_channels, 3, 3});
  Tensor packed(DType::kFloat32, rows.shape());
  EXPECT_TRUE(rows.Allocate().ok());
  std::copy(w.begin(), w.end(), rows.data<float>());
  packed.set_layout(cpu::BlockedWeights(rows.shape()));
  EXPECT_TRUE(packed.Allocate().ok());
  CopyElements(rows, &packed);
  WinogradTransform(g, packed.data<float>(), u.data());
  ConvArgs args;
  args.x = blocks.data();
  args.weights = u.data();
  args.low = -kInfinity;
  args.high = kInfinity;
  args.y = y.data();
  args.scratch = scratch.data();
  Winograd(g, args);
  double worst = 0;
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.out_channels; ++o)
      for (int64_t p = 0; p < out.pixels; ++p) {
        const double error =
            std::fabs(Direct(g, x, w, n, o, p) - double{y[out.At(n, o, p)]});
        if (!(error <= worst)) worst = error;
      }
  // The padding of the last block stays 0.
  for (int64_t o = g.out_channels; o < out.Blocks() * out.lanes; ++o)
    EXPECT_EQ(y[out.At(0, o, 0)], 0.0f);
  return worst;
}

TEST(Winograd, IsTheSumByDefinition) {
  const WinogradGeometry kCases[] = {
      {1, 16, 16, 8, 8, 8, 8, 1, 1},     {2, 20, 40, 7, 9, 7, 9, 1, 1},
      {1, 32, 33, 14, 14, 12, 12, 0, 0}, {3, 48, 64, 5, 13, 7, 15, 2, 2},
      {1, 3, 5, 1, 1, 1, 1, 1, 1},       {2, 1, 1, 3, 4, 2, 5, 0, 2},
      {4, 64, 96, 14, 14, 14, 14, 1, 1}, {1, 16, 16, 6, 6, 3, 2, 0, 0},
      {1, 24, 8, 40, 40, 40, 40, 1, 1}};
  for (WinogradGeometry g : kCases) {
    const double scale = std::sqrt(9.0 * static_cast<double>(g.in_channels));
    g.tile = 2;
    EXPECT_LT(Worst(g), 2e-6 * scale) << g.in_channels << " " << g.in_h;
    g.tile = 4;
    EXPECT_LT(Worst(g), 1e-5 * scale) << g.in_channels << " " << g.in_h;
  }
}

class WinogradOps : public ::testing::TestWithParam<ConvShape> {};

TEST_P(WinogradOps, FusedConv2d) {
  for (const std::string& activation : FusedActivations())
    ExpectLikeReference(FusedConv(GetParam(), activation),
                        {{"fused_conv2d", "cpu:winograd"}});
}

// The residual may be the input too, whose bytes must not be written over.
TEST_P(WinogradOps, Residual) {
  const ConvShape& s = GetParam();
  for (const bool itself : {false, true}) {
    if (itself && (s.in != s.out || s.pad != 1)) continue;
    ExpectLikeReference(ResidualConv(s, itself),
                        {{"fused_conv2d", "cpu:winograd"}});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradOps,
                         ::testing::Values(ConvShape{1, 64, 28, 28, 64, 1},
                                           ConvShape{3, 50, 33, 27, 40, 1},
                                           ConvShape{2, 96, 14, 15, 95, 0},
                                           ConvShape{1, 96, 20, 20, 96, 2}));

// Weights that may change are transformed in each run, and gradients are those
// of the convolution.
TEST_P(WinogradOps, Training) {
  KernelCase c = FusedConv(GetParam(), "");
  c.frozen = false;
  ExpectLikeReference(c, {{"fused_conv2d", "cpu:winograd"}});
  c.wrt = {"x", "w", "b"};
  const KernelResult got = RunCase(c, true);
  EXPECT_EQ(got.labels.at("fused_conv2d_grad"), "onednn");
  ExpectLikeReference(c, {});
}

TEST(WinogradOps, ANaNStays) {
  for (const char* activation : {"", "relu"}) {
    KernelCase c = FusedConv({1, 64, 28, 28, 64, 1}, activation);
    Array& at = c.persistables["b"];
    std::byte* bytes = nullptr;
    at = *NewArray(DType::kFloat32, {64}, &bytes);
    std::fill_n(reinterpret_cast<float*>(bytes), 64, NAN);
    const KernelResult result = RunCase(c, true);
    EXPECT_TRUE(std::isnan(result.values.at("y").data<float>()[100]));
  }
}

}  // namespace test_winograd
}  // namespace pd
