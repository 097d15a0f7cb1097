// SPDX-License-Identifier: Apache-2.0
// Steps decided by data on a device: loops, branches, arrays of tensors, their
// gradients and the updates behind them. PaddlePaddle's programs are proved by
// test_device_goldens; here, that their floats are the device's, what decides
// is the host's, and that memory comes back.
#include <algorithm>
#include <ostream>
#include <set>

#include "libcore/check/nan_finder.h"
#include "libcore/device/device_pool.h"
#include "libcore/exec/nan_check.h"
#include "libcore/kernels/attach.h"
#include "tests/device/device_plan.h"
#include "tests/train/golden_run.h"

namespace pd {
namespace test_device_late {

// Looks where the ops of blocks leave what they make.
class Watcher : public StepHook {
 public:
  explicit Watcher(const Plan* plan) : plan_(plan) {}
  void Before(size_t) override {}
  absl::Status After(size_t) override { return absl::OkStatus(); }
  absl::Status AfterInBlock(const BlockStep& step) override {
    types.insert(step.op->type);
    for (const auto& [name, variable] : *step.outputs) {
      Look(step.op->type, name, *variable.tensor);
      for (const Tensor& element : variable.tensor->elements())
        Look(step.op->type, name, element);
    }
    return absl::OkStatus();
  }
  std::set<std::string> types;
  int floats = 0, numbers = 0;  // outputs

 private:
  void Look(const std::string& type, const std::string& name,
            const Tensor& tensor) {
    if (tensor.raw() == nullptr || tensor.size() == 0) return;
    const bool is_float = tensor.dtype() == DType::kFloat32;
    ++(is_float ? floats : numbers);
    EXPECT_EQ(plan_->place()->device->Holds(tensor.raw()), is_float)
        << "'" << name << "' of " << type;
  }
  const Plan* plan_;
};

class DeviceLate : public DevicePlan {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DevicePlan::SetUp());
    ASSERT_TRUE(AttachHostKernels(&registry_).ok());
  }
};

// One of testdata/train: what its blocks must run, and what must be there.
struct Trained {
  const char* name;
  std::set<std::string> in_blocks, steps;
};
void PrintTo(const Trained& trained, std::ostream* out) {
  *out << trained.name;
}

class DeviceLateTraining : public DeviceLate,
                           public ::testing::WithParamInterface<Trained> {};

TEST_P(DeviceLateTraining, FloatsAreTheDevices) {
  const TrainCase c = LoadTrainCase(GetParam().name);
  Session session = OnGpu();
  SetInitialState(c, &session);
  CaseRunner runner = std::move(RunnersOf(c).front());
  // The second run has whatever the first has given back.
  for (int step = 0; step < 2; ++step)
    ASSERT_TRUE(runner.Run(c, 0, &session).ok());
  const Plan& plan = *runner.plan;
  ASSERT_NE(plan.pool(), nullptr);
  const size_t bytes = plan.pool()->bytes();
  const size_t taken = plan.pool()->bytes_taken();
  EXPECT_GT(bytes, 0u);

  Watcher watcher(&plan);
  ASSERT_TRUE(runner.plan->Run({}, &watcher).ok());
  for (const std::string& type : GetParam().in_blocks)
    EXPECT_EQ(watcher.types.count(type), 1u) << type;
  EXPECT_GT(watcher.floats, 0);
  std::set<std::string> there;
  for (const StepInfo& info : plan.steps()) {
    if (info.implementation != "late") continue;
    EXPECT_TRUE(info.on_device) << DescribeStep(info);
    there.insert(info.op_type);
  }
  for (const std::string& type : GetParam().steps)
    EXPECT_EQ(there.count(type), 1u) << type;

  for (int step = 0; step < 5; ++step)
    ASSERT_TRUE(runner.Run(c, 0, &session).ok());
  EXPECT_EQ(plan.pool()->bytes(), bytes);
  EXPECT_EQ(plan.pool()->bytes_taken(), taken);
  EXPECT_FALSE(plan.runs_ahead());
}

