// SPDX-License-Identifier: Apache-2.0
// Operators in the forms of PaddlePaddle's manual, against numbers worked out
// by hand.
#include <complex>

#include "libcore/base/half.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/plugin/plugins.h"
#include "tests/plugin/plugin_network.h"

namespace pd {
namespace test_manual_ops {

class ManualOps : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status loaded =
        LoadPlugin(PD_PLUGIN_FOLDER "/libmanual_ops.so");
    ASSERT_TRUE(loaded.ok()) << loaded;
    auto made = MakeRegistry();
    ASSERT_TRUE(made.ok()) << made.status();
    registry_ = *std::move(made);
    ASSERT_TRUE(AddPluginOps(registry_.get()).ok());
  }
  std::unique_ptr<OpRegistry> registry_;
};

TEST_F(ManualOps, ComputeHalvesAndComplexNumbers) {
  PluginNetwork network(registry_.get());
  network.Feed<Float16>("h", DType::kFloat16, {2},
                        {Float16(1.5f), Float16(-2.0f)});
  network.Feed<BFloat16>("b", DType::kBFloat16, {1}, {BFloat16(3.0f)});
  network.Feed<std::complex<float>>("c", DType::kComplex64, {1}, {{1, -2}});
  for (const char* x : {"h", "b", "c"})
    ASSERT_TRUE(network
                    .Add("manual_twice", {{"X", {x}}},
                         {{"Out", {std::string("out_") + x}}})
                    .ok());
  const auto halves = network.Run("out_h"), brains = network.Run("out_b"),
             complex = network.Run("out_c");
  ASSERT_TRUE(halves.ok() && brains.ok() && complex.ok())
      << halves.status() << brains.status() << complex.status();
  EXPECT_EQ(static_cast<float>(halves->data<Float16>()[0]), 3.0f);
  EXPECT_EQ(static_cast<float>(halves->data<Float16>()[1]), -4.0f);
  EXPECT_EQ(static_cast<float>(brains->data<BFloat16>()[0]), 6.0f);
  EXPECT_EQ(complex->data<std::complex<float>>()[0],
            std::complex<float>(2, -4));
}

TEST_F(ManualOps, TakeListsAndInputsThatMayBeAbsent) {
  for (const bool with_bias : {false, true}) {
    PluginNetwork network(registry_.get());
    network.Feed<float>("x", DType::kFloat32, {1, 2}, {1, 2});
    network.Feed<float>("more", DType::kFloat32, {1, 2}, {3, -1});
    network.Feed<float>("w", DType::kFloat32, {2, 2}, {1, 1, 2, 0});
    network.Feed<float>("bias", DType::kFloat32, {2}, {0, -3});
    PluginNetwork::Names inputs = {
        {"X", {"x"}}, {"W", {"w"}}, {"More@VECTOR", {"more"}}};
    if (with_bias) inputs.push_back({"Bias@OPTIONAL", {"bias"}});
    ASSERT_TRUE(
        network
            .Add("manual_layer", inputs, {{"Out", {"out"}}, {"Norm", {"norm"}}})
            .ok());
    // Rows (3, 2) and (2, 6); with the bias (3, 0) and (2, 3).
    const std::vector<float> out =
        with_bias ? std::vector<float>{3, -1} : std::vector<float>{1, -4};
    const std::vector<float> norm =
        with_bias ? std::vector<float>{9, 13} : std::vector<float>{13, 40};
    ExpectValues<float>(network.Run("out"), {2, 1}, out);
    ExpectValues<float>(network.Run("norm"), {2, 1}, norm);
  }
}

TEST_F(ManualOps, HaveSecondGradients) {
  PluginNetwork network(registry_.get());
  for (const char* name : {"x", "dy", "ddx"})
    network.Feed<float>(name, DType::kFloat32, {1},
                        {*name == 'x' ? 2.0f : 0.5f});
  ASSERT_TRUE(network.Add("manual_cube", {{"X", {"x"}}}, {{"Y", {"y"}}}).ok());
  ASSERT_TRUE(network
                  .Add("manual_cube_grad", {{"X", {"x"}}, {"Y@GRAD", {"dy"}}},
                       {{"X@GRAD", {"dx"}}})
                  .ok());
  ASSERT_TRUE(
      network
          .Add("manual_cube_grad_grad",
               {{"X", {"x"}}, {"Y@GRAD", {"dy"}}, {"X@GRAD@GRAD", {"ddx"}}},
               {{"X@GRAD@NEW", {"dx_new"}}, {"Y@GRAD@GRAD", {"ddy"}}})
          .ok());
  ExpectValues<float>(network.Run("y"), {1}, {8});
  ExpectValues<float>(network.Run("dx"), {1}, {6});
  ExpectValues<float>(network.Run("dx_new"), {1}, {3});
  ExpectValues<float>(network.Run("ddy"), {1}, {6});
}

TEST_F(ManualOps, UseMethodsOfTensors) {
  PluginNetwork network(registry_.get());
  network.Feed<float>("x", DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(
      network.Add("manual_methods", {{"X", {"x"}}}, {{"Out", {"out"}}}).ok());
  ExpectValues<float>(network.Run("out"), {2, 2}, {4, 3, 2, 1});
}

TEST_F(ManualOps, HaveShapesThatFollowFromAttributes) {
  for (const bool keep : {false, true}) {
    PluginNetwork network(registry_.get());
    network.Feed<float>("x", DType::kFloat32, {2, 2}, {1, 3, 2, 6});
    ASSERT_TRUE(network
                    .Add("manual_moments", {{"X", {"x"}}},
                         {{"Mean", {"mean"}}, {"Variance", {"variance"}}},
                         {{"axes", std::vector<int32_t>{1}}, {"keep", keep}})
                    .ok());
    const Shape shape = keep ? Shape{2, 1} : Shape{2};
    ExpectValues<float>(network.Run("mean"), shape, {2, 4});
    ExpectValues<float>(network.Run("variance"), shape, {1, 4});
  }
}

}  // namespace test_manual_ops
}  // namespace pd
