// SPDX-License-Identifier: Apache-2.0
// Exports of a network that was trained with fake-quantize ops: integer
// forms that answer as the simulation did.
#include "libcore/quant/aware.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "formats/npz.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace test_aware {

class AwareModel : public ::testing::Test {
 protected:
  // PaddlePaddle's state at the end of a case of testdata/quant/aware.
  void Load(const std::string& name,
            const std::vector<std::string>& overrides) {
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    ASSERT_TRUE(AttachAllKernels(&registry_).ok());
    const std::string folder = std::string(PD_TESTDATA) + "/quant/aware/";
    const auto job = ReadJob(folder + "network.pbtxt", overrides);
    ASSERT_TRUE(job.ok()) << job.status();
    auto program = BuildTestProgram(registry_, *job);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    names_ = {program_.inputs, program_.outputs};
    auto golden = ReadNpz(folder + name + ".npz");
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = *std::move(golden);
    for (const auto& [key, value] : golden_)
      if (absl::StartsWith(key, "end:")) params_[key.substr(4)] = value;
  }

  // The largest difference from PaddlePaddle's answers in training's form.
  double Worst(const InferenceModel& model) {
    const Array& all = golden_.at("x");
    const Shape shape(all.shape.begin() + 1, all.shape.end());
    const int64_t n = NumElements(shape);
    const float* last = all.data<float>() + all.size() - n;
    const Array x = MakeArray<float>(shape, std::vector<float>(last, last + n));
    Session session(&registry_);
    for (const auto& [key, value] : model.params)
      EXPECT_TRUE(session.scope().Set(key, value).ok());
    const auto run =
        session.Run(model.program, {{"x", x}}, model.names.fetches);
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok()) return 1e9;
    const Array& want = golden_.at("eval");
    const Array& got = run->begin()->second;
    double worst = 0;
    for (int64_t i = 0; i < want.size(); ++i)
      worst = std::max<double>(
          worst, std::fabs(want.data<float>()[i] - got.data<float>()[i]));
    return worst;
  }

  OpRegistry registry_;
  TrainProgram program_;
  FeedFetch names_;
  NamedArrays golden_, params_;
};

TEST_F(AwareModel, IntegersAnswerAsTheSimulation) {
  Load("channels", {"quant.weight_quantize_type=channel_wise_abs_max"});
  ASSERT_TRUE(SimulatesQuantization(program_.test));
  for (const bool fold : {false, true}) {
    const auto learned =
        LearnQuantization(program_.test, names_, params_, fold);
    ASSERT_TRUE(learned.ok()) << learned.status();
    EXPECT_EQ(learned->only_simulated, "");
    EXPECT_FALSE(SimulatesQuantization(learned->model.program));
    EXPECT_EQ(learned->quantization.plan.ops.size(), 5u);
    EXPECT_EQ(learned->quantization.plan.left.size(), 1u);  // fc2
    // Beyond the scale int8 has one number more than training's rounding.
    EXPECT_LT(Worst(WithQuantizeLinear(learned->model, learned->quantization)),
              0.02);
    EXPECT_LT(Worst(WithFakeQuantize(learned->model, learned->quantization)),
              0.02);
  }
}

TEST_F(AwareModel, OtherBitsAreSimulated) {
  Load("few_bits", {"quant.weight_quantize_type=channel_wise_abs_max",
                    "quant.weight_bits=4", "quant.activation_bits=5"});
  const auto learned = LearnQuantization(program_.test, names_, params_, false);
  ASSERT_TRUE(learned.ok()) << learned.status();
  EXPECT_EQ(learned->only_simulated, "activations have 5 bits, not 8");
  const auto simulated = FreezeSimulated(program_.test, names_, params_);
  ASSERT_TRUE(simulated.ok()) << simulated.status();
  EXPECT_LT(Worst(*simulated), 1e-5);
  EXPECT_EQ(simulated->params.count("conv1._fake_quant_input._state"), 0u);
}

TEST_F(AwareModel, ScalesMustBePositive) {
  Load("whole", {});
  params_["fc1._fake_quant_input._scale"] = MakeArray<float>({1}, {0.0f});
  const auto zero = LearnQuantization(program_.test, names_, params_, false);
  EXPECT_EQ(zero.status().message(),
            "the scale 'fc1._fake_quant_input._scale' is 0: was it ever "
            "trained?");
  params_["fc1._fake_quant_input._scale"] = MakeArray<float>({1}, {NAN});
  EXPECT_FALSE(LearnQuantization(program_.test, names_, params_, false).ok());
}

}  // namespace test_aware
}  // namespace pd