INSTANTIATE_TEST_SUITE_P(
    All, DeviceLateTraining,
    ::testing::Values(
        Trained{"rnn_cell_arrays",
                {"read_from_array", "write_to_array", "matmul_v2", "tanh",
                 "matmul_v2_grad", "tanh_grad", "increment", "less_than"},
                {"write_to_array", "while", "tensor_array_to_tensor",
                 "tensor_array_to_tensor_grad", "while_grad", "reduce_mean",
                 "merged_adam"}},
        Trained{"while_rnn",
                {"matmul_v2", "matmul_v2_grad"},
                {"while", "while_grad", "sum", "merged_sgd"}},
        Trained{"cond_branch",
                {"matmul_v2", "matmul_v2_grad"},
                {"conditional_block", "select_input", "select_output",
                 "conditional_block_grad", "merged_momentum"}}),
    [](const auto& info) { return std::string(info.param.name); });

// Rows that are merged are as many as the data say: what follows is late.
TEST_F(DeviceLate, MergedRowsAreTheCpus) {
  Var("w", DType::kFloat32, {7, 3}, true);
  Var("rate", DType::kFloat32, {1}, true);
  Var("ids", DType::kInt64, {6});
  Var("dout", DType::kFloat32, {6, 3});
  for (const char* name : {"g", "merged", "twice"}) {
    Var(name, DType::kFloat32, {-1, 3});
    program_.global().vars.back().kind = VarKind::kSelectedRows;
  }
  OpDesc* lookup = Op("lookup_table_v2_grad");
  lookup->SetInput("W", {"w"});
  lookup->SetInput("Ids", {"ids"});
  lookup->SetInput("Out@GRAD", {"dout"});
  lookup->SetOutput("W@GRAD", {"g"});
  lookup->attrs["is_sparse"] = true;
  Op("merge_selected_rows", "g", "merged");
  OpDesc* sum = Op("sum");
  sum->SetInput("X", {"merged", "g"});
  sum->SetOutput("Out", {"twice"});
  OpDesc* update = Op("sgd");
  update->SetInput("Param", {"w"});
  update->SetInput("Grad", {"twice"});
  update->SetInput("LearningRate", {"rate"});
  update->SetOutput("ParamOut", {"w"});
  std::vector<float> w(21), dout(18);
  for (size_t i = 0; i < w.size(); ++i) w[i] = 0.25f * static_cast<float>(i);
  for (size_t i = 0; i < dout.size(); ++i) dout[i] = static_cast<float>(i) - 8;
  std::vector<float> result[2], fetched[2];
  for (const bool on_gpu : {false, true}) {
    Session session = on_gpu ? OnGpu() : OnCpu();
    ASSERT_TRUE(session.scope().Set("w", Floats(w, {7, 3})).ok());
    ASSERT_TRUE(session.scope().Set("rate", Floats({0.5f}, {1})).ok());
    auto plan = session.Compile(
        program_,
        {{"ids", DType::kInt64, {6}}, {"dout", DType::kFloat32, {6, 3}}},
        {"twice"});
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (int run = 0; run < 3; ++run) {
      const std::vector<int64_t> ids = {5, 0, 5, 2, 6, run};
      (*plan)->SetFeed(0, ids.data());
      (*plan)->SetFeed(1, dout.data());
      const absl::Status ran = (*plan)->Run({});
      ASSERT_TRUE(ran.ok()) << ran;
      const Tensor& twice = (*plan)->fetch(0);
      const auto values = FloatsOf(ToArray(twice));
      fetched[on_gpu].insert(fetched[on_gpu].end(), values.begin(),
                             values.end());
      for (const int64_t row : twice.rows())
        fetched[on_gpu].push_back(static_cast<float>(row));
    }
    result[on_gpu] = FloatsOf(*session.scope().Get("w"));
    if (!on_gpu) continue;
    for (const StepInfo& info : (*plan)->steps()) {
      const bool known = info.op_type != "sum" && info.op_type != "sgd";
      EXPECT_TRUE(known || info.on_device) << info.op_type;
    }
  }
  EXPECT_EQ(result[1], result[0]);
  EXPECT_EQ(fetched[1], fetched[0]);
  EXPECT_NE(result[1], w);
}

