// SPDX-License-Identifier: Apache-2.0
// Losses and linear algebra against finite differences, where PaddlePaddle has
// no kernel to ask (margin_rank_loss, margin_cross_entropy) or its gradient is
// wrong (triangular_solve with a lower triangle of ones, bpr_loss of rank 3),
// and in the shapes that tell formulas apart.
#include <gtest/gtest.h>

#include <array>

#include "libcore/ops/registry.h"
#include "tests/ops/op_test.h"

namespace pd {
namespace test_loss_gradients {

class LossGradients : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  void Check(const GradientCase& check, double tolerance = 1e-6) {
    const absl::Status status = CheckGradients(registry_, check, tolerance);
    EXPECT_TRUE(status.ok()) << check.type << ": " << status;
  }

  OpRegistry registry_;
};

TEST_F(LossGradients, Rankings) {
  GradientCase margin{"margin_rank_loss",
                      {{"X1", {{4, 1}}}, {"X2", {{4, 1}}}},
                      {{"margin", 0.3f}}};
  margin.constants["Label"] = MakeArray<double>({4, 1}, {1, -1, 1, -1});
  Check(margin);

  GradientCase bpr{"bpr_loss", {{"X", {{2, 3, 4}}}}};
  bpr.constants["Label"] = MakeArray<int64_t>({2, 3, 1}, {0, 3, 1, 2, 2, 0});
  bpr.output = "Y";
  Check(bpr);
}

TEST_F(LossGradients, Margins) {
  for (const auto& [m1, m2, m3] :
       std::vector<std::array<float, 3>>{{1, 0.5f, 0}, {1, 0, 0.2f}}) {
    GradientCase loss{
        "margin_cross_entropy",
        {{"Logits", {{3, 4}}}},
        {{"margin1", m1}, {"margin2", m2}, {"margin3", m3}, {"scale", 2.0f}},
        -0.7,
        0.7};
    loss.constants["Label"] = MakeArray<int64_t>({3, 1}, {0, 3, 1});
    loss.output = "Loss";
    // The slope has 1e-5 under its root, as PaddlePaddle's.
    Check(loss, 1e-4);
  }
}

TEST_F(LossGradients, Triangles) {
  for (const bool upper : {false, true})
    for (const bool transpose : {false, true})
      for (const bool unit : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << upper << " " << transpose << " " << unit);
        Check({"triangular_solve",
               {{"X", {{2, 3, 3}}}, {"Y", {{3, 2}}}},
               {{"upper", upper},
                {"transpose", transpose},
                {"unitriangular", unit}},
               0.5,
               1.5});
      }
}

TEST_F(LossGradients, Factors) {
  for (const Shape& shape : std::vector<Shape>{{2, 3, 3}, {4, 2}, {2, 4}}) {
    SCOPED_TRACE(ToString(shape));
    Check({"lu", {{"X", {shape}}}}, 1e-5);
    GradientCase svd{"svd", {{"X", {shape}}}};
    svd.output = "S";
    Check(svd, 1e-5);
    for (const char* output : {"Q", "R"}) {
      GradientCase qr{"qr", {{"X", {shape}}}};
      qr.output = output;
      Check(qr, 1e-5);
    }
  }
}

TEST_F(LossGradients, Determinants) {
  Check({"determinant", {{"Input", {{2, 3, 3}}}}});
  GradientCase inverse{"inverse", {{"Input", {{2, 3, 3}}}}};
  inverse.output = "Output";
  Check(inverse, 1e-5);
  for (const int32_t n : {-2, 0, 1, 5})
    Check({"matrix_power", {{"X", {{3, 3}}}}, {{"n", n}}, 0.2, 1.0}, 1e-5);
}

}  // namespace test_loss_gradients
}  // namespace pd
