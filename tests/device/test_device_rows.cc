// SPDX-License-Identifier: Apache-2.0
// Selected rows on a device: the gradient of a lookup, sums of such gradients,
// and each kind of update by them, beside the same on the CPU, which
// PaddlePaddle's goldens have proved.
#include <cmath>

#include "tests/device/device_plan.h"

namespace pd {
namespace test_device_rows {

constexpr int64_t kHeight = 7, kWidth = 3, kIds = 6;

// Numbers between -1 and 1 that differ.
std::vector<float> Numbers(int64_t n, float phase) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < n; ++i)
    numbers.push_back(std::sin(static_cast<float>(i) * 1.7f + phase));
  return numbers;
}

class DeviceRows : public DevicePlan {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DevicePlan::SetUp());
    Var("w", DType::kFloat32, {kHeight, kWidth}, true);
    Var("rate", DType::kFloat32, {1}, true);
    Var("ids", DType::kInt64, {kIds});
    Var("dout", DType::kFloat32, {kIds, kWidth});
    Gradient("g");
  }

  void Gradient(const std::string& name) {
    Var(name, DType::kFloat32, {-1, kWidth});
    program_.global().vars.back().kind = VarKind::kSelectedRows;
    OpDesc* lookup = Op("lookup_table_v2_grad");
    lookup->SetInput("W", {"w"});
    lookup->SetInput("Ids", {"ids"});
    lookup->SetInput("Out@GRAD", {"dout"});
    lookup->SetOutput("W@GRAD", {name});
    lookup->attrs["is_sparse"] = true;
    lookup->attrs["padding_idx"] = int64_t{2};
  }
  // An update of w by g with these states, beginning with those numbers.
  OpDesc* Update(const std::string& type, const std::string& grad,
                 const std::vector<std::pair<std::string, Shape>>& states) {
    OpDesc* op = Op(type);
    op->SetInput("Param", {"w"});
    op->SetOutput("ParamOut", {"w"});
    op->SetInput("Grad", {grad});
    op->SetInput("LearningRate", {"rate"});
    for (const auto& [slot, shape] : states) {
      Var(slot, DType::kFloat32, shape, true);
      op->SetInput(slot, {slot});
      op->SetOutput(slot + "Out", {slot});
      states_[slot] = shape;
    }
    return op;
  }

  void SetState(Session* session) {
    const auto set = [&](const std::string& name, const Shape& shape,
                         const std::vector<float>& values) {
      ASSERT_TRUE(session->scope().Set(name, Floats(values, shape)).ok());
    };
    set("w", {kHeight, kWidth}, Numbers(kHeight * kWidth, 0));
    set("rate", {1}, {0.1f});
    for (const auto& [name, shape] : states_) {
      std::vector<float> values = Numbers(NumElements(shape), 1);
      for (float& v : values) v = std::fabs(v);
      set(name, shape, shape == Shape{1} ? std::vector<float>{0.9f} : values);
    }
  }

  // The values of every state after some runs, and the fetched values.
  std::map<std::string, std::vector<float>> Run(
      bool on_gpu, const std::vector<std::string>& fetches, bool all_there) {
    Session session = on_gpu ? OnGpu() : OnCpu();
    SetState(&session);
    auto plan = session.Compile(program_,
                                {{"ids", DType::kInt64, {kIds}},
                                 {"dout", DType::kFloat32, {kIds, kWidth}}},
                                fetches);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    EXPECT_EQ((*plan)->runs_ahead(), on_gpu && all_there);
    std::map<std::string, std::vector<float>> result;
    for (int run = 0; run < 4; ++run) {
      // Rows that repeat, padding, the first and the last row.
      const std::vector<int64_t> ids = {5, 0, 5, 2, kHeight - 1, run};
      const std::vector<float> dout =
          Numbers(kIds * kWidth, static_cast<float>(run));
      (*plan)->SetFeed(0, ids.data());
      (*plan)->SetFeed(1, dout.data());
      const absl::Status ran = (*plan)->Run({});
      EXPECT_TRUE(ran.ok()) << ran;
      for (size_t i = 0; i < fetches.size(); ++i) {
        auto& values = result[fetches[i]];
        const auto more = FloatsOf(ToArray((*plan)->fetch(i)));
        values.insert(values.end(), more.begin(), more.end());
        if ((*plan)->fetch(i).kind() == VarKind::kSelectedRows)
          for (const int64_t row : (*plan)->fetch(i).rows())
            values.push_back(static_cast<float>(row));
      }
    }
    result["w"] = FloatsOf(*session.scope().Get("w"));
    for (const auto& [name, shape] : states_)
      result[name] = FloatsOf(*session.scope().Get(name));
    return result;
  }

  void ExpectTheCpus(const std::vector<std::string>& fetches = {},
                     bool all_there = true) {
    const auto want = Run(false, fetches, all_there),
               got = Run(true, fetches, all_there);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, values] : want) {
      ASSERT_EQ(got.at(name).size(), values.size()) << name;
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(got.at(name)[i], values[i], 2e-6) << name << " " << i;
    }
    EXPECT_NE(want.at("w"), Numbers(kHeight * kWidth, 0));
  }

  std::map<std::string, Shape> states_;
};

