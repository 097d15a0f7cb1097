// SPDX-License-Identifier: Apache-2.0
// Kernels of plug-ins for operators that pdkit has, in the C++ form.
#include "absl/strings/match.h"
#include "libcore/ops/registry.h"
#include "libcore/plugin/plugins.h"
#include "tests/plugin/expect_refused.h"
#include "tests/plugin/plugin_network.h"

namespace pd {
namespace test_phi_kernels {

std::unique_ptr<OpRegistry> Reference(bool prefer) {
  const absl::Status loaded = LoadPlugin(PD_PLUGIN_FOLDER "/libphi_kernels.so");
  EXPECT_TRUE(loaded.ok()) << loaded;
  auto registry = std::make_unique<OpRegistry>();
  EXPECT_TRUE(RegisterAllOps(registry.get()).ok());
  const absl::Status added = AddPluginOps(registry.get(), prefer);
  EXPECT_TRUE(added.ok()) << added;
  return registry;
}
const OpRegistry& Preferring() {
  static const auto* const registry = Reference(true).release();
  return *registry;
}

std::string ImplementationOf(const PluginNetwork& network,
                             const std::string& fetch) {
  const auto info = network.StepOf(fetch);
  return info.ok() ? info->implementation : info.status().ToString();
}

TEST(PhiKernels, ComputeWhatPdkitDoesNot) {
  PluginNetwork network(&Preferring());
  network.Feed<int8_t>("x", DType::kInt8, {2, 3}, {1, 2, 3, 4, 5, 6});
  network.Feed<int8_t>("y", DType::kInt8, {2, 3}, {1, 1, 2, 2, 1, 0});
  ASSERT_TRUE(
      network.Add("dot", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}})
          .ok());
  EXPECT_EQ(ImplementationOf(network, "out"), "plugin:dot");
  ExpectValues<int8_t>(network.Run("out"), {2}, {9, 13});
}

TEST(PhiKernels, OfOtherTypesAreRefusedWithAReason) {
  PluginNetwork network(&Preferring());
  network.Feed<float>("x", DType::kFloat32, {2}, {1, 2});
  ASSERT_TRUE(
      network.Add("dot", {{"X", {"x"}}, {"Y", {"x"}}}, {{"Out", {"out"}}})
          .ok());
  const auto info = network.StepOf("out");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->implementation, "reference");
  ASSERT_EQ(info->refusals.size(), 1u);
  EXPECT_EQ(info->refusals[0],
            "plugin:dot: kernel 'dot' is not there for float32, but int8");
}

