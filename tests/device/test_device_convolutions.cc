// SPDX-License-Identifier: Apache-2.0
// Convolutions in plans on a device: what they try, and what they take with
// them.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/autodiff/backward.h"
#include "libcore/kernels/attach.h"
#include "libcore/passes/amp.h"
#include "tests/device/device_plan.h"
#include "tests/ops/compare.h"

namespace pd {
namespace test_device_convolutions {

// FLAGS_cudnn_exhaustive_search: each new convolution is tried once.
TEST_F(DevicePlan, ConvolutionsTryTheirAlgorithms) {
  // XDG_CACHE_HOME counts only where it is absolute.
  const std::string cache = std::filesystem::absolute(PD_BINARY_DIR).string() +
                            "/test_scratch/plan_cache/" +
                            std::to_string(getpid());
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  Var("x", DType::kFloat32, {2, 2, 5, 6});
  Var("w", DType::kFloat32, {3, 2, 3, 3});
  Var("y", DType::kFloat32, {2, 3, 3, 4});
  OpDesc op;
  op.type = "conv2d";
  op.SetInput("Input", {"x"});
  op.SetInput("Filter", {"w"});
  op.SetOutput("Output", {"y"});
  program_.global().ops.push_back(op);
  std::vector<float> x, w;
  for (int i = 0; i < 120; ++i) x.push_back(static_cast<float>(i % 7) - 3);
  for (int i = 0; i < 54; ++i) w.push_back(static_cast<float>(i % 5) - 2);
  const NamedArrays feeds = {{"x", Floats(x, {2, 2, 5, 6})},
                             {"w", Floats(w, {3, 2, 3, 3})}};
  const auto want = OnCpu().Run(program_, feeds, {"y"});
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(SetFlag("cudnn_exhaustive_search", "true").ok());
  for (const bool tries : {true, false}) {
    const int before = GraphRuns();
    const auto got = OnGpu().Run(program_, feeds, {"y"});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(FloatsOf(got->at("y")), FloatsOf(want->at("y")));
    EXPECT_EQ(GraphRuns() - before > 1, tries);
  }
  ASSERT_TRUE(SetFlag("cudnn_exhaustive_search", "false").ok());
  EXPECT_TRUE(std::filesystem::exists(cache + "/pdkit/convolutions.txt"));
}

// Chains of a convolution: one graph of cuDNN's, or a kernel behind it where
// there is no engine (groups).
struct Chain {
  int groups = 1;
  bool last = false, bias = false, residual = false;
  const char* activation = "";
  bool relu_has_gradient = false;
};

class DeviceChain : public DevicePlan {
 protected:
  void Build(const Chain& c) {
    program_.blocks[0] = {};
    const Shape x = c.last ? Shape{2, 5, 6, 4} : Shape{2, 4, 5, 6};
    const Shape y = c.last ? Shape{2, 5, 6, 8} : Shape{2, 8, 5, 6};
    Var("x", DType::kFloat32, x);
    Var("w", DType::kFloat32, {8, 4 / c.groups, 3, 3}, true);
    Var("b", DType::kFloat32, {8}, true);
    Var("r", DType::kFloat32, y);
    for (const char* name : {"conv", "biased", "sum", "out", "dout", "dsum"})
      Var(name, DType::kFloat32, y);
    OpDesc conv;
    conv.type = "conv2d";
    conv.SetInput("Input", {"x"});
    conv.SetInput("Filter", {"w"});
    conv.SetOutput("Output", {"conv"});
    conv.attrs["paddings"] = std::vector<int32_t>{1, 1};
    conv.attrs["groups"] = int32_t{c.groups};
    conv.attrs["data_format"] = std::string(c.last ? "NHWC" : "NCHW");
    program_.global().ops.push_back(conv);
    result_ = "conv";
    if (c.bias) Add("b", "biased", c.last ? 3 : 1);
    if (c.residual) Add("r", "sum", -1);
    if (*c.activation == '\0') return;
    OpDesc* op = Op(c.activation, result_, "out");
    if (c.activation == std::string("relu6")) op->attrs["threshold"] = 2.5f;
    result_ = "out";
    if (!c.relu_has_gradient) return;
    OpDesc grad;
    grad.type = "relu_grad";
    grad.SetInput("Out", {"out"});
    grad.SetInput("Out@GRAD", {"dout"});
    grad.SetOutput("X@GRAD", {"dsum"});
    program_.global().ops.push_back(grad);
  }

  void Add(const std::string& other, const std::string& out, int axis) {
    OpDesc* op = Op("elementwise_add", result_, out);
    op->SetInput("Y", {other});
    op->attrs["axis"] = int32_t{axis};
    result_ = out;
  }

