// SPDX-License-Identifier: Apache-2.0
// Quantized networks on a device: their products are of integers there, in
// every form that PaddlePaddle writes, and the answers are the CPU's and, as
// near as theirs, PaddlePaddle's. What single ops give is held against the
// reference by test_int8_kernels_device. On the fake driver (fake_cuda.cc) or,
// with PD_TEST_GPU=real, on a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "formats/npz.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/quant/aware.h"
#include "tests/device/test_place.h"
#include "tests/train/aware_case.h"

namespace pd {
namespace test_device_int8 {

struct Answer {
  Array values;
  std::set<std::string> on_device, on_host;  // types of steps
};

class DeviceInt8 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (OnRealGpu() && !TestPlace().ok())
      GTEST_SKIP() << TestPlace().status().message();
    ASSERT_TRUE(TestPlace().ok()) << TestPlace().status();
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    ASSERT_TRUE(AttachAllKernels(&registry_).ok());
    const AwareCase& c = AwareCases().front();
    const TrainProgram program = BuildAware(c, registry_);
    auto golden =
        ReadNpz(std::string(PD_TESTDATA) + "/quant/aware/" + c.name + ".npz");
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = *std::move(golden);
    NamedArrays params;
    for (const auto& [key, value] : golden_)
      if (absl::StartsWith(key, "end:")) params[key.substr(4)] = value;
    auto learned = LearnQuantization(
        program.test, {program.inputs, program.outputs}, params, false);
    ASSERT_TRUE(learned.ok()) << learned.status();
    learned_ = *std::move(learned);
  }

  // The last batch, of which PaddlePaddle's answers are known.
  Array LastBatch() const {
    const Array& all = golden_.at("x");
    const Shape shape(all.shape.begin() + 1, all.shape.end());
    const int64_t n = NumElements(shape);
    const float* last = all.data<float>() + all.size() - n;
    return MakeArray<float>(shape, std::vector<float>(last, last + n));
  }

  Answer Run(const InferenceModel& model,
             const std::shared_ptr<const DevicePlace>& place) {
    registry_.SetDevice(place);
    Session session(&registry_);
    Answer answer;
    for (const auto& [key, value] : model.params)
      EXPECT_TRUE(session.scope().Set(key, value).ok());
    const Array x = LastBatch();
    auto plan = session.Compile(model.program, {{"x", x.dtype, x.shape}},
                                model.names.fetches);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return answer;
    for (const StepInfo& step : (*plan)->steps())
      (step.on_device ? answer.on_device : answer.on_host).insert(step.op_type);
    (*plan)->SetFeed(0, x.bytes.get());
    // Captured work gives what the first run gave.
    for (int run = 0; run < 4; ++run) EXPECT_TRUE((*plan)->Run({}).ok());
    answer.values = ToArray((*plan)->fetch(0));
    return answer;
  }

  static double Worst(const Array& a, const Array& b) {
    EXPECT_EQ(a.size(), b.size());
    double worst = 0;
    for (int64_t i = 0; i < a.size() && i < b.size(); ++i)
      worst = std::max<double>(
          worst, std::fabs(a.data<float>()[i] - b.data<float>()[i]));
    return worst;
  }

  void Check(const InferenceModel& model) {
    const Answer cpu = Run(model, nullptr), gpu = Run(model, *TestPlace());
    EXPECT_LT(Worst(cpu.values, gpu.values), 1e-5);
    EXPECT_LT(Worst(gpu.values, golden_.at("eval")), 0.02);
    for (const std::string& type : gpu.on_host)
      EXPECT_FALSE(absl::StrContains(type, "int8")) << type;
    for (const char* type : {"int8_quantize", "int8_conv2d", "int8_matmul"})
      EXPECT_EQ(gpu.on_device.count(type), 1u) << type;
    // None is left in floating point, and bytes go from one to the next.
    EXPECT_EQ(gpu.on_device.count("conv2d") + gpu.on_host.count("conv2d"), 0u);
  }

  OpRegistry registry_;
  NamedArrays golden_;
  LearnedQuantization learned_;
};

TEST_F(DeviceInt8, QuantizeLinear) {
  Check(WithQuantizeLinear(learned_.model, learned_.quantization));
}

TEST_F(DeviceInt8, FakeQuantize) {
  Check(WithFakeQuantize(learned_.model, learned_.quantization));
}

}  // namespace test_device_int8
}  // namespace pd
