// SPDX-License-Identifier: Apache-2.0
#include "tests/train/aware_case.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"

namespace pd {
namespace {

const std::string kFolder = std::string(PD_TESTDATA) + "/quant/aware";

// The state that PaddlePaddle had at "init:" or "end:", by name.
NamedArrays State(const NamedArrays& golden, const std::string& when) {
  NamedArrays state;
  for (const auto& [name, value] : golden)
    if (absl::StartsWith(name, when)) state[name.substr(when.size())] = value;
  return state;
}

// Step `step` of an array [steps, ...].
Array BatchOf(const Array& all, int64_t step) {
  const Shape shape(all.shape.begin() + 1, all.shape.end());
  if (all.dtype == DType::kInt64) {
    const int64_t* from = all.data<int64_t>() + step * NumElements(shape);
    return MakeArray<int64_t>(
        shape, std::vector<int64_t>(from, from + NumElements(shape)));
  }
  const float* from = all.data<float>() + step * NumElements(shape);
  return MakeArray<float>(shape,
                          std::vector<float>(from, from + NumElements(shape)));
}

void Expect(const std::string& name, const Array& want, const Array& got,
            double tolerance) {
  ASSERT_EQ(want.size(), got.size()) << name;
  for (int64_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(want.data<float>()[i], got.data<float>()[i],
                tolerance * (1 + std::fabs(want.data<float>()[i])))
        << name << " " << i;
}

void SetStart(const NamedArrays& golden, const TrainProgram& program,
              Session* session) {
  ASSERT_TRUE(session->RunOnce(program.startup).ok());
  // First values too are its own.
  for (const auto& [name, value] : State(golden, "init:")) {
    if (absl::StrContains(name, "._fake_") ||
        absl::StrContains(name, "._ma_output_")) {
      const auto ours = session->scope().Get(name);
      ASSERT_TRUE(ours.ok()) << ours.status();
      Expect(name, value, *ours, 0);
    }
    ASSERT_TRUE(session->scope().Set(name, value).ok()) << name;
  }
  ASSERT_TRUE(session->scope()
                  .Set(program.learning_rate, MakeArray<float>({1}, {0.05f}))
                  .ok());
}

}  // namespace

void PrintTo(const AwareCase& c, std::ostream* out) { *out << c.name; }

const std::vector<AwareCase>& AwareCases() {
  static const auto* const kCases = new std::vector<AwareCase>{
      {"channels", {"quant.weight_quantize_type=channel_wise_abs_max"}},
      {"whole", {"quant.moving_rate=0.5"}},
      {"few_bits",
       {"quant.weight_quantize_type=channel_wise_abs_max",
        "quant.weight_bits=4", "quant.activation_bits=5"},
       2e-3},
      {"linear_only", {"quant.quantizable_layer_type=linear"}}};
  return *kCases;
}

TrainProgram BuildAware(const AwareCase& c, const OpRegistry& registry) {
  const auto job = ReadJob(kFolder + "/network.pbtxt", c.overrides);
  EXPECT_TRUE(job.ok()) << job.status();
  if (!job.ok()) return {};
  auto program = BuildTrainProgram(registry, *job);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : TrainProgram();
}

void TrainAsPaddlePaddle(const AwareCase& c, const TrainProgram& program,
                         Session* session) {
  const auto golden = ReadNpz(absl::StrCat(kFolder, "/", c.name, ".npz"));
  ASSERT_TRUE(golden.ok()) << golden.status();
  ASSERT_NO_FATAL_FAILURE(SetStart(*golden, program, session));
  const auto feeds = [&](int64_t step) {
    return NamedArrays{{"x", BatchOf(golden->at("x"), step)},
                       {"y", BatchOf(golden->at("y"), step)}};
  };
  const Array& losses = golden->at("loss");
  for (int64_t step = 0; step < losses.size(); ++step) {
    const auto run = session->Run(program.main, feeds(step), {program.loss});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_NEAR(run->at(program.loss).data<float>()[0],
                losses.data<double>()[step], c.tolerance)
        << step;
  }
  const auto run =
      session->Run(program.test, feeds(losses.size() - 1), program.outputs);
  ASSERT_TRUE(run.ok()) << run.status();
  Expect("eval", golden->at("eval"), run->at(program.outputs[0]), c.tolerance);
  // Evaluation has seen the weights of the last step.
  for (const auto& [name, value] : State(*golden, "end:")) {
    const auto ours = session->scope().Get(name);
    ASSERT_TRUE(ours.ok()) << ours.status();
    Expect(name, value, *ours, c.tolerance);
  }
}

}  // namespace pd
