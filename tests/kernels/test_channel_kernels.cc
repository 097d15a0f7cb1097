// SPDX-License-Identifier: Apache-2.0
// batch_norm and activations against the reference, in the layouts that
// convolutions leave: row-major, channels last, the batch innermost. Blocks of
// channels: test_onednn_images.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/kernel_test.h"

namespace pd {
namespace {

OpDesc Op(const char* type, const char* in, const char* out) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {in});
  op.SetOutput("Out", {out});
  return op;
}

// Normalises `in`; the statistics' names begin with `out`.
void AppendNorm(KernelCase* c, const std::string& in, const std::string& out,
                int64_t channels, bool is_test, const char* data_layout) {
  OpDesc op;
  op.type = "batch_norm";
  op.SetInput("X", {in});
  op.SetOutput("Y", {out});
  const auto add = [&](const char* slot, const char* name, Array value) {
    Parameter(c, out + name, std::move(value));
    op.SetInput(slot, {out + name});
  };
  add("Scale", "_scale", RandomArray({channels}, 4));
  add("Bias", "_bias", RandomArray({channels}, 5));
  add("Mean", "_mean", RandomArray({channels}, 6));
  add("Variance", "_variance",
      MakeArray<float>({channels}, std::vector<float>(channels, 2)));
  op.SetOutput("MeanOut", {out + "_mean"});
  op.SetOutput("VarianceOut", {out + "_variance"});
  op.SetOutput("SavedMean", {out + "_saved_mean"});
  op.SetOutput("SavedVariance", {out + "_saved_variance"});
  op.attrs["is_test"] = is_test;
  op.attrs["data_layout"] = std::string(data_layout);
  Append(c, op);
}

struct Input {
  Shape shape;
  const char* data_layout;
  int64_t channels;
};

class Norm : public testing::TestWithParam<Input> {};

TEST_P(Norm, IsTheReferences) {
  for (const bool is_test : {false, true}) {
    KernelCase c;
    Feed(&c, "x", RandomArray(GetParam().shape, 1));
    AppendNorm(&c, "x", "y", GetParam().channels, is_test,
               GetParam().data_layout);
    c.fetches = {"y"};
    if (!is_test) {
      c.fetches = {"y", "y_saved_mean", "y_saved_variance"};
      c.wrt = {"x", "y_scale", "y_bias"};
    }
    std::map<std::string, std::string> labels = {
        {"batch_norm", "cpu:channels"}};
    if (!is_test) labels["batch_norm_grad"] = "cpu:channels";
    ExpectLikeReference(c, labels);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Norm,
                         testing::Values(Input{{4, 3, 35}, "NCHW", 3},
                                         Input{{2, 17, 64}, "NCHW", 17},
                                         Input{{3, 5, 7, 4}, "NHWC", 4},
                                         Input{{3, 5, 7, 35}, "NHWC", 35},
                                         Input{{9, 21}, "NCHW", 21},
                                         Input{{2, 3, 40}, "NCHW", 3},
                                         Input{{2, 3, 4, 5, 6}, "NCHW", 3}));

// Numbers far from 0 keep their variance.
TEST(Norm, FarFromZero) {
  KernelCase c;
  Feed(&c, "x", RandomArray({4, 3, 256}, 1));
  OpDesc far = Op("scale", "x", "far");
  far.attrs["bias"] = 1000.0f;
  Append(&c, far);
  AppendNorm(&c, "far", "y", 3, false, "NCHW");
  c.fetches = {"y"};
  ExpectLikeReference(c, {{"batch_norm", "cpu:channels"}}, 1e-3);
}

struct Kind {
  const char* type;
  double tolerance;
};

class Activations : public testing::TestWithParam<Kind> {};

// Between two convolutions with the batch innermost, and on its own.
TEST_P(Activations, InAnyLayout) {
  KernelCase c;
  Feed(&c, "x", RandomArray({16, 3, 6, 7}, 1));
  Parameter(&c, "w", RandomArray({5, 3, 3, 3}, 2));
  OpDesc conv;
  conv.type = "conv2d";
  conv.SetInput("Input", {"x"});
  conv.SetInput("Filter", {"w"});
  conv.SetOutput("Output", {"a"});
  Append(&c, conv);
  AppendNorm(&c, "a", "n", 5, false, "NCHW");
  OpDesc wide = Op("scale", "n", "wide");
  wide.attrs["scale"] = 5.0f;
  Append(&c, wide);
  Append(&c, Op(GetParam().type, "wide", "y"));
  c.fetches = {"y"};
  c.wrt = {"x", "w", "n_scale"};
  const std::string type = GetParam().type;
  ExpectLikeReference(c,
                      {{"conv2d", "cpu:batch_inner"},
                       {"batch_norm", "cpu:channels"},
                       {"batch_norm_grad", "cpu:channels"},
                       {type, "cpu:any_layout"},
                       {type + "_grad", "cpu:any_layout"}},
                      GetParam().tolerance);
}

TEST_P(Activations, FarNumbersAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> far = {
      -infinity, -1e30f, -100.f, -6.f,  -3.f,     -0.f,         0.f,
      3.f,       6.f,    100.f,  1e30f, infinity, std::nanf("")};
  KernelCase c;
  Feed(&c, "x", MakeArray<float>({static_cast<int64_t>(far.size())}, far));
  Append(&c, Op(GetParam().type, "x", "y"));
  c.fetches = {"y"};
  const KernelResult fast = RunCase(c, true), slow = RunCase(c, false);
  EXPECT_EQ(fast.labels.at(GetParam().type), "cpu:any_layout");
  const auto* a =
      reinterpret_cast<const float*>(fast.values.at("y").bytes.get());
  const auto* b =
      reinterpret_cast<const float*>(slow.values.at("y").bytes.get());
  for (size_t i = 0; i < far.size(); ++i) {
    if (std::isnan(b[i]))
      EXPECT_TRUE(std::isnan(a[i])) << far[i];
    else if (std::isinf(b[i]))
      EXPECT_EQ(a[i], b[i]) << far[i];
    else
      EXPECT_NEAR(a[i], b[i], 1e-6 * (1 + std::abs(b[i]))) << far[i];
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Activations,
    testing::Values(Kind{"relu", 2e-5}, Kind{"relu6", 2e-5},
                    Kind{"leaky_relu", 2e-5}, Kind{"hard_swish", 2e-5},
                    Kind{"swish", 2e-5}, Kind{"silu", 2e-5},
                    Kind{"sigmoid", 2e-5}, Kind{"tanh", 2e-5}));

}  // namespace
}  // namespace pd
