// SPDX-License-Identifier: Apache-2.0
// Plans on a device beside the same on the CPU: what is drawn, what kernels
// complain about, and persistable variables that both sides write.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "libcore/base/half.h"
#include "libcore/exec/nan_check.h"
#include "tests/device/device_plan.h"

namespace pd {
namespace test_device_plan {

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

// Two layers of LSTM with dropout between them, and their gradients.
TEST_F(DevicePlan, RecurrencesDropTheSameElementsAsTheCpu) {
  constexpr int64_t kTime = 3, kBatch = 2, kWidth = 4;
  const std::map<std::string, Shape> fed = {
      {"x", {kTime, kBatch, kWidth}}, {"h", {2, kBatch, kWidth}},
      {"c", {2, kBatch, kWidth}},     {"w0", {4 * kWidth, kWidth}},
      {"w1", {4 * kWidth, kWidth}},   {"w2", {4 * kWidth, kWidth}},
      {"w3", {4 * kWidth, kWidth}},   {"b0", {4 * kWidth}},
      {"b1", {4 * kWidth}},           {"b2", {4 * kWidth}},
      {"b3", {4 * kWidth}},           {"dout", {kTime, kBatch, kWidth}}};
  NamedArrays feeds;
  for (const auto& [name, shape] : fed) {
    Var(name, DType::kFloat32, shape);
    std::vector<float> numbers;
    for (int64_t i = 0; i < NumElements(shape); ++i)
      numbers.push_back(
          std::sin(static_cast<float>(i) + static_cast<float>(name[0])));
    feeds.emplace(name, Floats(numbers, shape));
  }
  const std::vector<std::string> weights = {"w0", "w1", "w2", "w3",
                                            "b0", "b1", "b2", "b3"};
  for (const bool grad : {false, true}) {
    OpDesc op;
    op.type = grad ? "rnn_grad" : "rnn";
    op.SetInput("Input", {"x"});
    op.SetInput("PreState", {"h", "c"});
    op.SetInput("WeightList", weights);
    op.attrs["mode"] = std::string("LSTM");
    op.attrs["input_size"] = static_cast<int32_t>(kWidth);
    op.attrs["hidden_size"] = static_cast<int32_t>(kWidth);
    op.attrs["num_layers"] = int32_t{2};
    op.attrs["dropout_prob"] = 0.5f;
    const auto link = [&](const char* slot,
                          const std::vector<std::string>& names) {
      for (const std::string& name : names) Var(name, DType::kFloat32, {-1});
      grad ? op.SetInput(slot, names) : op.SetOutput(slot, names);
    };
    link("Out", {"y"});
    if (!grad) link("State", {"last_h", "last_c"});
    link("Reserve", {"reserve"});
    link("DropoutState", {"mask"});
    if (grad) {
      op.SetInput("Out@GRAD", {"dout"});
      op.SetOutput("Input@GRAD", {"dx"});
      std::vector<std::string> gradients;
      for (const std::string& name : weights) gradients.push_back("d" + name);
      op.SetOutput("WeightList@GRAD", gradients);
      for (const std::string& name : gradients)
        Var(name, DType::kFloat32, {-1});
      Var("dx", DType::kFloat32, {-1});
    }
    program_.global().ops.push_back(op);
  }
  const std::vector<std::string> fetches = {"y", "mask", "dx", "dw0", "dw2"};
  Session cpu = OnCpu();
  const auto want = cpu.Run(program_, feeds, fetches);
  Session gpu = OnGpu();
  const auto got = gpu.Run(program_, feeds, fetches);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  std::vector<FeedSpec> specs;
  for (const auto& [name, array] : feeds)
    specs.push_back({name, array.dtype, array.shape, array.lod});
  const auto plan = gpu.Compile(program_, specs, fetches);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE((*plan)->runs_ahead());
  const Array &mask = want->at("mask"), &other = got->at("mask");
  ASSERT_EQ(mask.size_bytes(), static_cast<size_t>(kTime * kBatch * kWidth));
  EXPECT_EQ(std::memcmp(mask.bytes.get(), other.bytes.get(), mask.size_bytes()),
            0);
  EXPECT_NE(std::memchr(mask.bytes.get(), 0, mask.size_bytes()), nullptr);
  for (const char* name : {"y", "dx", "dw0", "dw2"}) {
    const auto numbers = FloatsOf(want->at(name));
    const auto found = FloatsOf(got->at(name));
    ASSERT_EQ(found.size(), numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i)
      EXPECT_NEAR(found[i], numbers[i], 1e-5) << name << i;
  }
}

// Halves with masters, by the updates that look at norms.
TEST_F(DevicePlan, LambAndLarsKeepMasters) {
  constexpr int64_t kCount = 700;
  std::vector<float> numbers[2];
  for (int64_t i = 0; i < kCount; ++i) {
    numbers[0].push_back(std::sin(static_cast<float>(i)));
    numbers[1].push_back(std::cos(static_cast<float>(i)));
  }
  std::vector<uint16_t> halves;  // bfloat16, of numbers[0]
  for (const float v : numbers[0]) halves.push_back(BFloat16(v).bits);
  for (const char* type : {"lamb", "lars_momentum"}) {
    program_ = ProgramDesc();
    program_.blocks.resize(1);
    Var("wide", DType::kFloat32, {kCount});
    Var("grad", DType::kBFloat16, {kCount});
    OpDesc* cast = Op("cast", "wide", "grad");
    cast->attrs["in_dtype"] = static_cast<int32_t>(DType::kFloat32);
    cast->attrs["out_dtype"] = static_cast<int32_t>(DType::kBFloat16);
    OpDesc op;
    op.type = type;
    op.attrs["multi_precision"] = true;
    op.SetInput("Grad", {"grad"});
    std::map<std::string, Shape> states = {{"MasterParam", {kCount}},
                                           {"LearningRate", {1}}};
    if (op.type == "lamb") {
      states["Moment1"] = states["Moment2"] = {kCount};
      states["Beta1Pow"] = states["Beta2Pow"] = {1};
      op.attrs["weight_decay"] = 0.1f;
    } else {
      states["Velocity"] = {kCount};
      op.attrs["mu"] = 0.9f;
    }
    Var("Param", DType::kBFloat16, {kCount}, true);
    op.SetInput("Param", {"Param"});
    op.SetOutput("ParamOut", {"Param"});
    for (const auto& [name, shape] : states) {
      Var(name, DType::kFloat32, shape, true);
      op.SetInput(name, {name});
      if (name != "LearningRate") op.SetOutput(name + "Out", {name});
    }
    program_.global().ops.push_back(op);
    std::vector<float> masters[2];
    std::vector<uint16_t> params[2];
    for (const bool on_gpu : {false, true}) {
      Session session = on_gpu ? OnGpu() : OnCpu();
      for (const auto& [name, shape] : states) {
        std::vector<float> values = name == "MasterParam" ? numbers[0]
                                    : shape == Shape{1}
                                        ? std::vector<float>{0.5f}
                                        : std::vector<float>(kCount, 0.25f);
        ASSERT_TRUE(session.scope().Set(name, Floats(values, shape)).ok());
      }
      std::byte* bytes = nullptr;
      Array half = *NewArray(DType::kBFloat16, {kCount}, &bytes);
      std::memcpy(bytes, halves.data(), half.size_bytes());
      ASSERT_TRUE(session.scope().Set("Param", half).ok());
      const auto plan =
          session.Compile(program_, {{"wide", DType::kFloat32, {kCount}}}, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ((*plan)->runs_ahead(), on_gpu);
      (*plan)->SetFeed(0, numbers[1].data());
      for (int run = 0; run < 3; ++run) ASSERT_TRUE((*plan)->Run({}).ok());
      masters[on_gpu] = FloatsOf(*session.scope().Get("MasterParam"));
      const Array param = *session.scope().Get("Param");
      params[on_gpu].resize(kCount);
      std::memcpy(params[on_gpu].data(), param.bytes.get(), param.size_bytes());
    }
    EXPECT_NE(masters[0], numbers[0]) << type;
    for (size_t i = 0; i < kCount; ++i) {
      EXPECT_NEAR(masters[1][i], masters[0][i], 1e-5) << type << i;
      EXPECT_EQ(params[1][i], BFloat16(masters[1][i]).bits) << type << i;
    }
  }
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
  Array ids = *NewArray(DType::kInt64, {2}, &bytes);
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

// Run after run: the device writes `doubled`, the CPU, as trunc has no kernel
// there, `trunc`, and the device `p`.
TEST_F(DevicePlan, BothSidesSeeWhatIsWritten) {
  Var("p", DType::kFloat32, {2}, true);
  Var("doubled", DType::kFloat32, {2}, true);
  Var("trunc", DType::kFloat32, {2}, true);
  Op("scale", "p", "doubled")->attrs["scale"] = 2.0f;
  Op("trunc", "doubled", "trunc");                   // the CPU reads it
  Op("scale", "trunc", "p")->attrs["scale"] = 1.5f;  // and the GPU that
  Session gpu = OnGpu();
  ASSERT_TRUE(gpu.scope().Set("p", Floats({1.25f, -0.5f}, {2})).ok());
  auto plan = gpu.Compile(program_, {}, {"trunc"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ(FloatsOf(*gpu.scope().Get("doubled")),
            (std::vector<float>{2.5f, -1}));
  EXPECT_EQ(FloatsOf(*gpu.scope().Get("trunc")), (std::vector<float>{2, -1}));
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

// Values known when the plan is made take no step of the CPU's, nor does a
// parameter in another shape: every step is the device's.
TEST_F(DevicePlan, ConstantsAndReshapedParametersAreThere) {
  Var("x", DType::kFloat32, {2, 3});
  Var("p", DType::kFloat32, {3}, true);
  Var("numbers", DType::kInt64, {3});
  for (const char* name : {"one", "row", "sum", "y"})
    Var(name, DType::kFloat32, {2, 3});
  OpDesc* fill = Op("fill_constant", "", "numbers");
  fill->inputs.clear();
  fill->attrs["shape"] = std::vector<int64_t>{3};
  fill->attrs["value"] = 4.0f;
  fill->attrs["dtype"] = static_cast<int32_t>(DType::kInt64);
  OpDesc* cast = Op("cast", "numbers", "one");
  cast->attrs["in_dtype"] = static_cast<int32_t>(DType::kInt64);
  cast->attrs["out_dtype"] = static_cast<int32_t>(DType::kFloat32);
  Op("reshape2", "p", "row")->attrs["shape"] = std::vector<int32_t>{1, 3};
  Op("elementwise_add", "x", "sum")->SetInput("Y", {"row"});
  Op("elementwise_mul", "sum", "y")->SetInput("Y", {"one"});
  OpDesc* update = Op("scale", "p", "p");
  update->attrs["scale"] = 2.0f;
  Session gpu = OnGpu();
  ASSERT_TRUE(gpu.scope().Set("p", Floats({1, 2, 3}, {3})).ok());
  auto plan = gpu.Compile(program_, {{"x", DType::kFloat32, {2, 3}}}, {"y"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE((*plan)->runs_ahead());
  const std::vector<float> x = {0, 1, 0, 0, 0, 5};
  (*plan)->SetFeed(0, x.data());
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ(FloatsOf(ToArray((*plan)->fetch(0))),
            (std::vector<float>{4, 12, 12, 4, 8, 32}));
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ(FloatsOf(ToArray((*plan)->fetch(0))),
            (std::vector<float>{8, 20, 24, 8, 16, 44}));
}

// y = 2 x + p, and p becomes y: what a run gives depends on all before it.
class DeviceRuns : public DevicePlan {
 protected:
  void SetUp() override {
    DevicePlan::SetUp();
    Var("x", DType::kFloat32, {3});
    Var("twice", DType::kFloat32, {3});
    Var("y", DType::kFloat32, {3});
    Var("p", DType::kFloat32, {3}, true);
    Op("scale", "x", "twice")->attrs["scale"] = 2.0f;
    Op("elementwise_add", "twice", "y")->SetInput("Y", {"p"});
    Op("scale", "y", "p");
  }
  std::unique_ptr<Plan> PlanOf(Session* session, bool capture) {
    PlanOptions options;
    options.capture = capture;
    session->set_plan_options(options);
    EXPECT_TRUE(session->scope().Set("p", Floats({1, 0, -1}, {3})).ok());
    auto plan =
        session->Compile(program_, {{"x", DType::kFloat32, {3}}}, {"y"});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *std::move(plan);
  }
  // The fetch of each run; `bytes` change as soon as a run has been started.
  std::vector<std::vector<float>> Run(Plan* plan, bool ahead) {
    std::vector<std::vector<float>> fetched;
    std::vector<float> bytes(3);
    plan->SetFeed(0, bytes.data());
    for (int run = 0; run < 6; ++run) {
      for (int i = 0; i < 3; ++i)
        bytes[static_cast<size_t>(i)] = static_cast<float>(run * 3 + i) / 7;
      plan->SetFeed(0, bytes.data());
      EXPECT_TRUE(plan->Start({}).ok());
      std::fill(bytes.begin(), bytes.end(), -1.0f);
      if (ahead && run == 0) continue;
      EXPECT_TRUE(plan->Wait().ok());
      fetched.push_back(FloatsOf(ToArray(plan->fetch(0))));
    }
    if (ahead) {
      EXPECT_TRUE(plan->Wait().ok());
      fetched.push_back(FloatsOf(ToArray(plan->fetch(0))));
    }
    return fetched;
  }
};

TEST_F(DeviceRuns, CapturedOrNotAheadOrNotTheBitsAreTheSame) {
  Session cpu = OnCpu();
  const auto reference = PlanOf(&cpu, false);
  EXPECT_FALSE(reference->runs_ahead());
  const auto want = Run(reference.get(), false);
  for (const bool capture : {false, true})
    for (const bool ahead : {false, true}) {
      Session gpu = OnGpu();
      const auto plan = PlanOf(&gpu, capture);
      EXPECT_TRUE(plan->runs_ahead());
      const int before = CapturedRuns();
      EXPECT_EQ(Run(plan.get(), ahead), want) << capture << ahead;
      // The first of each of the two that may be under way is not.
      EXPECT_EQ(CapturedRuns() - before, capture ? 4 : 0);
      EXPECT_EQ(FloatsOf(*gpu.scope().Get("p")), want.back());
    }
}

// Somebody sets a variable between two runs of captured work.
TEST_F(DeviceRuns, CapturedWorkReadsWhatIsThere) {
  Session gpu = OnGpu();
  const auto plan = PlanOf(&gpu, true);
  const auto before = Run(plan.get(), false);
  ASSERT_TRUE(gpu.scope().Set("p", Floats({1, 0, -1}, {3})).ok());
  EXPECT_EQ(Run(plan.get(), false), before);
}

// A run that a hook watches is not captured.
TEST_F(DeviceRuns, WatchedRunsAreNotCaptured) {
  struct Watcher : StepHook {
    void Before(size_t) override {}
    absl::Status After(size_t) override {
      ++steps;
      return absl::OkStatus();
    }
    int steps = 0;
  } watcher;
  Session gpu = OnGpu();
  const auto plan = PlanOf(&gpu, true);
  const std::vector<float> x = {1, 2, 3};
  plan->SetFeed(0, x.data());
  const int before = CapturedRuns();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(plan->Run({}, &watcher).ok());
  EXPECT_EQ(watcher.steps, 4 * static_cast<int>(plan->steps().size()));
  EXPECT_EQ(CapturedRuns(), before);
}

// Captured work draws the numbers of the run that it is part of: those that the
// CPU draws.
TEST_F(DevicePlan, CapturedWorkDrawsTheNumbersOfItsRun) {
  Var("x", DType::kFloat32, {500});
  Var("y", DType::kFloat32, {500});
  Var("mask", DType::kUInt8, {500});
  Op("dropout", "x", "y")->SetOutput("Mask", {"mask"});
  const std::vector<float> ones(500, 1.0f);
  std::vector<std::vector<float>> drawn[2];
  const int before = CapturedRuns();
  for (const bool on_gpu : {false, true}) {
    Session session = on_gpu ? OnGpu() : OnCpu();
    auto random =
        session.Compile(program_, {{"x", DType::kFloat32, {500}}}, {"y"});
    ASSERT_TRUE(random.ok()) << random.status();
    (*random)->SetFeed(0, ones.data());
    for (uint64_t step = 0; step < 6; ++step) {
      RunContext context;
      context.seed = step < 5 ? 3 : 4;
      context.step = step;
      ASSERT_TRUE((*random)->Run(context).ok());
      drawn[on_gpu].push_back(FloatsOf(ToArray((*random)->fetch(0))));
    }
  }
  EXPECT_EQ(drawn[1], drawn[0]);
  for (size_t step = 1; step < drawn[0].size(); ++step)
    EXPECT_NE(drawn[0][step - 1], drawn[0][step]);
  EXPECT_EQ(CapturedRuns() - before, 4);  // all but the first of either slot
}

// The first bad value in the order of the steps, on whichever side it is made.
TEST_F(DevicePlan, ChecksWhatTheDeviceWrites) {
  Var("x", DType::kFloat32, {1500});
  for (const char* name : {"a", "b", "c", "d"})
    Var(name, DType::kFloat32, {1500});
  Op("trunc", "x", "a");  // on the CPU
  Op("log", "a", "b");    // -inf where x is in [0, 1), NaN below
  Op("trunc", "b", "c");
  Op("exp", "c", "d");
  registry_.SetDevice(place_);
  Session gpu(&registry_, 7);
  PlanOptions options;
  options.check_nan_inf = true;
  gpu.set_plan_options(options);
  std::vector<float> x(1500, 2.5f);
  const NamedArrays good = {{"x", Floats(x, {1500})}};
  EXPECT_TRUE(gpu.Run(program_, good, {"d"}).ok());
  x[3] = 0.5f;
  x[1400] = -2;
  x[1450] = -3;
  const auto bad = gpu.Run(program_, {{"x", Floats(x, {1500})}}, {"d"});
  EXPECT_TRUE(IsNanFound(bad.status())) << bad.status();
  EXPECT_EQ(bad.status().message(),
            "op 'log' that makes 'b': 'b' holds 2 NaN and 1 Inf among "
            "float32[1500]");
  x[7] = INFINITY;
  EXPECT_EQ(
      gpu.Run(program_, {{"x", Floats(x, {1500})}}, {"d"}).status().message(),
      "op 'trunc' that makes 'a': 'a' holds 0 NaN and 1 Inf among "
      "float32[1500]");
  // The next run is judged for itself.
  EXPECT_TRUE(gpu.Run(program_, good, {"d"}).ok());
}

// Values of every width and kind by the kernel that looks.
TEST_F(DevicePlan, LooksAtNumbersOfEveryWidth) {
  const std::vector<std::pair<DType, std::vector<uint64_t>>> cases = {
      // 1, -2, nan, +inf, -inf, the largest number, a denormal
      {DType::kFloat64,
       {0x3ff0000000000000, 0xc000000000000000, 0x7ff8000000000001,
        0x7ff0000000000000, 0xfff0000000000000, 0x7fefffffffffffff, 1}},
      {DType::kFloat32,
       {0x3f800000, 0xc0000000, 0x7fc00000, 0x7f800000, 0xff800000, 0x7f7fffff,
        1}},
      {DType::kFloat16, {0x3c00, 0xc000, 0x7e00, 0x7c00, 0xfc00, 0x7bff, 1}},
      {DType::kBFloat16, {0x3f80, 0xc000, 0x7fc0, 0x7f80, 0xff80, 0x7f7f, 1}}};
  Device* device = place_->device.get();
  for (const auto& [dtype, numbers] : cases) {
    const size_t size = SizeOf(dtype);
    // How large the largest is: of all, of the finite ones, of the denormal.
    const std::vector<std::vector<size_t>> picks = {
        {0, 1, 2, 3, 4, 5, 6}, {0, 1, 6}, {6}, {3, 4, 4, 0}};
    const std::vector<NonFinite> want = {{0, 1, 2, 1},
                                         {0x40000000, 0, 0, 0},
                                         {0, 0, 0, 0},
                                         {0x7f800000, 0, 3, 1}};
    for (size_t k = 0; k < picks.size(); ++k) {
      std::string bytes;
      for (const size_t i : picks[k])
        bytes.append(reinterpret_cast<const char*>(&numbers[i]), size);
      auto there = device->Allocate(bytes.size());
      auto found = device->Allocate(sizeof(NonFinite));
      ASSERT_TRUE(there.ok() && found.ok());
      ASSERT_TRUE(
          device->ToDevice(there->get(), bytes.data(), bytes.size()).ok());
      ASSERT_TRUE(device->Clear(found->get(), sizeof(NonFinite)).ok());
      NonFiniteRequest request;
      request.values[request.count++] = {
          there->get(), static_cast<int64_t>(picks[k].size()),
          static_cast<NonFinite*>(found->get()), dtype};
      ASSERT_TRUE(place_->find_non_finite(device, request).ok());
      NonFinite got;
      ASSERT_TRUE(device->ToHost(&got, found->get(), sizeof(got)).ok());
      ASSERT_TRUE(device->Synchronize().ok());
      EXPECT_EQ(got.nan, want[k].nan) << Name(dtype) << k;
      EXPECT_EQ(got.inf, want[k].inf) << Name(dtype) << k;
      EXPECT_EQ(got.plus, want[k].plus) << Name(dtype) << k;
      if (k == 0) {
        EXPECT_GT(got.largest, 0x7f800000u) << Name(dtype);
      } else if (k != 2) {
        EXPECT_EQ(got.largest, want[k].largest) << Name(dtype) << k;
      } else {
        EXPECT_LT(got.largest, 0x34000000u) << Name(dtype);
      }
    }
  }
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

// A parameter in another shape, as PaddlePaddle adds biases: floats are the
// device's, and integers are copied in every run, which is not captured.
TEST_F(DeviceRuns, ParametersInOtherShapes) {
  for (const bool whole : {false, true}) {
    program_ = {};
    program_.blocks.resize(1);
    Var("x", DType::kFloat32, {3, 1});
    Var("b", DType::kFloat32, {1, 3}, true);
    Var("ids", DType::kInt64, {3, 1}, true);
    Var("flat", whole ? DType::kInt64 : DType::kFloat32, {3, 1});
    Var("y", DType::kFloat32, {3, 1});
    Op("reshape2", whole ? "ids" : "b", "flat")->attrs["shape"] =
        whole ? std::vector<int32_t>{3} : std::vector<int32_t>{3, 1};
    if (whole) {
      OpDesc* look = Op("lookup_table_v2", "x", "y");
      look->inputs.clear();
      look->SetInput("W", {"x"});
      look->SetInput("Ids", {"flat"});
    } else {
      Op("elementwise_add", "x", "y")->SetInput("Y", {"flat"});
    }
    Session gpu = OnGpu();
    PlanOptions options;
    options.capture = true;
    gpu.set_plan_options(options);
    ASSERT_TRUE(gpu.scope().Set("b", Floats({1, 2, 3}, {1, 3})).ok());
    ASSERT_TRUE(
        gpu.scope().Set("ids", MakeArray<int64_t>({3, 1}, {2, 0, 1})).ok());
    auto plan = gpu.Compile(program_, {{"x", DType::kFloat32, {3, 1}}}, {"y"});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ((*plan)->runs_ahead(), !whole);
    const std::vector<float> x = {10, 20, 30};
    (*plan)->SetFeed(0, x.data());
    // Somebody sets them anew in between.
    for (int run = 0; run < 10; ++run) {
      if (run == 5) {
        ASSERT_TRUE(gpu.scope().Set("b", Floats({4, 5, 6}, {1, 3})).ok());
        ASSERT_TRUE(
            gpu.scope().Set("ids", MakeArray<int64_t>({3, 1}, {1, 1, 0})).ok());
      }
      const absl::Status ran = (*plan)->Run({});
      ASSERT_TRUE(ran.ok()) << ran;
      const std::vector<float> first = whole ? std::vector<float>{30, 10, 20}
                                             : std::vector<float>{11, 22, 33};
      const std::vector<float> then = whole ? std::vector<float>{20, 20, 10}
                                            : std::vector<float>{14, 25, 36};
      EXPECT_EQ(FloatsOf(ToArray((*plan)->fetch(0))), run < 5 ? first : then)
          << run;
    }
  }
}

}  // namespace test_device_plan
}  // namespace pd