  NamedArrays Feeds() const {
    NamedArrays feeds;
    for (const char* name : {"x", "r", "dout"}) {
      const VarDesc& var = *program_.FindVar(0, name);
      std::vector<float> values(static_cast<size_t>(NumElements(var.shape)));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] =
            static_cast<float>(static_cast<int>(i * 7 % 13) - 6) * 0.25f;
      feeds[name] = Floats(values, var.shape);
    }
    return feeds;
  }

  // Sets the parameters, and gives what is fetched.
  NamedArrays Run(Session session) {
    for (const char* name : {"w", "b"}) {
      const VarDesc& var = *program_.FindVar(0, name);
      std::vector<float> values(static_cast<size_t>(NumElements(var.shape)));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(static_cast<int>(i * 5 % 7) - 3) * 0.5f;
      EXPECT_TRUE(session.scope().Set(name, Floats(values, var.shape)).ok());
    }
    NamedArrays feeds = Feeds();
    std::vector<std::string> fetches = {result_};
    std::set<std::string> read;
    for (const OpDesc& op : program_.global().ops) {
      for (const auto& [slot, names] : op.inputs)
        read.insert(names.begin(), names.end());
      if (op.type == "relu_grad") fetches.push_back("dsum");
    }
    for (const char* name : {"r", "dout"})
      if (read.count(name) == 0) feeds.erase(name);
    const auto got = session.Run(program_, feeds, fetches);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? *got : NamedArrays();
  }

  // Graphs of several operations that were run for it.
  int Check(const Chain& chain) {
    Build(chain);
    const int before = FusedGraphRuns();
    const NamedArrays want = Run(OnCpu()), got = Run(OnGpu());
    EXPECT_EQ(want.size(), got.size());
    for (const auto& [name, array] : want) {
      const std::vector<float> a = FloatsOf(array), b = FloatsOf(got.at(name));
      EXPECT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(a[i]))) << name << i;
    }
    return FusedGraphRuns() - before;
  }

  std::string result_;
};

TEST_F(DeviceChain, IsOneGraphOrAConvolutionAndAKernel) {
  // With channels last, where float32 may be rounded for tensor cores.
  for (const char* rounds : {"true", "false"}) {
    ASSERT_TRUE(SetFlag("enable_cublas_tensor_op_math", rounds).ok());
    for (const int groups : {1, 2})
      for (const bool last : {false, true})
        for (const bool residual : {false, true})
          for (const char* activation : {"", "relu", "relu6"}) {
            SCOPED_TRACE(::testing::Message()
                         << rounds << groups << last << residual << activation);
            Chain chain;
            chain.groups = groups;
            chain.last = last;
            chain.bias = true;
            chain.residual = residual;
            chain.activation = activation;
            EXPECT_EQ(Check(chain), groups == 1 ? 1 : 0);
          }
  }
}

TEST_F(DeviceChain, StaysAsItIsWhereAGradientReadsIt) {
  Chain chain;
  chain.bias = true;
  chain.activation = "relu";
  chain.relu_has_gradient = true;
  EXPECT_EQ(Check(chain), 0);
}

// A residual block in mixed precision, and its gradients.
class DeviceLayouts : public DevicePlan {
 protected:
  void SetUp() override {
    DevicePlan::SetUp();
    ASSERT_TRUE(AttachHostKernels(&registry_).ok());
  }

  void Conv(const std::string& x, const std::string& out, int groups = 1) {
    const std::string w = out + ".w";
    Var(w, DType::kFloat32, {channels_, channels_ / groups, 3, 3}, true);
    Var(out, DType::kFloat32, Images());
    parameters_.push_back(w);
    OpDesc* op = Op(groups == 1 ? "conv2d" : "depthwise_conv2d");
    op->SetInput("Input", {x});
    op->SetInput("Filter", {w});
    op->SetOutput("Output", {out});
    op->attrs["paddings"] = std::vector<int32_t>{1, 1};
    op->attrs["groups"] = int32_t{groups};
  }
  void Norm(const std::string& x, const std::string& out,
            int64_t channels = 0) {
    if (channels == 0) channels = channels_;
    OpDesc* op = Op("batch_norm");
    op->SetInput("X", {x});
    for (const auto& [in, output] :
         {std::pair("Scale", ""), std::pair("Bias", ""),
          std::pair("Mean", "MeanOut"), std::pair("Variance", "VarianceOut")}) {
      const std::string name = absl::StrCat(out, ".", in);
      Var(name, DType::kFloat32, {channels}, true);
      op->SetInput(in, {name});
      if (*output != '\0')
        op->SetOutput(output, {name});
      else
        parameters_.push_back(name);
    }
    for (const char* slot : {"SavedMean", "SavedVariance"}) {
      Var(absl::StrCat(out, slot), DType::kFloat32, {channels});
      op->SetOutput(slot, {absl::StrCat(out, slot)});
    }
    Var(out, DType::kFloat32, Images());
    op->SetOutput("Y", {out});
  }
  void Act(const char* type, const std::string& x, const std::string& out) {
    Var(out, DType::kFloat32, Images());
    Op(type, x, out);
  }
  OpDesc* Two(const char* type, const std::string& x, const std::string& y,
              const std::string& out) {
    Var(out, DType::kFloat32, Images());
    OpDesc* op = Op(type, x, out);
    op->SetInput("Y", {y});
    return op;
  }
  OpDesc* Pool(const std::string& x, const std::string& out, const char* type) {
    Var(out, DType::kFloat32, {2, channels_, 3, 2});
    OpDesc* op = Op("pool2d", x, out);
    op->attrs["pooling_type"] = std::string(type);
    op->attrs["ksize"] = std::vector<int32_t>{2, 2};
    op->attrs["strides"] = std::vector<int32_t>{2, 2};
    return op;
  }

