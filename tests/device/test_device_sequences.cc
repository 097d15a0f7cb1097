// SPDX-License-Identifier: Apache-2.0
// Ops over sequences on a device beside the same on the CPU, which PaddlePaddle
// has proved, where PaddlePaddle's cases are small: more tags, classes, states
// and columns than a block has threads, sequences without rows, labels that no
// path stands for.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/device/device_plan.h"

namespace pd {
namespace test_device_sequences {

std::vector<float> Numbers(int64_t n, float phase) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < n; ++i)
    numbers.push_back(std::sin(static_cast<float>(i) * 0.7f + phase));
  return numbers;
}

class DeviceSequences : public DevicePlan {
 protected:
  struct Feed {
    DType dtype;
    Shape shape;
    LoD lod;
    std::vector<float> floats;
    std::vector<int64_t> wholes;
  };

  void Floats(const std::string& name, Shape shape, float phase, LoD lod = {}) {
    Var(name, DType::kFloat32, shape);
    program_.global().vars.back().lod_level = static_cast<int32_t>(lod.size());
    const int64_t n = NumElements(shape);
    feeds_[name] = {DType::kFloat32,
                    std::move(shape),
                    std::move(lod),
                    Numbers(n, phase),
                    {}};
  }
  // Integers, each i * factor % below.
  void Wholes(const std::string& name, Shape shape, int64_t factor,
              int64_t below, LoD lod = {}) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < NumElements(shape); ++i)
      values.push_back(i * factor % below);
    Wholes(name, std::move(shape), values, std::move(lod));
  }
  void Wholes(const std::string& name, Shape shape, std::vector<int64_t> values,
              LoD lod = {}) {
    Var(name, DType::kInt64, shape);
    program_.global().vars.back().lod_level = static_cast<int32_t>(lod.size());
    feeds_[name] = {
        DType::kInt64, std::move(shape), std::move(lod), {}, std::move(values)};
  }

  // Slots are called as variables here; a gradient's name has "@" for "@GRAD".
  OpDesc* Add(const std::string& type, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs) {
    OpDesc* op = Op(type);
    const auto slot = [](std::string name) {
      return name.back() == '@' ? name + "GRAD" : name;
    };
    for (const std::string& name : inputs) op->SetInput(slot(name), {name});
    for (const std::string& name : outputs) {
      op->SetOutput(slot(name), {name});
      Var(name, DType::kFloat32, {});
    }
    return op;
  }

  using Result = std::map<std::string, std::vector<double>>;
  Result Run(bool on_gpu, const std::vector<std::string>& fetches) {
    Session session = on_gpu ? OnGpu() : OnCpu();
    std::vector<FeedSpec> specs;
    for (const auto& [name, feed] : feeds_)
      specs.push_back({name, feed.dtype, feed.shape, feed.lod});
    auto plan = session.Compile(program_, specs, fetches);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    for (const StepInfo& step : (*plan)->steps())
      EXPECT_EQ(step.on_device, on_gpu) << step.op_type;
    size_t i = 0;
    for (const auto& [name, feed] : feeds_)
      (*plan)->SetFeed(i++, feed.dtype == DType::kInt64
                                ? static_cast<const void*>(feed.wholes.data())
                                : feed.floats.data());
    const absl::Status ran = (*plan)->Run({});
    EXPECT_TRUE(ran.ok()) << ran;
    Result result;
    for (size_t f = 0; f < fetches.size(); ++f) {
      const Tensor& from = (*plan)->fetch(f);
      for (int64_t k = 0; k < from.size(); ++k)
        result[fetches[f]].push_back(
            from.dtype() == DType::kInt64
                ? static_cast<double>(from.data<int64_t>()[k])
                : from.data<float>()[k]);
    }
    return result;
  }
  void ExpectTheCpus(const std::vector<std::string>& fetches) {
    const Result want = Run(false, fetches), got = Run(true, fetches);
    ASSERT_EQ(want.size(), fetches.size());
    ASSERT_EQ(got.size(), fetches.size());
    for (const auto& [name, values] : want) {
      double most = 0;
      for (const double v : values) most = std::max(most, std::fabs(v));
      EXPECT_GT(most, 0) << name;
      ASSERT_EQ(got.at(name).size(), values.size()) << name;
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(got.at(name)[i], values[i], 2e-5 * most + 1e-7)
            << name << " " << i;
    }
  }

  std::map<std::string, Feed> feeds_;
};

// Lengths 2, 0, 5, 1 and 0.
const LoD kUneven = {{0, 2, 2, 7, 8, 8}};