// A number out of range is told by the kernel, in each run in which it is.
TEST_F(DeviceLate, ErrorFlagsOfLateOps) {
  Var("x", DType::kFloat32, {4});
  Var("w", DType::kFloat32, {5, 2}, true);
  Var("places", DType::kInt64, {-1, 1});
  Var("flat", DType::kInt64, {-1});
  Var("rows", DType::kFloat32, {-1, 2});
  Op("where_index")->SetInput("Condition", {"x"});
  program_.global().ops.back().SetOutput("Out", {"places"});
  Op("scale", "places", "flat")->attrs["scale"] = 2.0f;
  OpDesc* look = Op("lookup_table_v2");
  look->SetInput("W", {"w"});
  look->SetInput("Ids", {"flat"});
  look->SetOutput("Out", {"rows"});
  Session gpu = OnGpu();
  ASSERT_TRUE(gpu.scope()
                  .Set("w", Floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {5, 2}))
                  .ok());
  auto plan = gpu.Compile(program_, {{"x", DType::kFloat32, {4}}}, {"rows"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (int run = 0; run < 3; ++run) {
    const std::vector<float> good = {0, 1, 1, 0}, bad = {1, 0, 0, 1};
    (*plan)->SetFeed(0, good.data());
    const absl::Status ran = (*plan)->Run({});
    ASSERT_TRUE(ran.ok()) << ran;
    EXPECT_EQ(FloatsOf(ToArray((*plan)->fetch(0))),
              (std::vector<float>{4, 5, 8, 9}));
    (*plan)->SetFeed(0, bad.data());
    const absl::Status status = (*plan)->Run({});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("outside [0, 5)"), absl::string_view::npos)
        << status;
  }
}

