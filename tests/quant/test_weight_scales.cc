// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's WeightQuantization: its files answer here as its dequantized
// weights do there, and what we write of the same network is the same.
#include "libcore/deploy/weight_scales.h"

#include "formats/npz.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/model/load_model.h"
#include "libcore/quant/quantize.h"
#include "tests/deploy/deploy_fixture.h"

namespace pd {
namespace test_weight_scales {

const char* const kForms[] = {"int8_channels", "int8_whole", "int16_channels",
                              "int16_whole"};

std::string Prefix(const std::string& name) {
  return std::string(PD_TESTDATA) + "/quant/weight_only/" + name;
}

WeightOptions OptionsOf(const std::string& form) {
  WeightOptions options;
  options.bits = form.find("int16") == 0 ? 16 : 8;
  options.per_channel = form.find("channels") != std::string::npos;
  return options;
}

class WeightScales : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    ASSERT_TRUE(AttachAllKernels(&registry_).ok());
    auto answers = ReadNpz(Prefix("answers.npz"));
    ASSERT_TRUE(answers.ok()) << answers.status();
    answers_ = *std::move(answers);
    auto model = ReadInferenceModel(Prefix("float"));
    ASSERT_TRUE(model.ok()) << model.status();
    float_ = *std::move(model);
  }

  Array Answers(const ProgramDesc& program, const NamedArrays& params,
                const std::vector<std::string>& fetches) {
    Session session(&registry_);
    for (const auto& [name, value] : params)
      EXPECT_TRUE(session.scope().Set(name, value).ok());
    const auto results =
        session.Run(program, {{"x", answers_.at("x")}}, fetches);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->begin()->second : Array();
  }

  InferenceModel Written(const std::string& form) {
    Quantization q;
    auto plan = PlanQuantization(float_, {});
    EXPECT_TRUE(plan.ok()) << plan.status();
    q.plan = *std::move(plan);
    KeepWeightScaleOps(float_, &q.plan);
    EXPECT_EQ(q.plan.ops.size(), 3u);
    EXPECT_TRUE(QuantizeWeights(float_, OptionsOf(form), &q).ok());
    return WithWeightScales(float_, q);
  }

  static void ExpectNear(const Array& got, const Array& want, float most) {
    ASSERT_EQ(got.shape, want.shape);
    for (int64_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got.data<float>()[i], want.data<float>()[i], most) << i;
  }

  OpRegistry registry_;
  NamedArrays answers_;
  InferenceModel float_;
};

TEST_F(WeightScales, TheirFilesRun) {
  for (const std::string form : kForms) {
    SCOPED_TRACE(form);
    const auto model = LoadModel(Prefix(form));
    ASSERT_TRUE(model.ok()) << model.status();
    for (const OpDesc& op : model->program.global().ops)
      EXPECT_EQ(op.FindAttr("quantize_weight_bits"), nullptr) << op.type;
    ExpectNear(Answers(model->program, model->params, model->fetches),
               answers_.at(form), 1e-6f);
  }
}

// Attribute by attribute and integer by integer: quotients of the last bit may
// turn a half.
TEST_F(WeightScales, OursAreTheirs) {
  for (const std::string form : kForms) {
    SCOPED_TRACE(form);
    const auto theirs = ReadProgram(Prefix(form) + ".pdmodel");
    ASSERT_TRUE(theirs.ok()) << theirs.status();
    const auto values = LoadModel(Prefix(form));
    ASSERT_TRUE(values.ok()) << values.status();
    const InferenceModel ours = Written(form);
    int found = 0;
    for (const OpDesc& want : theirs->global().ops) {
      if (want.FindAttr("quantize_weight_bits") == nullptr) continue;
      for (const OpDesc& op : ours.program.global().ops) {
        if (op.type != want.type) continue;
        ++found;
        const std::string weight = op.In(op.type == "mul" ? "Y" : "Filter");
        const std::string steps = weight + "_quant_scale";
        for (const char* same :
             {"quantize_weight_bits", "quantization_type", "with_quant_attr"})
          EXPECT_EQ(op.attrs.at(same), want.attrs.at(same)) << same;
        const auto a = std::get<std::vector<float>>(op.attrs.at(steps));
        const auto b = std::get<std::vector<float>>(want.attrs.at(steps));
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) EXPECT_FLOAT_EQ(a[i], b[i]);
        const Array &x = ours.params.at(weight), &y = values->params.at(weight);
        ASSERT_EQ(x.dtype, y.dtype);
        int64_t others = 0;
        for (int64_t i = 0; i < x.size(); ++i) {
          const int apart = x.dtype == DType::kInt8
                                ? x.data<int8_t>()[i] - y.data<int8_t>()[i]
                                : x.data<int16_t>()[i] - y.data<int16_t>()[i];
          EXPECT_LE(std::abs(apart), 1);
          others += apart != 0;
        }
        EXPECT_LE(others, 1) << weight;
        // Declared as theirs are.
        EXPECT_EQ(ours.program.global().FindVar(weight)->dtype,
                  theirs->global().FindVar(weight)->dtype);
      }
    }
    EXPECT_EQ(found, 3);
  }
}

TEST_F(WeightScales, ALinearLayerBecomesMul) {
  auto model = ReadInferenceModel(DeployData("lenet"));
  ASSERT_TRUE(model.ok()) << model.status();
  float_ = *std::move(model);
  Quantization q;
  q.plan = *PlanQuantization(float_, {});
  KeepWeightScaleOps(float_, &q.plan);
  ASSERT_TRUE(QuantizeWeights(float_, {}, &q).ok());
  InferenceModel made = WithWeightScales(float_, q);
  int muls = 0;
  for (const OpDesc& op : made.program.global().ops) {
    EXPECT_NE(op.type, "matmul_v2");
    muls += op.type == "mul";
  }
  EXPECT_EQ(muls, 3);
}

TEST_F(WeightScales, WhatDoesNotFitIsRefused) {
  const InferenceModel made = Written("int8_channels");
  const auto says = [&](const char* type, const char* attr, Attribute value,
                        const std::string& words) {
    ProgramDesc program = made.program;
    NamedArrays params = made.params;
    for (OpDesc& op : program.global().ops)
      if (op.type == type) op.attrs[attr] = value;
    const absl::Status status = ReadWeightScales(&program, &params);
    EXPECT_NE(status.message().find(words), std::string_view::npos) << status;
  };
  using Floats = std::vector<float>;
  says("conv2d", "quantize_weight_bits", int32_t{16}, "is int8; attr");
  says("conv2d", "conv2d_0.w_0_quant_scale", Floats{1, 2}, "holds 2 scales");
  says("conv2d", "conv2d_0.w_0_quant_scale", Floats(), "holds no scales");
  says("conv2d", "conv2d_0.w_0_quant_scale", int32_t{1}, "holds no scales");
  says("mul", "fc_0.w_0_quant_scale", Floats{1, 1, -1, 1, 1}, "holds -1");
}

}  // namespace test_weight_scales
}  // namespace pd
