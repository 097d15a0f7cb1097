// SPDX-License-Identifier: Apache-2.0
// nce and hierarchical_sigmoid on a device beside the same on the CPU, which
// PaddlePaddle's goldens have proved: the draws of every sampler are the same,
// and gradients of selected rows have the same rows.
#include <cmath>
#include <map>

#include "tests/device/device_plan.h"

namespace pd {
namespace test_device_classes {

constexpr int64_t kSamples = 5, kWidth = 4, kClasses = 9, kNegatives = 3;

std::vector<float> Numbers(int64_t n, float phase) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < n; ++i)
    numbers.push_back(std::sin(static_cast<float>(i) * 1.3f + phase));
  return numbers;
}

template <typename T>
Array Values(DType dtype, const std::vector<T>& values, Shape shape) {
  std::byte* bytes = nullptr;
  Array array = *NewArray(dtype, std::move(shape), &bytes);
  std::memcpy(bytes, values.data(), values.size() * sizeof(T));
  return array;
}

class DeviceClasses : public DevicePlan {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DevicePlan::SetUp());
    Var("x", DType::kFloat32, {kSamples, kWidth});
    Keep("w", Floats(Numbers(kClasses * kWidth, 1), {kClasses, kWidth}));
    Keep("b", Floats(Numbers(kClasses, 2), {kClasses, 1}));
    Keep("dcost", Floats(Numbers(kSamples, 3), {kSamples, 1}));
    for (const char* name : {"cost", "dx", "db"})
      Var(name, DType::kFloat32, {});
    Var("dw", DType::kFloat32, {-1, kWidth});
  }
  // A variable with a value.
  void Keep(const std::string& name, const Array& value) {
    Var(name, value.dtype, value.shape, true);
    kept_[name] = value;
  }

  void Nce(int sampler, int seed, bool sparse) {
    Keep("label", Values<int64_t>(DType::kInt64, {0, 8, 3, 3, 5, 1, 2, 2, 7, 6},
                                  {kSamples, 2}));
    Keep("weight", Floats({0.5f, 1, 2, 0.25f, 1}, {kSamples, 1}));
    Keep("probs",
         Floats({.2f, .1f, .1f, .05f, .05f, .2f, .1f, .1f, .1f}, {kClasses}));
    Keep("alias", Values<int32_t>(DType::kInt32, {-1, 0, 5, 0, 5, -1, 0, 5, 0},
                                  {kClasses}));
    Keep("alias_probs",
         Floats({1, .9f, .9f, .45f, .45f, 1, .9f, .9f, .9f}, {kClasses}));
    Var("logits", DType::kFloat32, {});
    Var("classes", DType::kInt64, {});
    const auto inputs = [&](OpDesc* op) {
      op->SetInput("Input", {"x"});
      op->SetInput("Label", {"label"});
      op->SetInput("Weight", {"w"});
      op->SetInput("Bias", {"b"});
      op->SetInput("SampleWeight", {"weight"});
      if (sampler == 2) {
        op->SetInput("CustomDistProbs", {"probs"});
        op->SetInput("CustomDistAlias", {"alias"});
        op->SetInput("CustomDistAliasProbs", {"alias_probs"});
      }
      op->attrs = {{"num_total_classes", int32_t{kClasses}},
                   {"num_neg_samples", int32_t{kNegatives}},
                   {"sampler", sampler},
                   {"seed", seed},
                   {"is_sparse", sparse}};
    };
    OpDesc* forward = Op("nce");
    inputs(forward);
    forward->SetOutput("Cost", {"cost"});
    forward->SetOutput("SampleLogits", {"logits"});
    forward->SetOutput("SampleLabels", {"classes"});
    OpDesc* grad = Op("nce_grad");
    inputs(grad);
    grad->SetInput("SampleLogits", {"logits"});
    grad->SetInput("SampleLabels", {"classes"});
    grad->SetInput("Cost@GRAD", {"dcost"});
    grad->SetOutput("Input@GRAD", {"dx"});
    grad->SetOutput("Weight@GRAD", {"dw"});
    grad->SetOutput("Bias@GRAD", {"db"});
  }

  void Hsigmoid(bool own_tree, bool sparse = true) {
    Keep("label",
         Values<int64_t>(DType::kInt64, {0, 9, 3, 7, 5}, {kSamples, 1}));
    Keep("table",
         Values<int64_t>(DType::kInt64,
                         {0, 2, -1, 0, 1, 4, 3, -1, -1, 0, 1, 8, 6, 5, 4},
                         {kSamples, 3}));
    Keep("code", Values<int64_t>(DType::kInt64,
                                 {1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0},
                                 {kSamples, 3}));
    Var("pre_out", DType::kFloat32, {});
    const auto inputs = [&](OpDesc* op) {
      op->SetInput("X", {"x"});
      op->SetInput("W", {"w"});
      op->SetInput("Label", {"label"});
      op->SetInput("Bias", {"b"});
      if (own_tree) {
        op->SetInput("PathTable", {"table"});
        op->SetInput("PathCode", {"code"});
      }
      op->attrs = {{"num_classes", int32_t{kClasses + 1}},
                   {"is_sparse", sparse}};
    };
    OpDesc* forward = Op("hierarchical_sigmoid");
    inputs(forward);
    forward->SetOutput("Out", {"cost"});
    forward->SetOutput("PreOut", {"pre_out"});
    OpDesc* grad = Op("hierarchical_sigmoid_grad");
    inputs(grad);
    grad->SetInput("PreOut", {"pre_out"});
    grad->SetInput("Out@GRAD", {"dcost"});
    grad->SetOutput("X@GRAD", {"dx"});
    grad->SetOutput("W@GRAD", {"dw"});
    grad->SetOutput("Bias@GRAD", {"db"});
  }

  // Results of three steps of a run, numbers of rows among them.
  using Result = std::map<std::string, std::vector<double>>;
  Result Run(bool on_gpu, const std::vector<std::string>& fetches) {
    Session session = on_gpu ? OnGpu() : OnCpu();
    for (const auto& [name, value] : kept_)
      EXPECT_TRUE(session.scope().Set(name, value).ok());
    auto plan = session.Compile(
        program_, {{"x", DType::kFloat32, {kSamples, kWidth}}}, fetches);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    for (const StepInfo& step : (*plan)->steps())
      EXPECT_EQ(step.on_device, on_gpu) << step.op_type;
    Result result;
    for (uint64_t step = 0; step < 3; ++step) {
      const std::vector<float> x =
          Numbers(kSamples * kWidth, static_cast<float>(step));
      (*plan)->SetFeed(0, x.data());
      RunContext context;
      context.seed = 11;
      context.step = step;
      const absl::Status ran = (*plan)->Run(context);
      EXPECT_TRUE(ran.ok()) << ran;
      for (size_t i = 0; i < fetches.size(); ++i)
        Append((*plan)->fetch(i), &result[fetches[i]]);
    }
    return result;
  }
  static void Append(const Tensor& from, std::vector<double>* to) {
    for (int64_t i = 0; i < from.size(); ++i)
      to->push_back(from.dtype() == DType::kInt64
                        ? static_cast<double>(from.data<int64_t>()[i])
                        : from.data<float>()[i]);
    if (from.kind() == VarKind::kSelectedRows)
      to->insert(to->end(), from.rows().begin(), from.rows().end());
  }

  Result ExpectTheCpus(std::vector<std::string> fetches) {
    fetches.insert(fetches.end(), {"cost", "dx", "dw", "db"});
    Result want = Run(false, fetches);
    const Result got = Run(true, fetches);
    EXPECT_EQ(got.size(), fetches.size());
    for (const auto& [name, values] : want) {
      const std::vector<double>& here = got.at(name);
      EXPECT_EQ(here.size(), values.size()) << name;
      for (size_t i = 0; i < std::min(values.size(), here.size()); ++i)
        EXPECT_NEAR(here[i], values[i], name == "classes" ? 0 : 2e-6)
            << name << " " << i;
    }
    return want;
  }
  void SparseRows(bool sparse = true) {
    program_.global().FindVar("dw")->kind =
        sparse ? VarKind::kSelectedRows : VarKind::kLodTensor;
  }
  // The first step's selected rows, added up, and the dense gradient, both of
  // the CPU.
  template <typename Make>
  void ExpectRowsAddUp(const Make& make) {
    std::vector<double> sums(kClasses * kWidth, 0.0), dense;
    for (const bool sparse : {true, false}) {
      program_.global().ops.clear();
      SparseRows(sparse);
      make(sparse);
      dense = Run(false, {"dw"}).at("dw");
      if (!sparse) break;
      const size_t n = dense.size() / 3 / (kWidth + 1);
      for (size_t i = 0; i < n * kWidth; ++i)
        sums[static_cast<size_t>(dense[n * kWidth + i / kWidth]) * kWidth +
             i % kWidth] += dense[i];
    }
    for (size_t i = 0; i < sums.size(); ++i)
      EXPECT_NEAR(sums[i], dense[i], 2e-6) << i;
  }

  std::map<std::string, Array> kept_;
};

