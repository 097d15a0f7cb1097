// SPDX-License-Identifier: Apache-2.0
// Convolutions of few pixels with many weights, against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_panels {

class PanelOps : public ::testing::TestWithParam<ConvShape> {};

TEST_P(PanelOps, FusedConv2d) {
  for (const std::string& activation : FusedActivations())
    ExpectLikeReference(FusedConv(GetParam(), activation),
                        {{"fused_conv2d", "cpu:panels"}});
}

// The residual may be the input too, whose bytes must not be written over.
TEST_P(PanelOps, Residual) {
  const ConvShape& s = GetParam();
  ExpectLikeReference(ResidualConv(s, false), {{"fused_conv2d", "cpu:panels"}});
  if (s.in == s.out)
    ExpectLikeReference(ResidualConv(s, true),
                        {{"fused_conv2d", "cpu:panels"}});
}

// Weights that are trained lie as the gradients' kernels want them.
TEST_P(PanelOps, Training) {
  KernelCase c = FusedConv(GetParam(), "");
  c.frozen = false;
  c.wrt = {"x", "w", "b"};
  EXPECT_NE(RunCase(c, true).labels.at("fused_conv2d"), "cpu:panels");
  ExpectLikeReference(c, {});
}

// Channels that fill no vector or no panel, several images and slabs, one
// pixel, strides, dilations and windows of other sizes.
INSTANTIATE_TEST_SUITE_P(
    Shapes, PanelOps,
    ::testing::Values(ConvShape{1, 1024, 7, 7, 520, 0, 1},
                      ConvShape{2, 330, 5, 6, 200, 1, 3, 1},
                      ConvShape{1, 1030, 13, 14, 512, 0, 1, 2},
                      ConvShape{1, 300, 6, 5, 200, 2, 3, 1, 2},
                      ConvShape{1, 64, 9, 9, 400, 1, 5},
                      ConvShape{3, 2048, 1, 1, 300, 0, 1},
                      ConvShape{1, 250, 7, 7, 250, 1, 3, 1},
                      ConvShape{2, 900, 3, 3, 33, 2, 5, 2}));

TEST(PanelOps, ANaNStays) {
  for (const char* activation : {"", "relu"}) {
    KernelCase c = FusedConv({1, 1024, 7, 7, 520, 0, 1}, activation);
    std::byte* bytes = nullptr;
    c.persistables["b"] = *NewArray(DType::kFloat32, {520}, &bytes);
    std::fill_n(reinterpret_cast<float*>(bytes), 520, NAN);
    const KernelResult result = RunCase(c, true);
    EXPECT_TRUE(std::isnan(result.values.at("y").data<float>()[100]));
  }
}

}  // namespace test_panels
}  // namespace pd