TEST(PhiKernels, TakeListsNumbersAndTypes) {
  PluginNetwork network(&Preferring());
  network.Feed<float>("x", DType::kFloat32, {1, 2}, {1, 2});
  network.Feed<float>("y", DType::kFloat32, {2, 2}, {3, 4, 5, 6});
  ASSERT_TRUE(network
                  .Add("concat", {{"X", {"x", "y"}}}, {{"Out", {"joined"}}},
                       {{"axis", int32_t{0}}})
                  .ok());
  EXPECT_EQ(ImplementationOf(network, "joined"), "plugin:concat");
  ExpectValues<float>(network.Run("joined"), {3, 2}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(network
                  .Add("fill_constant", {}, {{"Out", {"sevens"}}},
                       {{"shape", std::vector<int64_t>{2, 2}},
                        {"value", 7.0f},
                        {"str_value", std::string("7.5")},
                        {"dtype", static_cast<int32_t>(DType::kFloat32)}})
                  .ok());
  EXPECT_EQ(ImplementationOf(network, "sevens"), "plugin:full");
  ExpectValues<float>(network.Run("sevens"), {2, 2}, {7.5, 7.5, 7.5, 7.5});
}

TEST(PhiKernels, TakeInputsThatMayBeAbsent) {
  for (const bool scaled : {false, true}) {
    PluginNetwork network(&Preferring());
    network.Feed<float>("x", DType::kFloat32, {2, 2}, {1, 3, 2, 6});
    network.Feed<float>("s", DType::kFloat32, {2}, {2, 10});
    PluginNetwork::Names inputs = {{"X", {"x"}}};
    if (scaled) inputs.push_back({"Scale", {"s"}});
    ASSERT_TRUE(
        network
            .Add("layer_norm", inputs,
                 {{"Y", {"y"}}, {"Mean", {"mean"}}, {"Variance", {"variance"}}},
                 {{"epsilon", 0.0f}, {"begin_norm_axis", int32_t{1}}})
            .ok());
    EXPECT_EQ(ImplementationOf(network, "y"), "plugin:layer_norm");
    const float one = scaled ? 2 : 1, two = scaled ? 10 : 1;
    ExpectValues<float>(network.Run("y"), {2, 2}, {-one, two, -one, two});
    ExpectValues<float>(network.Run("mean"), {2}, {2, 4});
    ExpectValues<float>(network.Run("variance"), {2}, {1, 4});
  }
}

TEST(PhiKernels, OfLaterReleasesGetWhatTheOpLacks) {
  PluginNetwork network(&Preferring());
  network.Feed<float>("x", DType::kFloat32, {3}, {2, 5, 3});
  ASSERT_TRUE(network
                  .Add("argsort", {{"X", {"x"}}},
                       {{"Out", {"sorted"}}, {"Indices", {"order"}}},
                       {{"descending", true}})
                  .ok());
  EXPECT_EQ(ImplementationOf(network, "sorted"), "plugin:argsort");
  ExpectValues<float>(network.Run("sorted"), {3}, {5, 3, 2});
  ExpectValues<int64_t>(network.Run("order"), {3}, {1, 2, 0});
}

TEST(PhiKernels, HaveTheTypeOfTheOutputWhereTheOpChoosesIt) {
  PluginNetwork network(&Preferring());
  network.Feed<float>("x", DType::kFloat32, {2}, {2, 5});
  ASSERT_TRUE(network
                  .Add("fill_any_like", {{"X", {"x"}}}, {{"Out", {"sevens"}}},
                       {{"value", 7.0f},
                        {"dtype", static_cast<int32_t>(DType::kInt64)}})
                  .ok());
  EXPECT_EQ(ImplementationOf(network, "sevens"), "plugin:full_like");
  ExpectValues<int64_t>(network.Run("sevens"), {2}, {7, 7});
}

TEST(PhiKernels, WithOtherArgumentsAreLeftOut) {
  PluginNetwork network(&Preferring());
  network.Feed<float>("x", DType::kFloat32, {2}, {-2, 5});
  ASSERT_TRUE(network.Add("abs", {{"X", {"x"}}}, {{"Out", {"out"}}}).ok());
  EXPECT_EQ(ImplementationOf(network, "out"), "reference");
  ExpectValues<float>(network.Run("out"), {2}, {2, 5});
}

TEST(PhiKernels, GiveMemoryOfTheirOwn) {
  PluginNetwork network(&Preferring());
  network.Feed<double>("x", DType::kFloat64, {2, 2}, {0, 0, 0, std::log(3.0)});
  ASSERT_TRUE(network.Add("softmax", {{"X", {"x"}}}, {{"Out", {"out"}}}).ok());
  EXPECT_EQ(ImplementationOf(network, "out"), "plugin:softmax");
  ExpectValues<double>(network.Run("out"), {2, 2}, {0.5, 0.5, 0.25, 0.75});
}

TEST(PhiKernels, AreAskedLastWhereTheyAreNotPreferred) {
  const auto registry = Reference(false);
  PluginNetwork network(registry.get());
  network.Feed<float>("x", DType::kFloat32, {1, 2}, {1, 2});
  network.Feed<int8_t>("y", DType::kInt8, {2}, {3, 4});
  ASSERT_TRUE(network.Add("softmax", {{"X", {"x"}}}, {{"Out", {"soft"}}}).ok());
  ASSERT_TRUE(
      network.Add("dot", {{"X", {"y"}}, {"Y", {"y"}}}, {{"Out", {"product"}}})
          .ok());
  EXPECT_EQ(ImplementationOf(network, "soft"), "reference");
  EXPECT_EQ(ImplementationOf(network, "product"), "plugin(last):dot");
  ExpectValues<int8_t>(network.Run("product"), {1}, {25});
}

// The kernel fails in the way that the first element says.
absl::Status RunTanh(float how) {
  PluginNetwork network(&Preferring());
  network.Feed<float>("x", DType::kFloat32, {2}, {how, 0});
  PD_RETURN_IF_ERROR(network.Add("tanh", {{"X", {"x"}}}, {{"Out", {"out"}}}));
  return network.Run("out").status();
}

TEST(PhiKernels, NameFileAndKernelWhereTheyFail) {
  EXPECT_TRUE(RunTanh(0).ok()) << RunTanh(0);
  const std::pair<float, const char*> cases[] = {
      {1, "out of ideas"},
      {2, "it threw something that is no std::exception"},
      {3, "leaves output 'Out' without a value"},
      {4, "gives output 'Out' the type float64; expected float32"},
      {5, "gives output 'Out' the shape [7]; expected [2]"},
      {6, "a tensor is read as another type than that of its elements"},
      {7, "memory for a tensor of shape [-1]"},
      {8, "is larger than any memory"}};
  for (const auto& [how, said] : cases) {
    const absl::Status status = RunTanh(how);
    EXPECT_TRUE(absl::StrContains(status.message(), said)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  "plug-in '" PD_PLUGIN_FOLDER
                                  "/libphi_kernels.so', kernel 'tanh'"))
        << status;
  }
}

#ifndef PD_WITH_SANITIZER
TEST(PhiKernels, TellCrashes) {
  EXPECT_EXIT(RunTanh(9).IgnoreError(), testing::KilledBySignal(SIGSEGV),
              "crash .SIGSEGV. inside plug-in '.*phi_kernels.so', kernel "
              "'tanh'");
}
#endif

TEST(PhiKernels, OfNoUseAreRefused) {
  ExpectRefused("bad_kernel_name",
                "kernel_name.so': its kernels .dott. are of no operator here");
  ExpectRefused("bad_kernel_counts",
                "kernel 'dot' takes 1 tensor and 1 attribute and writes 1; "
                "expected dot.X, Y. -> Out");
  ExpectRefused("bad_kernel_twice",
                "kernel 'dot' of CPU for float32 is declared already");
}

}  // namespace test_phi_kernels
}  // namespace pd