// Outputs of a late step on the device are checked, too.
TEST_F(DeviceLate, ChecksWhatLateStepsWrite) {
  Var("x", DType::kFloat32, {4});
  Var("places", DType::kInt64, {-1, 1});
  Var("picked", DType::kFloat32, {-1});
  Var("y", DType::kFloat32, {-1});
  Op("where_index")->SetInput("Condition", {"x"});
  program_.global().ops.back().SetOutput("Out", {"places"});
  Op("gather", "x", "picked")->SetInput("Index", {"places"});
  Op("log", "picked", "y");
  Session gpu = OnGpu();
  PlanOptions options;
  options.check_nan_inf = true;
  gpu.set_plan_options(options);
  EXPECT_TRUE(
      gpu.Run(program_, {{"x", Floats({1, 0, 2, 0}, {4})}}, {"y"}).ok());
  const auto bad =
      gpu.Run(program_, {{"x", Floats({1, 0, -2, 3}, {4})}}, {"y"});
  EXPECT_TRUE(IsNanFound(bad.status())) << bad.status();
  EXPECT_EQ(bad.status().message(),
            "op 'log' that makes 'y': 'y' holds 1 NaN and 0 Inf among "
            "float32[3]");
  options.check_nan_inf = false;
  gpu.set_plan_options(options);
  auto plan = gpu.Compile(program_, {{"x", DType::kFloat32, {4}}}, {"y"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<float> x = {1, 0, 1, 0};
  (*plan)->SetFeed(0, x.data());
  ASSERT_TRUE((*plan)->Run({}).ok());
  for (const StepInfo& info : (*plan)->steps())
    EXPECT_EQ(info.on_device, info.op_type != "where_index") << info.op_type;
}

// A weight of a loop is spoilt: the op of the block that shows it is found, and
// every value can be looked at, as on the CPU.
TEST_F(DeviceLate, BadNumbersInBlocksAreFound) {
  const TrainCase c = LoadTrainCase("while_rnn");
  const ProgramDesc& program = c.programs.front();
  NamedArrays feeds;
  for (const std::string& name : Strings(c.info.at("program_feeds").at(0))) {
    Array batch = c.batches.at(name);
    batch.shape.erase(batch.shape.begin());
    feeds[name] = batch;
  }
  std::set<std::string> in_blocks;
  for (const VarDesc& var : program.global().vars) {
    if (!var.persistable || var.name.find(".w_0") == std::string::npos)
      continue;
    std::vector<std::string> found[2];
    std::vector<size_t> looked[2];
    for (const bool on_gpu : {false, true}) {
      Session session = on_gpu ? OnGpu() : OnCpu();
      SetInitialState(c, &session);
      auto query = QueryOf(&session, &program, feeds, {c.losses_of[0]});
      ASSERT_TRUE(query.ok()) << query.status();
      const absl::Status all = ObserveValues(
          *query, [&](const OpDesc&, const std::string&, const Tensor& value) {
            looked[on_gpu].push_back(static_cast<size_t>(value.size()));
          });
      ASSERT_TRUE(all.ok()) << all;
      SetInitialState(c, &session);
      Tensor& weight = session.scope().Find(var.name)->tensor;
      std::fill_n(weight.data<float>(), weight.size(), 3e38f);
      const auto finding = FindNan(*query);
      ASSERT_TRUE(finding.ok()) << finding.status();
      ASSERT_TRUE(finding->has_value()) << var.name;
      found[on_gpu] = {std::to_string((*finding)->block),
                       std::to_string((*finding)->index), (*finding)->op.type,
                       (*finding)->output.name};
      if ((*finding)->block > 0) in_blocks.insert(var.name);
    }
    EXPECT_EQ(found[1], found[0]) << var.name;
    EXPECT_FALSE(looked[0].empty());
    EXPECT_EQ(looked[1].empty(), looked[0].empty());
  }
  EXPECT_FALSE(in_blocks.empty());
}

TEST_F(DeviceLate, TooLittleMemoryIsAnError) {
  if (OnRealGpu()) GTEST_SKIP() << "a GPU's memory is as large as it is";
  constexpr int64_t kMany = 1 << 20;
  Var("x", DType::kFloat32, {kMany});
  Var("places", DType::kInt64, {-1, 1});
  Var("picked", DType::kFloat32, {-1});
  Op("where_index")->SetInput("Condition", {"x"});
  program_.global().ops.back().SetOutput("Out", {"places"});
  Op("gather", "x", "picked")->SetInput("Index", {"places"});
  Session gpu = OnGpu();
  auto plan =
      gpu.Compile(program_, {{"x", DType::kFloat32, {kMany}}}, {"picked"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<float> x(kMany, 1.0f);
  (*plan)->SetFeed(0, x.data());
  // The feed, 4 MiB, and the places, 8, are there; 4 more are not.
  setenv("FAKE_CUDA", "memory=14", 1);
  const absl::Status ran = (*plan)->Run({});
  setenv("FAKE_CUDA", "", 1);
  EXPECT_EQ(ran.code(), absl::StatusCode::kResourceExhausted) << ran;
  const std::string said(ran.message());
  EXPECT_NE(said.find("op 'gather' that makes 'picked'"), std::string::npos)
      << said;
  EXPECT_NE(said.find("of 14 MiB free; 5 MiB are needed at once, beside 8 MiB "
                      "of values whose shapes follow from data; a smaller "
                      "batch needs less"),
            std::string::npos)
      << said;
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ((*plan)->fetch(0).size(), kMany);
}

}  // namespace test_device_late
}  // namespace pd