TEST_F(DeviceClasses, EverySamplerDrawsTheCpus) {
  for (int sampler = 0; sampler < 3; ++sampler) {
    program_.global().ops.clear();
    Nce(sampler, 0, false);
    const Result r = ExpectTheCpus({"classes"});
    // Each step has draws of its own.
    const std::vector<double>& classes = r.at("classes");
    const size_t n = classes.size() / 3;
    EXPECT_NE(
        std::vector<double>(classes.begin(), classes.begin() + n),
        std::vector<double>(classes.begin() + n, classes.begin() + 2 * n));
  }
}

TEST_F(DeviceClasses, AnOpsSeedDrawsTheSameInEveryStep) {
  SparseRows();
  Nce(1, 3, true);
  const Result r = ExpectTheCpus({"classes"});
  const std::vector<double>& classes = r.at("classes");
  const size_t n = classes.size() / 3;
  EXPECT_EQ(std::vector<double>(classes.begin(), classes.begin() + n),
            std::vector<double>(classes.begin() + n, classes.begin() + 2 * n));
  // A row for each class of each sample.
  EXPECT_EQ(r.at("dw").size(), 3 * n * (kWidth + 1));
}

TEST_F(DeviceClasses, TreesGiveRowsOfTheirNodes) {
  SparseRows();
  Hsigmoid(false);
  ExpectTheCpus({"pre_out"});
}