  void Begin() {
    program_ = {};
    program_.blocks.resize(1);
    parameters_.clear();
    Var("x", DType::kFloat32, Images());
  }
  // In O1, with gradients of what is trained and of x.
  void End(const std::string& last, DType half) {
    Var("loss", DType::kFloat32, {1});
    Op("mean", last, "loss");
    AmpSpec spec;
    spec.dtype = half;
    spec.custom_white_list = {"depthwise_conv2d"};
    ASSERT_TRUE(MixPrecision(registry_, spec, &program_).ok());
    AskForGradients();
  }
  void AskForGradients() {
    BackwardOptions options;
    options.targets["loss"] = "";
    options.wrt = parameters_;
    options.wrt.push_back("x");
    const auto grads = AppendBackward(registry_, options, &program_);
    ASSERT_TRUE(grads.ok()) << grads.status();
    fetches_ = {"loss"};
    for (const auto& [name, gradient] : *grads) fetches_.push_back(gradient);
  }

  NamedArrays Run(Session session) {
    for (const VarDesc& var : program_.global().vars)
      if (var.persistable) {
        const auto set = session.scope().Set(var.name, Numbers(var));
        EXPECT_TRUE(set.ok()) << set;
      }
    const Array x = Numbers(*program_.FindVar(0, "x"));
    const auto plan =
        session.Compile(program_, {{"x", DType::kFloat32, x.shape}}, fetches_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    (*plan)->SetFeed(0, x.bytes.get());
    const absl::Status ran = (*plan)->Run({7, 0});
    EXPECT_TRUE(ran.ok()) << ran;
    if ((*plan)->place() != nullptr) {
      ran_.clear();
      for (const StepInfo& step : (*plan)->steps()) {
        ++ran_[step.op_type];
        EXPECT_TRUE(step.on_device) << step.op_type;
      }
    }
    NamedArrays answers;
    for (size_t i = 0; i < fetches_.size(); ++i)
      answers[fetches_[i]] = ToArray((*plan)->fetch(i));
    return answers;
  }

  // Sums of halves in two orders, rounded at every step on the way.
  void Check(DType half) { Compare(half == DType::kFloat16 ? 0x1p-8 : 0x1p-5); }
  void Compare(double tolerance) {
    const NamedArrays want = Run(OnCpu()), got = Run(OnGpu());
    for (const auto& [name, array] : want) {
      double largest = 1;
      if (array.dtype == DType::kFloat32) {
        largest = 0;
        for (const float number : FloatsOf(array))
          largest = std::max<double>(largest, std::abs(number));
      }
      EXPECT_EQ(Difference(got.at(name), array, tolerance, tolerance * largest),
                "")
          << name;
    }
  }

  Shape Images() const { return {2, channels_, 6, 5}; }

  static Array Numbers(const VarDesc& var) {
    std::vector<float> values(static_cast<size_t>(NumElements(var.shape)));
    const bool positive = absl::EndsWith(var.name, ".Variance");
    for (size_t i = 0; i < values.size(); ++i) {
      const int number = static_cast<int>((i * 37 + var.name.size() * 11) % 61);
      values[i] = static_cast<float>(positive ? number + 1 : number - 30) / 32;
    }
    return Floats(values, var.shape);
  }

  int64_t channels_ = 6;
  std::vector<std::string> parameters_, fetches_;
  std::map<std::string, int> ran_;  // how often each type, on the GPU
};

TEST_F(DeviceLayouts, HalvesHaveChannelsLastFromBorderToBorder) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(Name(half));
    Begin();
    Conv("x", "first");
    Norm("first", "normed");
    Act("relu", "normed", "active");
    Conv("active", "second");
    Norm("second", "again");
    Conv("again", "deep", channels_);
    Two("elementwise_add", "deep", "active", "sum");
    Act("leaky_relu", "sum", "out");
    Pool("out", "pooled", "max");
    End("pooled", half);
    Check(half);
    // x and its gradient, what was pooled and its gradient, two filters and
    // their gradients; a depthwise filter lies the same either way.
    EXPECT_EQ(ran_["reorder"], 8);
  }
}

