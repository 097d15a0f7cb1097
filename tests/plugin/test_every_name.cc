// SPDX-License-Identifier: Apache-2.0
// Plug-ins that use every name of the headers, and what follows from them.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "libcore/ops/registry.h"
#include "libcore/plugin/plugins.h"
#include "tests/plugin/plugin_network.h"

namespace pd {
namespace test_every_name {

const OpRegistry& Registry() {
  static const auto* const registry = [] {
    auto* made = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(made).ok());
    for (const char* file : {PD_PLUGIN_FOLDER "/libevery_op_name.so",
                             PD_PLUGIN_FOLDER "/libevery_kernel_name.so"}) {
      const absl::Status loaded = LoadPlugin(file);
      EXPECT_TRUE(loaded.ok()) << loaded;
      EXPECT_NE(::dlopen(file, RTLD_NOW), nullptr) << ::dlerror();
    }
    const absl::Status added = AddPluginOps(made);
    EXPECT_TRUE(added.ok()) << added;
    return made;
  }();
  return *registry;
}

TEST(EveryName, OfOperatorsIsThereAndEachAttributeTypeArrives) {
  PluginNetwork network(&Registry());
  network.Feed<float>("x", DType::kFloat32, {2}, {1, 2});
  absl::Status added = network.Add(
      "custom_everything", {{"X", {"x"}}, {"Many@VECTOR", {"x", "x"}}},
      {{"Out", {"middle"}}},
      {{"b", true}, {"i", int32_t{2}}, {"f", 0.5f}, {"d", 0.25}});
  ASSERT_TRUE(added.ok()) << added;
  added =
      network.Add("custom_the_rest", {{"X", {"middle"}}}, {{"Out", {"out"}}},
                  {{"l", int64_t{3}},
                   {"s", std::string("ab")},
                   {"is", std::vector<int32_t>{4}},
                   {"fs", std::vector<float>{1.5f}},
                   {"ls", std::vector<int64_t>{5}},
                   {"ss", std::vector<std::string>{"abc"}}});
  ASSERT_TRUE(added.ok()) << added;
  ExpectValues<float>(network.Run("out"), {2}, {25.25, 26.25});
}

absl::Status AddTwice(const std::string& text, bool with_y,
                      PluginNetwork* network) {
  PluginNetwork::Names inputs = {{"Input_1", {"x"}},
                                 {"Input_3@VECTOR", {"x", "x"}}};
  if (with_y) inputs.push_back({"Input_2@OPTIONAL", {"x"}});
  network->Feed<float>("x", DType::kFloat32, {2, 1}, {1, 2});
  return network->Add("custom_twice", inputs, {{"Output_0", {"out"}}},
                      {{"Attr_0", 0.5f},
                       {"Attr_1", std::vector<int64_t>{1, 2}},
                       {"Attr_2", text}});
}

TEST(EveryName, OfKernelsIsThereAndAnOperatorComesWithItsKernel) {
  for (const bool with_y : {false, true}) {
    PluginNetwork network(&Registry());
    const absl::Status added = AddTwice("ab", with_y, &network);
    ASSERT_TRUE(added.ok()) << added;
    // 0.5, two extents, two letters, two of the list, and y.
    const float factor = with_y ? 7.5f : 6.5f;
    ExpectValues<float>(network.Run("out"), {1, 2}, {factor, 2 * factor});
  }
}

TEST(EveryName, AnOperatorThatInferenceRefusesIsNamed) {
  PluginNetwork network(&Registry());
  const absl::Status added = AddTwice("refuse", false, &network);
  EXPECT_TRUE(absl::StrContains(added.message(), "this text is refused"))
      << added;
  EXPECT_TRUE(absl::StrContains(added.message(),
                                "libevery_kernel_name.so', op 'custom_twice'"))
      << added;
}

}  // namespace test_every_name
}  // namespace pd