TEST_F(DeviceClasses, PathsMayBeShort) {
  SparseRows();
  Hsigmoid(true);
  ExpectTheCpus({"pre_out"});
}

TEST_F(DeviceClasses, RowsAddUpToTheDenseGradient) {
  ExpectRowsAddUp([&](bool sparse) { Nce(0, 5, sparse); });
  for (const bool own_tree : {false, true})
    ExpectRowsAddUp([&](bool sparse) { Hsigmoid(own_tree, sparse); });
}

TEST_F(DeviceClasses, ALabelThatIsNoClassFailsTheRun) {
  Hsigmoid(false);
  kept_["label"] =
      Values<int64_t>(DType::kInt64, {0, 10, 3, 7, 5}, {kSamples, 1});
  SparseRows();
  Session session = OnGpu();
  for (const auto& [name, value] : kept_)
    ASSERT_TRUE(session.scope().Set(name, value).ok());
  auto plan = session.Compile(
      program_, {{"x", DType::kFloat32, {kSamples, kWidth}}}, {"cost"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<float> x = Numbers(kSamples * kWidth, 0);
  (*plan)->SetFeed(0, x.data());
  EXPECT_EQ((*plan)->Run({}).message(),
            "'Label' of hierarchical_sigmoid holds a number outside [0, 10)");
}

}  // namespace test_device_classes
}  // namespace pd
