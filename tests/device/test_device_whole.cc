// SPDX-License-Identifier: Apache-2.0
// Integers and truth values that are on a device, beside the CPU's.
#include <cstring>

#include "tests/device/device_plan.h"

namespace pd {
namespace test_device_whole {

class DeviceWhole : public DevicePlan,
                    public ::testing::WithParamInterface<DType> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DevicePlan::SetUp());
    // Floats that become integers where they are.
    for (const char* name : {"x", "y"}) {
      Var(name, DType::kFloat32, {kCount});
      const std::string twice = std::string(name) + "2";
      Var(twice, DType::kFloat32, {kCount});
      Op("scale", name, twice)->attrs["scale"] = 2.0f;
      Var(std::string(name) + "i", GetParam(), {kCount});
      OpDesc* cast = Op("cast", twice, std::string(name) + "i");
      cast->attrs["in_dtype"] = static_cast<int32_t>(DType::kFloat32);
      cast->attrs["out_dtype"] = static_cast<int32_t>(GetParam());
    }
  }
  // 0.5 stands for 1: a divisor is never 0.
  static constexpr int64_t kCount = 8;
  const std::vector<float> x_ = {-4, -3.5f, 3.5f, 4, 0, 1.5f, -0.5f, 100};
  const std::vector<float> y_ = {1.5f, -1.5f, 2, -2, 3, 1.5f, -0.5f, 0.5f};
};

TEST_P(DeviceWhole, AreTheCpus) {
  std::vector<std::string> fetches;
  for (const char* name :
       {"elementwise_add", "elementwise_sub", "elementwise_mul",
        "elementwise_max", "elementwise_min", "elementwise_mod",
        "elementwise_floordiv"}) {
    Var(name, GetParam(), {kCount});
    Op(name, "xi", name)->SetInput("Y", {"yi"});
    fetches.push_back(name);
  }
  for (const char* name : {"equal", "not_equal", "less_than", "less_equal",
                           "greater_than", "greater_equal"}) {
    Var(name, DType::kBool, {kCount});
    Op(name, "xi", name)->SetInput("Y", {"yi"});
    fetches.push_back(name);
  }
  for (const char* name : {"logical_and", "logical_or", "logical_xor"}) {
    Var(name, DType::kBool, {kCount});
    Op(name, "less_than", name)->SetInput("Y", {"less_equal"});
    fetches.push_back(name);
  }
  Var("not", DType::kBool, {kCount});
  Op("logical_not", "less_than", "not");
  fetches.push_back("not");
  const NamedArrays feeds = {{"x", Floats(x_, {kCount})},
                             {"y", Floats(y_, {kCount})}};
  Session cpu = OnCpu();
  const auto want = cpu.Run(program_, feeds, fetches);
  Session gpu = OnGpu();
  const auto got = gpu.Run(program_, feeds, fetches);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  for (const std::string& name : fetches) {
    const Array &a = want->at(name), &b = got->at(name);
    ASSERT_EQ(a.size_bytes(), b.size_bytes()) << name;
    EXPECT_EQ(std::memcmp(a.bytes.get(), b.bytes.get(), a.size_bytes()), 0)
        << name;
  }
  const auto plan = gpu.Compile(
      program_,
      {{"x", DType::kFloat32, {kCount}}, {"y", DType::kFloat32, {kCount}}},
      fetches);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE((*plan)->runs_ahead());
}

TEST_P(DeviceWhole, ADivisionByZeroFailsTheRun) {
  Var("rest", GetParam(), {kCount});
  Op("elementwise_mod", "xi", "rest")->SetInput("Y", {"yi"});
  Session gpu = OnGpu();
  std::vector<float> y = y_;
  y[3] = 0;
  const auto ran = gpu.Run(
      program_, {{"x", Floats(x_, {kCount})}, {"y", Floats(y, {kCount})}},
      {"rest"});
  EXPECT_EQ(ran.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ran.status().message(), "a division by zero");
}

INSTANTIATE_TEST_SUITE_P(All, DeviceWhole,
                         ::testing::Values(DType::kInt32, DType::kInt64),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

}  // namespace test_device_whole
}  // namespace pd
