// SPDX-License-Identifier: Apache-2.0
// Quantization-aware training from a job: PaddlePaddle's ImperativeQuantAware
// over the same network, start and batches (testdata/quant/aware), and what a
// job may say wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

const std::string kFolder = std::string(PD_TESTDATA) + "/quant/aware";

const OpRegistry& Registry() {
  static const OpRegistry* const kRegistry = [] {
    auto* registry = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(registry).ok());
    EXPECT_TRUE(AttachAllKernels(registry).ok());
    return registry;
  }();
  return *kRegistry;
}

struct Case {
  const char* name;
  std::vector<std::string> overrides;
  // Of few bits a last bit turns a rounding over now and then, by much.
  double tolerance = 1e-5;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Aware : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto job = ReadJob(kFolder + "/network.pbtxt", GetParam().overrides);
    ASSERT_TRUE(job.ok()) << job.status();
    auto program = BuildTrainProgram(Registry(), *job);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    auto arrays = ReadNpz(absl::StrCat(kFolder, "/", GetParam().name, ".npz"));
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    golden_ = *std::move(arrays);
    ASSERT_TRUE(session_.RunOnce(program_.startup).ok());
  }

  // The state that PaddlePaddle had at "init:" or "end:", by name.
  NamedArrays State(const std::string& when) const {
    NamedArrays state;
    for (const auto& [name, value] : golden_)
      if (absl::StartsWith(name, when)) state[name.substr(when.size())] = value;
    return state;
  }

  // Step `step` of an array [steps, ...].
  Array BatchOf(const std::string& name, int64_t step) const {
    const Array& all = golden_.at(name);
    const Shape shape(all.shape.begin() + 1, all.shape.end());
    if (all.dtype == DType::kInt64) {
      const int64_t* from = all.data<int64_t>() + step * NumElements(shape);
      return MakeArray<int64_t>(
          shape, std::vector<int64_t>(from, from + NumElements(shape)));
    }
    const float* from = all.data<float>() + step * NumElements(shape);
    return MakeArray<float>(
        shape, std::vector<float>(from, from + NumElements(shape)));
  }

  void Expect(const std::string& name, const Array& want, const Array& got,
              double tolerance) {
    ASSERT_EQ(want.size(), got.size()) << name;
    for (int64_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(want.data<float>()[i], got.data<float>()[i],
                  tolerance * (1 + std::fabs(want.data<float>()[i])))
          << name << " " << i;
  }

  TrainProgram program_;
  NamedArrays golden_;
  Session session_{&Registry()};
};

TEST_P(Aware, TrainsAsPaddlePaddle) {
  // First values too are its own.
  for (const auto& [name, value] : State("init:")) {
    if (absl::StrContains(name, "._fake_") ||
        absl::StrContains(name, "._ma_output_")) {
      const auto ours = session_.scope().Get(name);
      ASSERT_TRUE(ours.ok()) << ours.status();
      Expect(name, value, *ours, 0);
    }
    ASSERT_TRUE(session_.scope().Set(name, value).ok()) << name;
  }
  ASSERT_TRUE(session_.scope()
                  .Set(program_.learning_rate, MakeArray<float>({1}, {0.05f}))
                  .ok());
  const Array& losses = golden_.at("loss");
  for (int64_t step = 0; step < losses.size(); ++step) {
    const auto run = session_.Run(
        program_.main, {{"x", BatchOf("x", step)}, {"y", BatchOf("y", step)}},
        {program_.loss});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_NEAR(run->at(program_.loss).data<float>()[0],
                losses.data<double>()[step], GetParam().tolerance)
        << step;
  }
  const auto run = session_.Run(program_.test,
                                {{"x", BatchOf("x", losses.size() - 1)},
                                 {"y", BatchOf("y", losses.size() - 1)}},
                                program_.outputs);
  ASSERT_TRUE(run.ok()) << run.status();
  Expect("eval", golden_.at("eval"), run->at(program_.outputs[0]),
         GetParam().tolerance);
  // Evaluation has seen the weights of the last step.
  for (const auto& [name, value] : State("end:")) {
    const auto ours = session_.scope().Get(name);
    ASSERT_TRUE(ours.ok()) << ours.status();
    Expect(name, value, *ours, GetParam().tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, Aware,
    testing::Values(
        Case{"channels", {"quant.weight_quantize_type=channel_wise_abs_max"}},
        Case{"whole", {"quant.moving_rate=0.5"}},
        Case{"few_bits",
             {"quant.weight_quantize_type=channel_wise_abs_max",
              "quant.weight_bits=4", "quant.activation_bits=5"},
             2e-3},
        Case{"linear_only", {"quant.quantizable_layer_type=linear"}}),
    [](const auto& info) { return std::string(info.param.name); });

absl::StatusOr<TrainProgram> Build(const std::string& layers,
                                   const std::string& quant) {
  const auto job =
      ParseJob(absl::StrCat("model { input { name: \"x\" shape: [-1, 4] }\n",
                            layers, "}\nquant { ", quant,
                            " }\nloss { mse_loss {} }\noptimizer { sgd {} }\n"),
               "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildTrainProgram(Registry(), *job);
}

std::string ErrorOf(const std::string& layers, const std::string& quant) {
  const auto built = Build(layers, quant);
  return built.ok() ? "no error" : std::string(built.status().message());
}

const char kTwo[] =
    "layer { name: \"fc1\" linear { out_features: 4 } }\n"
    "layer { name: \"fc2\" linear { out_features: 2 } }\n";

TEST(QuantJob, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf(kTwo, "skip: \"fc3\""),
            "job.pbtxt:5:9: 'fc3' matches no layer that would be quantized, "
            "did you mean 'fc1'?");
  EXPECT_EQ(ErrorOf(kTwo, "skip: \"fc*\""),
            "job.pbtxt:5:1: the model has no layer to quantize: 'skip' leaves "
            "all of them out");
  EXPECT_EQ(ErrorOf("layer { relu {} }", ""),
            "job.pbtxt:3:1: the model has no layer to quantize; expected a "
            "conv2d, linear or conv2d_transpose of the kinds asked for, with a "
            "weight");
  EXPECT_TRUE(absl::StrContains(ErrorOf(kTwo, "weight_bits: 1"),
                                "job.pbtxt:5:9: 'weight_bits'"))
      << ErrorOf(kTwo, "weight_bits: 1");
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(kTwo, "moving_rate: 1"), "'moving_rate'"));
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(kTwo, "weight_quantize_type: channel_abs_max"),
                        "channel_wise_abs_max"));
}

