// SPDX-License-Identifier: Apache-2.0
// Convolutions in plans on a device: what they try, and what they take with
// them.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "tests/device/device_plan.h"

namespace pd {
namespace {

// FLAGS_cudnn_exhaustive_search: each new convolution is tried once.
TEST_F(DevicePlan, ConvolutionsTryTheirAlgorithms) {
  const std::string cache = std::string(PD_BINARY_DIR) +
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
  for (const int searches : {1, 0}) {
    const int before = ConvolutionSearches();
    const auto got = OnGpu().Run(program_, feeds, {"y"});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(FloatsOf(got->at("y")), FloatsOf(want->at("y")));
    EXPECT_EQ(ConvolutionSearches() - std::max(before, 0), searches);
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

  // Graphs that were run for it.
  int Check(const Chain& chain) {
    Build(chain);
    const int before = std::max(GraphRuns(), 0);
    const NamedArrays want = Run(OnCpu()), got = Run(OnGpu());
    EXPECT_EQ(want.size(), got.size());
    for (const auto& [name, array] : want) {
      const std::vector<float> a = FloatsOf(array), b = FloatsOf(got.at(name));
      EXPECT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(a[i]))) << name << i;
    }
    return std::max(GraphRuns(), 0) - before;
  }

  std::string result_;
};

TEST_F(DeviceChain, IsOneGraphOrAConvolutionAndAKernel) {
  for (const int groups : {1, 2})
    for (const bool last : {false, true})
      for (const bool residual : {false, true})
        for (const char* activation : {"", "relu", "relu6"}) {
          SCOPED_TRACE(testing::Message()
                       << groups << last << residual << activation);
          Chain chain;
          chain.groups = groups;
          chain.last = last;
          chain.bias = true;
          chain.residual = residual;
          chain.activation = activation;
          EXPECT_EQ(Check(chain), groups == 1 ? 1 : 0);
        }
}

TEST_F(DeviceChain, StaysAsItIsWhereAGradientReadsIt) {
  Chain chain;
  chain.bias = true;
  chain.activation = "relu";
  chain.relu_has_gradient = true;
  EXPECT_EQ(Check(chain), 0);
}

}  // namespace
}  // namespace pd
