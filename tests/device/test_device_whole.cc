// SPDX-License-Identifier: Apache-2.0
// Whole numbers and truth values that are on a device, beside the CPU's.
#include <gtest/gtest.h>

#include <cstring>

#include "libcore/base/log.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/cuda/place.h"
#include "tests/device/stand_in.h"

namespace pd {
namespace {

class DeviceWhole : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kWarning);
    ASSERT_TRUE(UseStandIn().ok());
    static const auto* const kPlace = new auto(MakePlace(0, StandInImages()));
    ASSERT_TRUE(kPlace->ok()) << kPlace->status();
    place_ = **kPlace;
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    program_.blocks.resize(1);
    // Floats that become whole numbers where they are.
    for (const char* name : {"x", "y"}) {
      Var(name, DType::kFloat32);
      const std::string twice = std::string(name) + "2";
      Var(twice, DType::kFloat32);
      Op("scale", {name}, twice)->attrs["scale"] = 2.0f;
      Var(std::string(name) + "i", GetParam());
      OpDesc* cast = Op("cast", {twice}, std::string(name) + "i");
      cast->attrs["in_dtype"] = static_cast<int32_t>(DType::kFloat32);
      cast->attrs["out_dtype"] = static_cast<int32_t>(GetParam());
    }
  }
  void TearDown() override { SetDefaultPlace(nullptr); }

  void Var(const std::string& name, DType dtype) {
    VarDesc var;
    var.name = name;
    var.dtype = dtype;
    var.shape = {kCount};
    program_.global().vars.push_back(var);
  }
  OpDesc* Op(const std::string& type, const std::vector<std::string>& in,
             const std::string& out) {
    OpDesc op;
    op.type = type;
    op.SetInput("X", {in[0]});
    if (in.size() > 1) op.SetInput("Y", {in[1]});
    op.SetOutput("Out", {out});
    program_.global().ops.push_back(op);
    return &program_.global().ops.back();
  }
  static Array Floats(const std::vector<float>& values) {
    std::byte* bytes = nullptr;
    Array array = NewArray(DType::kFloat32, {kCount}, &bytes);
    std::memcpy(bytes, values.data(), values.size() * sizeof(float));
    return array;
  }

  // 0.5 stands for 1: a divisor is never 0.
  static constexpr int64_t kCount = 8;
  const std::vector<float> x_ = {-4, -3.5f, 3.5f, 4, 0, 1.5f, -0.5f, 100};
  const std::vector<float> y_ = {1.5f, -1.5f, 2, -2, 3, 1.5f, -0.5f, 0.5f};
  std::shared_ptr<const DevicePlace> place_;
  OpRegistry registry_;
  ProgramDesc program_;
};

TEST_P(DeviceWhole, AreTheCpus) {
  std::vector<std::string> fetches;
  for (const char* name :
       {"elementwise_add", "elementwise_sub", "elementwise_mul",
        "elementwise_max", "elementwise_min", "elementwise_mod",
        "elementwise_floordiv"}) {
    Var(name, GetParam());
    Op(name, {"xi", "yi"}, name);
    fetches.push_back(name);
  }
  for (const char* name : {"equal", "not_equal", "less_than", "less_equal",
                           "greater_than", "greater_equal"}) {
    Var(name, DType::kBool);
    Op(name, {"xi", "yi"}, name);
    fetches.push_back(name);
  }
  for (const char* name : {"logical_and", "logical_or", "logical_xor"}) {
    Var(name, DType::kBool);
    Op(name, {"less_than", "less_equal"}, name);
    fetches.push_back(name);
  }
  Var("not", DType::kBool);
  Op("logical_not", {"less_than"}, "not");
  fetches.push_back("not");
  const NamedArrays feeds = {{"x", Floats(x_)}, {"y", Floats(y_)}};
  SetDefaultPlace(nullptr);
  Session cpu(&registry_, 7);
  const auto want = cpu.Run(program_, feeds, fetches);
  SetDefaultPlace(place_);
  Session gpu(&registry_, 7);
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
  Var("rest", GetParam());
  Op("elementwise_mod", {"xi", "yi"}, "rest");
  SetDefaultPlace(place_);
  Session gpu(&registry_, 7);
  std::vector<float> y = y_;
  y[3] = 0;
  const auto ran =
      gpu.Run(program_, {{"x", Floats(x_)}, {"y", Floats(y)}}, {"rest"});
  EXPECT_EQ(ran.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ran.status().message(), "a division by zero");
}

INSTANTIATE_TEST_SUITE_P(All, DeviceWhole,
                         testing::Values(DType::kInt32, DType::kInt64),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

}  // namespace
}  // namespace pd