TEST_F(DeviceSequences, Lstm) {
  constexpr int64_t n = 70;
  Floats("Input", {8, 4 * n}, 0, kUneven);
  Floats("Weight", {n, 4 * n}, 1);
  Floats("Bias", {1, 7 * n}, 2);
  Floats("H0", {5, n}, 3);
  Floats("C0", {5, n}, 4);
  Floats("Hidden@", {8, n}, 5, kUneven);
  for (const bool reverse : {false, true}) {
    program_.global().ops.clear();
    const std::vector<std::string> inputs = {"Input", "Weight", "Bias", "H0",
                                             "C0"};
    const std::vector<std::string> made = {"Hidden", "Cell", "BatchGate",
                                           "BatchCellPreAct"};
    Add("lstm", inputs, made)->attrs["is_reverse"] = reverse;
    std::vector<std::string> all = inputs;
    all.insert(all.end(), made.begin(), made.end());
    all.push_back("Hidden@");
    Add("lstm_grad", all, {"Input@", "Weight@", "Bias@", "H0@", "C0@"})
        ->attrs["is_reverse"] = reverse;
    ExpectTheCpus(
        {"Hidden", "Cell", "Input@", "Weight@", "Bias@", "H0@", "C0@"});
  }
}

TEST_F(DeviceSequences, Gru) {
  constexpr int64_t n = 70;
  Floats("Input", {8, 3 * n}, 0, kUneven);
  Floats("Weight", {n, 3 * n}, 1);
  Floats("Bias", {1, 3 * n}, 2);
  Floats("H0", {5, n}, 3);
  Floats("Hidden@", {8, n}, 5, kUneven);
  Add("gru", {"Input", "Weight", "Bias", "H0"},
      {"Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"});
  Add("gru_grad",
      {"Input", "Weight", "Bias", "H0", "BatchGate", "BatchResetHiddenPrev",
       "BatchHidden", "Hidden@"},
      {"Input@", "Weight@", "Bias@", "H0@"});
  ExpectTheCpus({"Hidden", "Input@", "Weight@", "Bias@", "H0@"});
}

TEST_F(DeviceSequences, Conv) {
  Floats("X", {8, 90}, 0, kUneven);
  Floats("Filter", {4 * 90, 3}, 1);
  Floats("PaddingData", {3, 90}, 2);
  Floats("Out@", {8, 3}, 3, kUneven);
  const auto attrs = [](OpDesc* op) {
    op->attrs = {{"contextLength", int32_t{4}},
                 {"contextStart", int32_t{-2}},
                 {"paddingTrainable", true}};
  };
  attrs(Add("sequence_conv", {"X", "Filter", "PaddingData"}, {"Out"}));
  attrs(Add("sequence_conv_grad", {"X", "Filter", "PaddingData", "Out@"},
            {"X@", "Filter@", "PaddingData@"}));
  ExpectTheCpus({"Out", "X@", "Filter@", "PaddingData@"});
}

TEST_F(DeviceSequences, RowConv) {
  Floats("X", {8, 300}, 0, kUneven);
  Floats("Filter", {3, 300}, 1);
  Floats("Out@", {8, 300}, 3, kUneven);
  Add("row_conv", {"X", "Filter"}, {"Out"});
  Add("row_conv_grad", {"X", "Filter", "Out@"}, {"X@", "Filter@"});
  ExpectTheCpus({"Out", "X@", "Filter@"});
}

TEST_F(DeviceSequences, Softmax) {
  const LoD lod = {{0, 700, 700, 701}};
  Floats("X", {701, 1}, 0, lod);
  Floats("Out@", {701, 1}, 1, lod);
  Add("sequence_softmax", {"X"}, {"Out"});
  Add("sequence_softmax_grad", {"X", "Out", "Out@"}, {"X@"});
  ExpectTheCpus({"Out", "X@"});
}

TEST_F(DeviceSequences, CrfOfManyTags) {
  constexpr int64_t d = 300;
  Floats("Emission", {8, d}, 0, kUneven);
  Floats("Transition", {d + 2, d}, 1);
  Wholes("Label", {8, 1}, 37, d, kUneven);
  Floats("LogLikelihood@", {5, 1}, 2);
  Add("linear_chain_crf", {"Emission", "Transition", "Label"},
      {"LogLikelihood", "Alpha", "EmissionExps", "TransitionExps"});
  Add("linear_chain_crf_grad",
      {"Emission", "Transition", "Label", "Alpha", "EmissionExps",
       "TransitionExps", "LogLikelihood@"},
      {"Emission@", "Transition@"});
  Add("crf_decoding", {"Emission", "Transition"}, {"ViterbiPath"});
  ExpectTheCpus({"LogLikelihood", "Emission@", "Transition@", "ViterbiPath"});
}