const std::vector<std::pair<std::string, Shape>> kAdamStates = {
    {"Moment1", {kHeight, kWidth}},
    {"Moment2", {kHeight, kWidth}},
    {"Beta1Pow", {1}},
    {"Beta2Pow", {1}}};

TEST_F(DeviceRows, Sgd) {
  Update("sgd", "g", {});
  ExpectTheCpus();
}

TEST_F(DeviceRows, Adagrad) {
  Update("adagrad", "g", {{"Moment", {kHeight, kWidth}}});
  ExpectTheCpus();
}

TEST_F(DeviceRows, LazyAdam) {
  Update("adam", "g", kAdamStates)->attrs["lazy_mode"] = true;
  ExpectTheCpus();
}

TEST_F(DeviceRows, Adam) {
  Update("adam", "g", kAdamStates);
  ExpectTheCpus();
}

TEST_F(DeviceRows, AdamWithDecay) {
  OpDesc* op = Update("adamw", "g", kAdamStates);
  op->attrs["with_decay"] = true;
  op->attrs["coeff"] = 0.1f;
  ExpectTheCpus();
}

// The rows that are not there decay too.
TEST_F(DeviceRows, LazyAdamWithDecay) {
  OpDesc* op = Update("adamw", "g", kAdamStates);
  op->attrs["with_decay"] = true;
  op->attrs["coeff"] = 0.1f;
  op->attrs["lazy_mode"] = true;
  ExpectTheCpus();
}

// Ops without a device kernel run on the CPU, which gets the rows.
TEST_F(DeviceRows, AdamWithOthersPowersOnTheCpu) {
  Update("adam", "g", kAdamStates)->attrs["use_global_beta_pow"] = true;
  ExpectTheCpus({}, false);
}

TEST_F(DeviceRows, Momentum) {
  OpDesc* op = Update("momentum", "g", {{"Velocity", {kHeight, kWidth}}});
  op->attrs["mu"] = 0.8f;
  op->attrs["rescale_grad"] = 0.5f;
  op->attrs["regularization_method"] = std::string("l2_decay");
  op->attrs["regularization_coeff"] = 0.25f;
  ExpectTheCpus();
}

TEST_F(DeviceRows, SumsOfRows) {
  Gradient("h");
  Var("both", DType::kFloat32, {-1, kWidth});
  program_.global().vars.back().kind = VarKind::kSelectedRows;
  OpDesc* sum = Op("sum");
  sum->SetInput("X", {"g", "h"});
  sum->SetOutput("Out", {"both"});
  Update("sgd", "both", {});
  ExpectTheCpus();
}

TEST_F(DeviceRows, SumsOfRowsAndOfAllRows) {
  Gradient("h");
  Var("half", DType::kFloat32, {kHeight, kWidth});
  Var("both", DType::kFloat32, {kHeight, kWidth});
  OpDesc* scale = Op("scale");
  scale->SetInput("X", {"w"});
  scale->SetOutput("Out", {"half"});
  scale->attrs["scale"] = 0.5f;
  OpDesc* sum = Op("sum");
  sum->SetInput("X", {"g", "half", "h"});
  sum->SetOutput("Out", {"both"});
  Update("sgd", "both", {});
  ExpectTheCpus({"both"});
}

// The numbers of the rows come along.
TEST_F(DeviceRows, AreFetched) {
  Update("sgd", "g", {});
  ExpectTheCpus({"g"}, false);
}

TEST_F(DeviceRows, AnIdThatIsNoRowFailsTheRun) {
  Update("sgd", "g", {});
  Session gpu = OnGpu();
  SetState(&gpu);
  auto plan = gpu.Compile(program_,
                          {{"ids", DType::kInt64, {kIds}},
                           {"dout", DType::kFloat32, {kIds, kWidth}}},
                          {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<int64_t> ids = {0, 1, kHeight, 3, 4, 5};
  const std::vector<float> dout = Numbers(kIds * kWidth, 0);
  (*plan)->SetFeed(0, ids.data());
  (*plan)->SetFeed(1, dout.data());
  EXPECT_EQ((*plan)->Run({}).message(),
            "'Ids' of lookup_table_v2_grad over 'w' holds a number outside "
            "[0, 7)");
}

}  // namespace test_device_rows
}  // namespace pd