int Count(const ProgramDesc& program, const std::string& type) {
  int count = 0;
  for (const OpDesc& op : program.global().ops) count += op.type == type;
  return count;
}

constexpr char kInput[] = "fake_quantize_dequantize_moving_average_abs_max";
constexpr char kWeight[] = "fake_quantize_dequantize_abs_max";

TEST(QuantJob, NumbersLayersWithoutNames) {
  const auto built = Build("layer { linear { out_features: 2 } }", "");
  ASSERT_TRUE(built.ok()) << built.status();
  for (const char* name :
       {"linear_0.w_0.scale_0", "linear_0.scale_0", "linear_0.state_0",
        "linear_0.accum_0", "linear_0._ma_output_scale._scale"})
    EXPECT_NE(built->main.global().FindVar(name), nullptr) << name;
}

TEST(QuantJob, QuantizesWhatSeveralReadOnce) {
  const auto built = Build(
      "layer { name: \"a\" input: \"x\" linear { out_features: 2 } }\n"
      "layer { name: \"b\" input: \"x\" linear { out_features: 2 } }\n"
      "layer { name: \"c\" input: \"a\" input: \"b\" add {} }\n",
      "");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(Count(built->main, kInput), 1);
  EXPECT_EQ(Count(built->main, kWeight), 2);
  EXPECT_EQ(Count(built->test, kInput), 1);
}

TEST(QuantJob, ReachesPartsOfLayersAndBothForms) {
  const auto built = Build(
      "layer { reshape { shape: [-1, 1, 4] } }\n"
      "layer { name: \"t\" transformer_encoder_layer { d_model: 4 nhead: 2 "
      "dim_feedforward: 8 } }\n"
      "layer { when: train dropout {} }\n"
      "layer { name: \"out\" linear { out_features: 2 } }\n",
      "skip: \"t.self_attn.k_proj\"");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(Count(built->main, kWeight), 6);  // q, v, out; two; one
  EXPECT_EQ(Count(built->test, kWeight), 6);
  EXPECT_EQ(Count(built->test, kInput), Count(built->main, kInput));
  EXPECT_NE(built->main.global().FindVar(
                "t.self_attn.q_proj._fake_quant_input._scale"),
            nullptr);
}

TEST(QuantJob, BatchesHaveTheirOwnScalesIfAsked) {
  const auto built = Build(kTwo, "activation_quantize_type: abs_max");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(Count(built->main, kInput), 0);
  EXPECT_EQ(Count(built->main, kWeight), 4);
}

}  // namespace
}  // namespace pd
