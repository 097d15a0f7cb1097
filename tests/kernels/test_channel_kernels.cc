// SPDX-License-Identifier: Apache-2.0
// batch_norm and activations against the reference, in the layouts that
// convolutions leave: row-major, channels last, the batch innermost. Blocks of
// channels: test_onednn_images.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_channel_kernels {

OpDesc Op(const char* type, const char* in, const char* out) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {in});
  op.SetOutput("Out", {out});
  return op;
}

std::vector<float> Values(const Array& array) {
  return {array.data<float>(), array.data<float>() + array.size()};
}

// Normalises `in`; the statistics' names begin with `out`.
void AppendNorm(KernelCase* c, const std::string& in, const std::string& out,
                int64_t channels, bool is_test, const char* data_layout,
                const std::string& act = "") {
  OpDesc op;
  op.type = act.empty() ? "batch_norm" : "fused_batch_norm_act";
  if (!act.empty()) op.attrs["act_type"] = act;
  op.attrs["fuse_alpha"] = 0.4f;  // among the numbers
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

class Norm : public ::testing::TestWithParam<Input> {};

TEST_P(Norm, IsTheReferences) {
  for (const char* act : {"", "relu", "relu6"})
    for (const bool is_test : {false, true}) {
      SCOPED_TRACE(absl::StrCat(act, is_test ? " test" : ""));
      KernelCase c;
      Feed(&c, "x", RandomArray(GetParam().shape, 1));
      AppendNorm(&c, "x", "y", GetParam().channels, is_test,
                 GetParam().data_layout, act);
      c.fetches = {"y"};
      if (!is_test) {
        c.fetches = {"y", "y_saved_mean", "y_saved_variance"};
        c.wrt = {"x", "y_scale", "y_bias"};
      }
      const std::string type =
          *act != 0 ? "fused_batch_norm_act" : "batch_norm";
      std::map<std::string, std::string> labels = {{type, "cpu:channels"}};
      if (!is_test) labels[type + "_grad"] = "cpu:channels";
      ExpectLikeReference(c, labels);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Norm,
                         ::testing::Values(Input{{4, 3, 35}, "NCHW", 3},
                                           Input{{2, 17, 64}, "NCHW", 17},
                                           Input{{3, 5, 7, 4}, "NHWC", 4},
                                           Input{{3, 5, 7, 35}, "NHWC", 35},
                                           Input{{9, 21}, "NCHW", 21},
                                           Input{{2, 3, 40}, "NCHW", 3},
                                           Input{{3, 37, 9, 9}, "NCHW", 37},
                                           Input{{2, 2, 40, 41}, "NCHW", 2},
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

// The first numbers of each channel say nothing of the others: the variance is
// asked for a second time, around the mean.
TEST(Norm, StartsElsewhere) {
  for (const int64_t channels : {2, 40}) {
    const Shape shape = {2, channels, 64, 64};
    std::vector<float> x = Values(RandomArray(shape, 1));
    for (int64_t c = 0; c < channels; ++c)
      std::fill_n(x.begin() + c * 64 * 64, 1024, 500.0f);
    KernelCase c;
    Feed(&c, "x", MakeArray<float>(shape, x));
    AppendNorm(&c, "x", "y", channels, false, "NCHW");
    c.fetches = {"y", "y_saved_mean", "y_saved_variance"};
    c.wrt = {"x", "y_scale"};
    ExpectLikeReference(c, {{"batch_norm", "cpu:channels"}});
  }
}

TEST(Norm, ClipKeepsNan) {
  std::vector<float> x = Values(RandomArray({4, 3, 8}, 1));
  x[5] = std::nanf("");
  KernelCase c;
  Feed(&c, "x", MakeArray<float>({4, 3, 8}, x));
  AppendNorm(&c, "x", "y", 3, false, "NCHW", "relu");
  c.fetches = {"y"};
  const KernelResult fast = RunCase(c, true), slow = RunCase(c, false);
  const auto* a =
      reinterpret_cast<const float*>(fast.values.at("y").bytes.get());
  const auto* b =
      reinterpret_cast<const float*>(slow.values.at("y").bytes.get());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(std::isnan(a[i]), i / 8 % 3 == 0) << i;
    EXPECT_EQ(std::isnan(b[i]), i / 8 % 3 == 0) << i;
  }
}

struct Kind {
  const char* type;
  double tolerance;
};

class Activations : public ::testing::TestWithParam<Kind> {};

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
    ::testing::Values(Kind{"relu", 2e-5}, Kind{"relu6", 2e-5},
                      Kind{"leaky_relu", 2e-5}, Kind{"hard_swish", 2e-5},
                      Kind{"swish", 2e-5}, Kind{"silu", 2e-5},
                      Kind{"sigmoid", 2e-5}, Kind{"tanh", 2e-5},
                      Kind{"erf", 2e-5}));

}  // namespace test_channel_kernels
}  // namespace pd
