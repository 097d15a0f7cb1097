// SPDX-License-Identifier: Apache-2.0
// Attention of halves on a device, without gradients: one graph of cuDNN's, or
// the chain of its parts where there is no engine, beside the program in
// float32 on the CPU.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "libcore/autodiff/backward.h"
#include "libcore/device/cudnn_attention.h"
#include "libcore/passes/amp.h"
#include "tests/device/device_plan.h"

namespace pd {
namespace test_device_attention {

constexpr char kFused[] = "scaled_dot_product_attention";
constexpr int64_t kBatch = 2, kHeads = 3, kQueries = 5, kKeys = 7;

struct Form {
  int64_t width = 16, values = 8;
  std::optional<Shape> mask = std::nullopt;
  AmpSpec::Level level = AmpSpec::Level::kO1;
  const char* dropout = "";  // how, of one that drops nothing
};

class DeviceAttention : public DevicePlan {
 protected:
  void Step(const std::string& type, const std::string& x, const std::string& y,
            const std::string& out, Shape shape) {
    Var(out, DType::kFloat32, std::move(shape));
    OpDesc* op = Op(type, x, out);
    if (!y.empty()) op->SetInput("Y", {y});
  }
  OpDesc& Last() { return program_.global().ops.back(); }

  // out = attention of the feeds q, k, v, with a mask and a scale of 1/4.
  void Build(const Form& f) {
    program_.blocks[0] = {};
    const Shape scores = {kBatch, kHeads, kQueries, kKeys};
    Var("q", DType::kFloat32, {kBatch, kHeads, kQueries, f.width});
    Var("k", DType::kFloat32, {kBatch, kHeads, kKeys, f.width});
    Var("v", DType::kFloat32, {kBatch, kHeads, kKeys, f.values});
    if (f.mask) Var("mask", DType::kFloat32, *f.mask);
    Step("matmul_v2", "q", "k", "s", scores);
    Last().attrs["trans_y"] = true;
    Step("scale", "s", "", "ss", scores);
    Last().attrs["scale"] = 0.25f;
    std::string x = "ss";
    if (f.mask) Step("elementwise_add", x, "mask", "m", scores), x = "m";
    Step("softmax", x, "", "p", scores);
    x = "p";
    if (*f.dropout != '\0') {
      Step("dropout", x, "", "d", scores), x = "d";
      Last().attrs["is_test"] = true;
      Last().attrs["dropout_prob"] = 0.25f;
      Last().attrs["dropout_implementation"] = std::string(f.dropout);
    }
    Step("matmul_v2", x, "v", "out", {kBatch, kHeads, kQueries, f.values});
  }

  void Mix(const Form& f, DType half) {
    AmpSpec spec;
    spec.level = f.level;
    spec.dtype = half;
    const absl::Status mixed = MixPrecision(registry_, spec, &program_);
    ASSERT_TRUE(mixed.ok()) << mixed;
    UpcastOutputs({"out"}, &program_);
  }

  // Halves hold them exactly. A mask that tells keys apart hides some.
  static Array Numbers(const VarDesc& var) {
    std::vector<float> values(static_cast<size_t>(NumElements(var.shape)));
    const int seed = var.name[0];
    const bool hides =
        var.name == "mask" && !var.shape.empty() && var.shape.back() == kKeys;
    for (size_t i = 0; i < values.size(); ++i) {
      const int number = (static_cast<int>(i) * 37 + seed * 5) % 31 - 15;
      values[i] = static_cast<float>(number) / 8;
      if (hides && number > 8) values[i] = -10000;
    }
    return Floats(values, var.shape);
  }

  std::vector<float> Run(Session session) {
    std::vector<FeedSpec> specs;
    std::vector<Array> feeds;
    for (const char* name : {"q", "k", "v", "mask"}) {
      const VarDesc* var = program_.FindVar(0, name);
      if (var == nullptr) continue;
      feeds.push_back(Numbers(*var));
      specs.push_back({name, DType::kFloat32, var->shape});
    }
    const auto plan = session.Compile(program_, specs, {"out"});
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    for (size_t i = 0; i < feeds.size(); ++i)
      (*plan)->SetFeed(i, feeds[i].bytes.get());
    const absl::Status ran = (*plan)->Run({7, 0});
    EXPECT_TRUE(ran.ok()) << ran;
    steps_ = (*plan)->steps();
    return FloatsOf(ToArray((*plan)->fetch(0)));
  }

  // The one step that is attention.
  StepInfo Fused() const {
    StepInfo found;
    for (const StepInfo& step : steps_) {
      if (step.op_type != kFused) continue;
      EXPECT_EQ(found.op_type, "");
      EXPECT_TRUE(step.on_device);
      found = step;
    }
    return found;
  }
  int Count(const std::string& type) const {
    return static_cast<int>(
        std::count_if(steps_.begin(), steps_.end(),
                      [&](const StepInfo& s) { return s.op_type == type; }));
  }

  // Runs the form in float32 on the CPU and in halves on the device, which may
  // differ by `roundings` of the values.
  void Check(const Form& f, DType half, double roundings) {
    Build(f);
    const std::vector<float> want = Run(OnCpu());
    Mix(f, half);
    const std::vector<float> got = Run(OnGpu());
    ASSERT_EQ(want.size(), got.size());
    const double step = half == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(want[i], got[i], roundings * step * 2) << i;
  }