TEST_F(DeviceSequences, PaddedCrf) {
  Floats("Emission", {3, 4, 5}, 0);
  Floats("Transition", {7, 5}, 1);
  Wholes("Label", {3, 4, 1}, 3, 5);
  Wholes("Length", {3, 1}, {4, 0, 2});
  Floats("LogLikelihood@", {3, 1}, 2);
  Add("linear_chain_crf", {"Emission", "Transition", "Label", "Length"},
      {"LogLikelihood", "Alpha", "EmissionExps", "TransitionExps"});
  Add("linear_chain_crf_grad",
      {"Emission", "Transition", "Label", "Length", "Alpha", "EmissionExps",
       "TransitionExps", "LogLikelihood@"},
      {"Emission@", "Transition@"});
  ExpectTheCpus({"LogLikelihood", "Emission@", "Transition@"});
}

// The first label has 150 tokens and so 301 states, the second none, the third
// more than its two steps can say.
TEST_F(DeviceSequences, CtcOfManyStates) {
  constexpr int64_t steps = 320, classes = 400;
  Floats("Logits", {steps, 3, classes}, 0);
  Wholes("Label", {3, 150}, 7, classes);
  Wholes("LogitsLength", {3}, {steps, 40, 2});
  Wholes("LabelLength", {3}, {150, 0, 3});
  Floats("Loss@", {3, 1}, 1);
  Add("warpctc", {"Logits", "Label", "LogitsLength", "LabelLength"},
      {"Loss", "WarpCTCGrad"})
      ->attrs["blank"] = int32_t{3};
  Add("warpctc_grad", {"Logits", "LogitsLength", "WarpCTCGrad", "Loss@"},
      {"Logits@"})
      ->attrs = {{"blank", int32_t{3}}, {"norm_by_times", true}};
  ExpectTheCpus({"Loss", "Logits@"});
}

// Tokens that the device has found: the best paths over random emissions.
TEST_F(DeviceSequences, EditDistance) {
  const LoD lod = {{0, 400, 400, 402, 420}};
  Floats("Emission", {420, 3}, 0, lod);
  Floats("Transition", {5, 3}, 1);
  Wholes("Refs", {330, 1}, 5, 3, {{0, 310, 312, 329, 330}});
  Add("crf_decoding", {"Emission", "Transition"}, {"ViterbiPath"});
  for (const bool normalized : {false, true}) {
    const std::string out = normalized ? "Normalized" : "Distance";
    OpDesc* op = Op("edit_distance");
    op->SetInput("Hyps", {"ViterbiPath"});
    op->SetInput("Refs", {"Refs"});
    op->SetOutput("Out", {out});
    op->SetOutput("SequenceNum", {out + "Number"});
    op->attrs["normalized"] = normalized;
    for (const std::string& name : {out, out + "Number"})
      Var(name, DType::kFloat32, {});
  }
  ExpectTheCpus({"Distance", "Normalized", "NormalizedNumber"});
}

// Both are numbers that the device has picked.
TEST_F(DeviceSequences, GatherTree) {
  Floats("X", {6, 50, 8}, 0);
  OpDesc* op = Add("top_k_v2", {"X"}, {"Out", "Indices"});
  op->attrs["k"] = int32_t{8};
  OpDesc* tree = Op("gather_tree");
  tree->SetInput("Ids", {"Indices"});
  tree->SetInput("Parents", {"Indices"});
  tree->SetOutput("Out", {"Beams"});
  Var("Beams", DType::kInt64, {});
  ExpectTheCpus({"Beams"});
}

TEST_F(DeviceSequences, LengthsAndLabelsThatAreNoneFailTheRun) {
  Floats("Logits", {4, 2, 5}, 0);
  Wholes("Label", {2, 2}, {1, 2, 3, 5});
  Wholes("LogitsLength", {2}, {4, 4});
  Wholes("LabelLength", {2}, {2, 2});
  Add("warpctc", {"Logits", "Label", "LogitsLength", "LabelLength"},
      {"Loss", "WarpCTCGrad"});
  const auto message = [&] {
    Session session = OnGpu();
    std::vector<FeedSpec> specs;
    for (const auto& [name, feed] : feeds_)
      specs.push_back({name, feed.dtype, feed.shape, feed.lod});
    auto plan = session.Compile(program_, specs, {"Loss"});
    EXPECT_TRUE(plan.ok()) << plan.status();
    size_t i = 0;
    for (const auto& [name, feed] : feeds_)
      (*plan)->SetFeed(i++, feed.dtype == DType::kInt64
                                ? static_cast<const void*>(feed.wholes.data())
                                : feed.floats.data());
    return std::string((*plan)->Run({}).message());
  };
  EXPECT_EQ(message(), "'Label' of warpctc holds a number outside [0, 5)");
  feeds_["Label"].wholes[3] = 4;
  feeds_["LogitsLength"].wholes[1] = 5;
  EXPECT_EQ(message(),
            "'LogitsLength' of warpctc holds a number outside [0, 4]");
}

}  // namespace test_device_sequences
}  // namespace pd
