// SPDX-License-Identifier: Apache-2.0
// Plans on a device beside the same on the CPU: what is drawn, what kernels
// complain about, and persistable variables that both sides write.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>

#include "libcore/base/log.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/cuda/place.h"
#include "tests/device/stand_in.h"

namespace pd {
namespace {

class DevicePlan : public testing::Test {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kWarning);
    ASSERT_TRUE(UseStandIn().ok());
    static const auto* const kPlace = new auto(MakePlace(0, StandInImages()));
    ASSERT_TRUE(kPlace->ok()) << kPlace->status();
    place_ = **kPlace;
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    program_.blocks.resize(1);
  }
  void TearDown() override { SetDefaultPlace(nullptr); }

  void Var(const std::string& name, DType dtype, Shape shape,
           bool persistable = false) {
    VarDesc var;
    var.name = name;
    var.dtype = dtype;
    var.shape = std::move(shape);
    var.persistable = persistable;
    program_.global().vars.push_back(var);
  }
  OpDesc* Op(const std::string& type, const std::string& x,
             const std::string& out) {
    OpDesc op;
    op.type = type;
    op.SetInput("X", {x});
    op.SetOutput("Out", {out});
    program_.global().ops.push_back(op);
    return &program_.global().ops.back();
  }

  Session OnGpu() {
    SetDefaultPlace(place_);
    return Session(&registry_, 7);
  }
  Session OnCpu() {
    SetDefaultPlace(nullptr);
    return Session(&registry_, 7);
  }

  std::shared_ptr<const DevicePlace> place_;
  OpRegistry registry_;
  ProgramDesc program_;
};

Array Floats(const std::vector<float>& values, Shape shape) {
  std::byte* bytes = nullptr;
  Array array = NewArray(DType::kFloat32, std::move(shape), &bytes);
  std::memcpy(bytes, values.data(), values.size() * sizeof(float));
  return array;
}
std::vector<float> FloatsOf(const Array& array) {
  std::vector<float> values(array.size_bytes() / sizeof(float));
  std::memcpy(values.data(), array.bytes.get(), array.size_bytes());
  return values;
}

TEST_F(DevicePlan, DropsTheSameElementsAsTheCpu) {
  Var("x", DType::kFloat32, {3, 101});
  Var("y", DType::kFloat32, {3, 101});
  Var("mask", DType::kUInt8, {3, 101});
  OpDesc* op = Op("dropout", "x", "y");
  op->SetOutput("Mask", {"mask"});
  op->attrs["dropout_prob"] = 0.4f;
  op->attrs["dropout_implementation"] = std::string("upscale_in_train");
  std::vector<float> x;
  for (int i = 0; i < 303; ++i) x.push_back(static_cast<float>(i) - 150);
  const NamedArrays feeds = {{"x", Floats(x, {3, 101})}};
  Session cpu = OnCpu(), gpu = OnGpu();
  const auto want = cpu.Run(program_, feeds, {"y", "mask"});
  const auto got = gpu.Run(program_, feeds, {"y", "mask"});
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  for (const char* name : {"y", "mask"})
    EXPECT_EQ(std::memcmp(want->at(name).bytes.get(), got->at(name).bytes.get(),
                          want->at(name).size_bytes()),
              0)
        << name;
}

TEST_F(DevicePlan, AnIdThatIsNoRowFailsTheRun) {
  Var("w", DType::kFloat32, {3, 2});
  Var("ids", DType::kInt64, {2});
  Var("y", DType::kFloat32, {2, 2});
  OpDesc op;
  op.type = "lookup_table_v2";
  op.SetInput("W", {"w"});
  op.SetInput("Ids", {"ids"});
  op.SetOutput("Out", {"y"});
  program_.global().ops.push_back(op);
  std::byte* bytes = nullptr;
  Array ids = NewArray(DType::kInt64, {2}, &bytes);
  const int64_t numbers[] = {2, 3};
  std::memcpy(bytes, numbers, sizeof(numbers));
  Session gpu = OnGpu();
  const auto ran =
      gpu.Run(program_,
              {{"w", Floats({1, 2, 3, 4, 5, 6}, {3, 2})}, {"ids", ids}}, {"y"});
  EXPECT_EQ(ran.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ran.status().message(),
            "'Ids' of lookup_table_v2 over 'w' holds a number outside [0, 3)");
}

// Run after run: the device writes `doubled`, the CPU, as floor has no kernel
// there, `floor`, and the device `p`.
TEST_F(DevicePlan, BothSidesSeeWhatIsWritten) {
  Var("p", DType::kFloat32, {2}, true);
  Var("doubled", DType::kFloat32, {2}, true);
  Var("floor", DType::kFloat32, {2}, true);
  Op("scale", "p", "doubled")->attrs["scale"] = 2.0f;
  Op("floor", "doubled", "floor");                   // the CPU reads it
  Op("scale", "floor", "p")->attrs["scale"] = 1.5f;  // and the GPU that
  Session gpu = OnGpu();
  ASSERT_TRUE(gpu.scope().Set("p", Floats({1.25f, -0.5f}, {2})).ok());
  auto plan = gpu.Compile(program_, {}, {"floor"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ(FloatsOf(*gpu.scope().Get("doubled")),
            (std::vector<float>{2.5f, -1}));
  EXPECT_EQ(FloatsOf(*gpu.scope().Get("floor")), (std::vector<float>{2, -1}));
  EXPECT_EQ(FloatsOf(*gpu.scope().Get("p")), (std::vector<float>{3, -1.5f}));
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ(FloatsOf(*gpu.scope().Get("p")), (std::vector<float>{9, -4.5f}));
  EXPECT_EQ(FloatsOf(ToArray((*plan)->fetch(0))), (std::vector<float>{6, -3}));
  // Somebody sets it between runs, at once or through what Find has lent.
  ASSERT_TRUE(gpu.scope().Set("p", Floats({1, 1}, {2})).ok());
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ(FloatsOf(*gpu.scope().Get("p")), (std::vector<float>{3, 3}));
  Scope::Entry* lent = gpu.scope().Find("p");
  lent->tensor.data<float>()[0] = 5;
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ(lent->tensor.data<float>()[0], 15);
  EXPECT_EQ(lent->tensor.data<float>()[1], 9);
}

TEST_F(DevicePlan, TooLittleMemoryNamesTheLargestTensors) {
  setenv("FAKE_CUDA", "memory=7", 1);
  Var("x", DType::kFloat32, {1 << 20});
  Var("wide", DType::kFloat32, {1 << 20});
  Var("y", DType::kFloat32, {1 << 20});
  Op("exp", "x", "wide");
  Op("elementwise_add", "wide", "y")->SetInput("Y", {"x"});
  Session gpu = OnGpu();
  const auto plan =
      gpu.Compile(program_, {{"x", DType::kFloat32, {1 << 20}}}, {"y"});
  setenv("FAKE_CUDA", "", 1);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string said(plan.status().message());
  EXPECT_NE(said.find("of 7 MiB free; 9 MiB are needed at once"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("wide 5 MiB"), std::string::npos) << said;
  EXPECT_NE(said.find("a smaller batch needs less"), std::string::npos);
}

}  // namespace
}  // namespace pd