// Blocks of ResNet: a sum with its ReLU is one op, and so is the sum of the
// gradients of what two ops read with the gradient of the ReLU.
TEST_F(DeviceLayouts, SumsOfResidualBlocksAreOneOpWithTheirRelu) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(Name(half));
    Begin();
    Conv("x", "stem");
    Act("relu", "stem", "r0");
    for (const std::string i : {"1", "2"}) {
      const std::string in = i == "1" ? "r0" : "r1";
      Conv(in, "c" + i);
      Norm("c" + i, "n" + i);
      Two("elementwise_add", "n" + i, in, "s" + i);
      Act("relu", "s" + i, "r" + i);
    }
    Pool("r2", "pooled", "max");
    End("pooled", half);
    Check(half);
    // x, what was pooled, three filters, and the gradients of all.
    EXPECT_EQ(ran_["reorder"], 10);
    EXPECT_EQ(ran_["fused_elemwise_activation"], 2);
    EXPECT_EQ(ran_["sum_relu_grad"], 2);
    EXPECT_EQ(ran_["elementwise_add"] + ran_["sum"], 0);
    EXPECT_EQ(ran_["elementwise_add_grad"], 0) << "they are aliases";
    EXPECT_EQ(ran_["relu"] + ran_["relu_grad"], 2);  // the first, the last
  }
}

// Float32 goes to tensor cores where it may be rounded for them and has
// channels in vectors.
TEST_F(DeviceLayouts, Float32HasChannelsLastWhereItMayBeRounded) {
  const auto build = [&] {
    Begin();
    Conv("x", "first");
    Norm("first", "normed");
    Act("relu", "normed", "active");
    Conv("active", "second");
    Norm("second", "again");
    Two("elementwise_add", "again", "active", "sum");
    Act("relu", "sum", "out");
    Pool("out", "pooled", "max");
    Var("loss", DType::kFloat32, {1});
    Op("mean", "pooled", "loss");
    AskForGradients();
    Compare(1e-4);
  };
  build();
  EXPECT_EQ(ran_["reorder"], 0);
  ASSERT_TRUE(SetFlag("enable_cublas_tensor_op_math", "true").ok());
  build();
  EXPECT_EQ(ran_["reorder"], 0);
  channels_ = 8;
  build();
  ASSERT_TRUE(SetFlag("enable_cublas_tensor_op_math", "false").ok());
  // As with halves.
  EXPECT_EQ(ran_["reorder"], 8);
}

// A factor and a term for each channel, averages, what is read twice, and what
// is row-major in between.
TEST_F(DeviceLayouts, WhatIsRepeatedAlongImages) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(Name(half));
    Begin();
    Conv("x", "first");
    Var("bias", DType::kFloat32, {channels_}, true);
    parameters_.push_back("bias");
    Two("elementwise_add", "first", "bias", "biased")->attrs["axis"] =
        int32_t{1};
    Pool("biased", "mean", "avg")->attrs["global_pooling"] = true;
    program_.global().vars.back().shape = {2, channels_, 1, 1};
    Act("sigmoid", "mean", "factor");
    program_.global().vars.back().shape = {2, channels_, 1, 1};
    Two("elementwise_mul", "biased", "factor", "scaled");
    Two("elementwise_mul", "scaled", "biased", "square");
    Act("tanh", "square", "bounded");
    Conv("bounded", "second");
    Two("elementwise_sub", "second", "x", "less");
    Act("softmax", "less", "shares");
    Two("elementwise_add", "shares", "scaled", "sum");
    Pool("sum", "pooled", "avg");
    End("pooled", half);
    fetches_.insert(fetches_.end(), {"first", "scaled", "second"});
    Check(half);
  }
}

// More elements than a block takes, or a thread where channels are last.
TEST_F(DeviceLayouts, NormsHaveManyElements) {
  for (const bool last : {false, true}) {
    SCOPED_TRACE(last);
    Begin();
    const Shape shape = last ? Shape{3, 60, 50, 2} : Shape{3, 2, 60, 50};
    program_.global().vars.back().shape = shape;
    Norm("x", "y", 2);
    program_.global().vars.back().shape = shape;
    OpDesc& op = program_.global().ops.back();
    op.attrs["data_layout"] = std::string(last ? "NHWC" : "NCHW");
    Act("sigmoid", "y", "shares");
    program_.global().vars.back().shape = shape;
    Var("loss", DType::kFloat32, {1});
    Op("mean", "shares", "loss");
    AskForGradients();
    fetches_.insert(fetches_.end(), {"y", "y.Mean", "y.Variance"});
    Compare(1e-5);
  }
}

}  // namespace test_device_convolutions
}  // namespace pd