  std::vector<StepInfo> steps_;
};

const std::vector<std::optional<Shape>>& Masks() {
  static const auto* const kMasks = new std::vector<std::optional<Shape>>{
      std::nullopt,
      Shape{kKeys},
      Shape{},
      Shape{kBatch, 1, 1, kKeys},
      Shape{kQueries, kKeys},
      Shape{1, kHeads, kQueries, 1},
      Shape{kBatch, kHeads, kQueries, kKeys}};
  return *kMasks;
}

// Scores are float32 in it: what is rounded is the probabilities and the
// result.
TEST_F(DeviceAttention, IsOneGraph) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16})
    for (const auto level : {AmpSpec::Level::kO1, AmpSpec::Level::kO2})
      for (const auto& mask : Masks()) {
        Form f;
        f.mask = mask;
        f.level = level;
        f.dropout = mask ? "" : "upscale_in_train";
        SCOPED_TRACE(::testing::Message()
                     << Name(half) << (level == AmpSpec::Level::kO2) << " "
                     << (mask ? ToString(*mask) : "no mask"));
        const int before = FusedGraphRuns();
        Check(f, half, 2);
        EXPECT_EQ(FusedGraphRuns() - before, 1);
        EXPECT_EQ(Fused().implementation, "cudnn");
        // Casts of what is fed and of what is fetched, and nothing else.
        EXPECT_EQ(Count("cast"), mask ? 5 : 4);
        for (const char* type : {"matmul_v2", "scale", "softmax", "dropout"})
          EXPECT_EQ(Count(type), 0) << type;
      }
}

TEST_F(DeviceAttention, IsItsPartsWithoutAnEngine) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16})
    for (const auto& mask : Masks()) {
      SCOPED_TRACE(::testing::Message()
                   << Name(half) << (mask ? ToString(*mask) : "no mask"));
      Form f;
      f.mask = mask;
      f.width = 6;
      f.values = 9;
      const int before = FusedGraphRuns();
      Check(f, half, 12);
      EXPECT_EQ(FusedGraphRuns(), before);
      const StepInfo step = Fused();
      EXPECT_EQ(step.implementation, "cublaslt");
      ASSERT_EQ(step.refusals.size(), 1u);
      EXPECT_TRUE(absl::StrContains(step.refusals[0],
                                    "cuDNN has no engine for attention"))
          << step.refusals[0];
    }
}

// In a process of its own, which has not found the library before. Nor does it
// find one that is too old.
TEST_F(DeviceAttention, IsItsPartsWithoutCudnn) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto run = [&] {
    ASSERT_TRUE(SetFlag("cudnn_dir",
                        std::string(PD_BINARY_DIR) + "/tests/device/fakes/old")
                    .ok());
    Check({}, DType::kFloat16, 12);
    ASSERT_EQ(Fused().refusals.size(), 1u);
    EXPECT_TRUE(absl::StrContains(Fused().refusals[0], "8.9.7"));
    EXPECT_EQ(Fused().implementation, "cublaslt");
  };
  EXPECT_EXIT((run(), exit(HasFailure() ? 1 : 0)), ::testing::ExitedWithCode(0),
              "");
}

TEST_F(DeviceAttention, ProbabilitiesThatAreMultiplied) {
  Form f;
  f.dropout = "downgrade_in_infer";
  Check(f, DType::kFloat16, 12);
  EXPECT_EQ(Fused().implementation, "cublaslt");
}

TEST_F(DeviceAttention, StaysAChainInFloat32AndWhereGradientsAre) {
  Form f;
  Build(f);
  Run(OnGpu());
  EXPECT_EQ(Fused().op_type, "");
  EXPECT_EQ(Count("matmul_v2"), 2);
  Mix(f, DType::kFloat16);
  Run(OnCpu());
  EXPECT_EQ(Fused().op_type, "");
  Var("loss", DType::kFloat32, {1});
  Op("mean", "out", "loss");
  BackwardOptions options;
  options.targets["loss"] = "";
  options.wrt = {"q", "k", "v"};
  const auto grads = AppendBackward(registry_, options, &program_);
  ASSERT_TRUE(grads.ok()) << grads.status();
  Run(OnGpu());
  EXPECT_EQ(Fused().op_type, "");
  EXPECT_EQ(Count("softmax"), 1);
}

TEST_F(DeviceAttention, WhatHasNoEngineIsRefused) {
  AttentionGraph graph;
  graph.batch = graph.heads = 1;
  graph.queries = graph.keys = 4;
  graph.width = graph.values = 8;
  graph.most_workspace = size_t{1} << 20;
  const auto why = [&] {
    const auto bound = BindAttentionGraph(
        static_cast<CudaDevice*>(place_->device.get()), graph);
    EXPECT_TRUE(bound.ok() || absl::IsUnimplemented(bound.status()));
    return std::string(bound.status().message());
  };
  EXPECT_EQ(why(), "");
  const std::string nothing =
      "cuDNN has no engine for attention: cuDNN's recommendations: cuDNN "
      "status 3000";
  graph.width = 264;
  EXPECT_EQ(why(), nothing);
  graph.width = 8;
  graph.values = 12;
  EXPECT_EQ(why(), nothing);
  graph.values = 8;
  graph.bias = {1, 1, 3, 4};
  EXPECT_EQ(why(), "a function's tensors: cuDNN status 2000");
  graph.bias = {};
  graph.most_workspace = 1;
  EXPECT_TRUE(absl::StrContains(why(), "1 are allowed")) << why();
  graph.dtype = DType::kFloat32;
  EXPECT_EQ(why(), "attention of float32");
}

}  // namespace test_device_attention
}  // namespace pd
