// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling and batch normalisation through oneDNN, alone and in a
// row, so that blocked layouts pass between them; channels that do not fill a
// block are padded, and the padding must not leak.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_onednn_images {

OpDesc Conv(const char* type, const std::string& x, const std::string& w,
            const std::string& y, int32_t stride, int32_t pad, int32_t groups) {
  OpDesc op;
  op.type = type;
  op.SetInput("Input", {x});
  op.SetInput("Filter", {w});
  op.SetOutput("Output", {y});
  op.attrs["strides"] = std::vector<int32_t>{stride, stride};
  op.attrs["paddings"] = std::vector<int32_t>{pad, pad};
  op.attrs["groups"] = groups;
  return op;
}

struct ConvShape {
  int64_t batch, in, height, width, out, kernel;
  int32_t stride, pad;
  const char* inference = "onednn";  // its kernel without gradients
};

class OnednnConv : public ::testing::TestWithParam<ConvShape> {};

TEST_P(OnednnConv, Conv2d) {
  const ConvShape& s = GetParam();
  KernelCase c;
  Feed(&c, "x", RandomArray({s.batch, s.in, s.height, s.width}, 1));
  Parameter(&c, "w", RandomArray({s.out, s.in, s.kernel, s.kernel}, 2));
  Append(&c, Conv("conv2d", "x", "w", "y", s.stride, s.pad, 1));
  c.fetches = {"y"};
  c.wrt = {"x", "w"};
  ExpectLikeReference(c, {{"conv2d", "onednn"}, {"conv2d_grad", "onednn"}});
}

TEST_P(OnednnConv, FusedConv2d) {
  const ConvShape& s = GetParam();
  for (const std::string& activation : FusedActivations()) {
    KernelCase c;
    Feed(&c, "x", RandomArray({s.batch, s.in, s.height, s.width}, 1));
    Parameter(&c, "w", RandomArray({s.out, s.in, s.kernel, s.kernel}, 2));
    Parameter(&c, "b", RandomArray({s.out}, 3));
    OpDesc op = Conv("fused_conv2d", "x", "w", "y", s.stride, s.pad, 1);
    op.SetInput("Bias", {"b"});
    op.attrs["fuse_activation"] = activation;
    op.attrs["fuse_alpha"] = 12.0f;  // among the numbers
    Append(&c, op);
    c.fetches = {"y"};
    c.wrt = {"x", "w", "b"};
    ExpectLikeReference(
        c, {{"fused_conv2d", "onednn"}, {"fused_conv2d_grad", "onednn"}});
  }
}

// The residual may be the input too, whose bytes must not be written over.
TEST_P(OnednnConv, Residual) {
  const ConvShape& s = GetParam();
  const int64_t height = (s.height + 2 * s.pad - s.kernel) / s.stride + 1;
  const int64_t width = (s.width + 2 * s.pad - s.kernel) / s.stride + 1;
  const bool alike = s.in == s.out && s.height == height && s.width == width;
  for (const bool itself : {false, true}) {
    if (itself && !alike) continue;
    for (const std::string& activation : FusedActivations()) {
      KernelCase c;
      Feed(&c, "image", RandomArray({s.batch, s.in, s.height, s.width}, 1));
      Feed(&c, "other", RandomArray({s.batch, s.out, height, width}, 4));
      Parameter(&c, "w", RandomArray({s.out, s.in, s.kernel, s.kernel}, 2));
      Parameter(&c, "b", RandomArray({s.out}, 3));
      // Made by ops, so that their buffers are the plan's to share.
      for (const char* name : {"image", "other"}) {
        OpDesc relu;
        relu.type = "relu";
        relu.SetInput("X", {name});
        relu.SetOutput("Out", {absl::StrCat(name, "_relu")});
        Append(&c, relu);
      }
      OpDesc op =
          Conv("fused_conv2d", "image_relu", "w", "y", s.stride, s.pad, 1);
      op.SetInput("Bias", {"b"});
      op.SetInput("ResidualData", {itself ? "image_relu" : "other_relu"});
      op.attrs["fuse_activation"] = activation;
      op.attrs["fuse_alpha"] = 12.0f;  // among the numbers
      Append(&c, op);
      c.fetches = {"y"};
      ExpectLikeReference(c, {{"fused_conv2d", s.inference}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, OnednnConv,
    ::testing::Values(ConvShape{2, 16, 7, 9, 32, 3, 1, 1},
                      ConvShape{3, 17, 8, 8, 31, 3, 2, 1},
                      ConvShape{2, 3, 11, 9, 16, 5, 2, 2},
                      ConvShape{1, 32, 5, 5, 48, 1, 1, 0},
                      ConvShape{2, 64, 6, 6, 64, 1, 2, 0},
                      // An image of a size for Winograd.
                      ConvShape{3, 50, 33, 27, 40, 3, 1, 1, "cpu:winograd"},
                      ConvShape{2, 40, 30, 30, 40, 3, 1, 1, "cpu:winograd"}));

TEST(OnednnConv, FusedDepthwise) {
  KernelCase c;
  Feed(&c, "x", RandomArray({2, 20, 9, 7}, 1));
  Parameter(&c, "w", RandomArray({20, 1, 3, 3}, 2));
  Parameter(&c, "b", RandomArray({20}, 3));
  OpDesc op = Conv("fused_conv2d", "x", "w", "y", 1, 1, 20);
  op.SetInput("Bias", {"b"});
  op.attrs["fuse_activation"] = std::string("relu6");
  op.attrs["fuse_alpha"] = 0.4f;
  Append(&c, op);
  c.fetches = {"y"};
  c.wrt = {"x", "w", "b"};
  ExpectLikeReference(
      c, {{"fused_conv2d", "onednn"}, {"fused_conv2d_grad", "onednn"}});
}

TEST(OnednnConv, Depthwise) {
  for (int64_t channels : {16, 20}) {
    KernelCase c;
    Feed(&c, "x", RandomArray({2, channels, 9, 7}, 1));
    Parameter(&c, "w", RandomArray({channels, 1, 3, 3}, 2));
    Append(&c, Conv("depthwise_conv2d", "x", "w", "y", 2, 1,
                    static_cast<int32_t>(channels)));
    c.fetches = {"y"};
    c.wrt = {"x", "w"};
    ExpectLikeReference(c, {{"depthwise_conv2d", "onednn"},
                            {"depthwise_conv2d_grad", "onednn"}});
  }
}

TEST(OnednnConv, Groups) {
  struct Grouped {
    int64_t groups, in, out, kernel;
    int32_t stride;
  };
  // Whole blocks of channels in a group, and parts of them.
  for (const Grouped& g :
       {Grouped{2, 32, 64, 3, 1}, Grouped{32, 128, 128, 3, 2},
        Grouped{3, 15, 21, 1, 1}, Grouped{4, 8, 64, 5, 1},
        Grouped{6, 6, 12, 3, 1}}) {
    for (const bool fused : {false, true}) {
      KernelCase c;
      Feed(&c, "x", RandomArray({2, g.in, 9, 11}, 1));
      Parameter(&c, "w",
                RandomArray({g.out, g.in / g.groups, g.kernel, g.kernel}, 2));
      OpDesc op = Conv(fused ? "fused_conv2d" : "conv2d", "x", "w", "y",
                       g.stride, static_cast<int32_t>(g.kernel / 2),
                       static_cast<int32_t>(g.groups));
      c.fetches = {"y"};
      if (fused) {
        Parameter(&c, "b", RandomArray({g.out}, 3));
        op.SetInput("Bias", {"b"});
        op.attrs["fuse_activation"] = std::string("relu");
        c.wrt = {"x", "w", "b"};
      } else {
        c.wrt = {"x", "w"};
      }
      Append(&c, op);
      const std::string type = op.type;
      ExpectLikeReference(c, {{type, "onednn"}, {type + "_grad", "onednn"}});
    }
  }
}

// Convolutions of 16 and `more` channels, put together.
KernelCase ConcatOfConvolutions(int64_t more) {
  KernelCase c;
  Feed(&c, "x", RandomArray({3, 16, 5, 7}, 1));
  Parameter(&c, "v", RandomArray({16, 16, 3, 3}, 2));
  Parameter(&c, "w", RandomArray({more, 16, 3, 3}, 3));
  Append(&c, Conv("conv2d", "x", "v", "a", 1, 1, 1));
  Append(&c, Conv("conv2d", "x", "w", "b", 1, 1, 1));
  OpDesc concat;
  concat.type = "concat";
  concat.SetInput("X", {"a", "b", "a"});
  concat.SetOutput("Out", {"joined"});
  concat.attrs["axis"] = int32_t{1};
  Append(&c, concat);
  c.fetches = {"joined"};
  return c;
}

TEST(BlockedChannels, Concat) {
  KernelCase c = ConcatOfConvolutions(32);
  c.wrt = {"x", "v", "w"};
  ExpectLikeReference(
      c, {{"concat", "cpu:blocks"}, {"concat_grad", "cpu:blocks"}});
  // A block that would belong to two.
  c = ConcatOfConvolutions(20);
  c.wrt = {"x", "v", "w"};
  ExpectLikeReference(c,
                      {{"concat", "reference"}, {"concat_grad", "reference"}});
}

TEST(BlockedChannels, Split) {
  KernelCase c = ConcatOfConvolutions(32);
  OpDesc split;
  split.type = "split";
  split.SetInput("X", {"joined"});
  split.SetOutput("Out", {"p", "q"});
  split.attrs["axis"] = int32_t{-3};
  split.attrs["sections"] = std::vector<int32_t>{16, -1};
  Append(&c, split);
  c.fetches = {"q", "p"};
  ExpectLikeReference(c, {{"split", "cpu:blocks"}});
  // Its gradient is a concat of what comes row-major.
  c.wrt = {"x", "v", "w"};
  ExpectLikeReference(c, {{"split", "cpu:blocks"}, {"concat", "reference"}});
}

// Squeeze-and-excitation: a factor for each channel of each image.
TEST(BlockedChannels, MulByChannels) {
  for (const int64_t channels : {32, 20}) {
    for (const bool convolved : {true, false}) {
      KernelCase c;
      Feed(&c, "x", RandomArray({3, channels, 9, 13}, 1));
      Feed(&c, "s", RandomArray({3, channels, 1, 1}, 2));
      Parameter(&c, "v", RandomArray({channels, channels, 3, 3}, 3));
      if (convolved) Append(&c, Conv("conv2d", "x", "v", "a", 1, 1, 1));
      OpDesc mul;
      mul.type = "elementwise_mul";
      mul.SetInput("X", {convolved ? "a" : "x"});
      mul.SetInput("Y", {"s"});
      mul.SetOutput("Out", {"y"});
      Append(&c, mul);
      c.fetches = {"y"};
      for (const std::vector<std::string>& wrt :
           {std::vector<std::string>{"x", "s"}, {"x"}, {"s"}}) {
        c.wrt = wrt;
        ExpectLikeReference(c, {{"elementwise_mul", "cpu:channels"},
                                {"elementwise_mul_grad", "cpu:channels"}});
      }
    }
  }
}

// Windows of which oneDNN has no fast gradient by the weights.
TEST(DepthwisePlanes, Gradients) {
  struct Window {
    int64_t h, w;
    std::vector<int32_t> strides, paddings;  // top, bottom, left, right
  };
  const Window kWindows[] = {
      {5, 5, {1, 1}, {2, 2, 2, 2}}, {5, 5, {2, 2}, {2, 2, 2, 2}},
      {7, 7, {1, 1}, {3, 3, 3, 3}}, {1, 7, {3, 2}, {0, 0, 5, 0}},
      {4, 2, {2, 3}, {1, 0, 0, 3}}, {6, 5, {5, 7}, {4, 4, 0, 0}},
      {2, 1, {1, 1}, {3, 1, 2, 2}}};
  for (const Window& window : kWindows) {
    for (const Shape& image :
         {Shape{2, 16, 23, 17}, Shape{3, 37, 7, 9}, Shape{1, 3, 6, 30}}) {
      for (const std::vector<std::string>& wrt :
           {std::vector<std::string>{"x", "w"}, {"x"}, {"w"}}) {
        KernelCase c;
        const int64_t channels = image[1];
        Feed(&c, "x", RandomArray(image, 1));
        Parameter(&c, "w", RandomArray({channels, 1, window.h, window.w}, 2));
        OpDesc op = Conv("depthwise_conv2d", "x", "w", "y", 1, 0,
                         static_cast<int32_t>(channels));
        op.attrs["strides"] = window.strides;
        op.attrs["paddings"] = window.paddings;
        Append(&c, op);
        c.fetches = {"y"};
        c.wrt = wrt;
        ExpectLikeReference(c, {{"depthwise_conv2d_grad", "cpu:planes"}});
      }
    }
  }
}

TEST(OnednnConv, Conv3d) {
  for (int64_t channels : {16, 5}) {
    KernelCase c;
    Feed(&c, "x", RandomArray({2, channels, 5, 6, 7}, 1));
    Parameter(&c, "w", RandomArray({20, channels, 3, 2, 3}, 2));
    OpDesc op = Conv("conv3d", "x", "w", "y", 1, 1, 1);
    op.attrs["strides"] = std::vector<int32_t>{2, 1, 1};
    op.attrs["paddings"] = std::vector<int32_t>{1, 0, 1};
    Append(&c, op);
    c.fetches = {"y"};
    c.wrt = {"x", "w"};
    ExpectLikeReference(c, {{"conv3d", "onednn"}, {"conv3d_grad", "onednn"}});
  }
}

TEST(OnednnConv, Transposed) {
  using Ints = std::vector<int32_t>;
  const std::vector<std::map<std::string, Attribute>> forms = {
      {},
      {{"strides", Ints{2, 2}}, {"paddings", Ints{1, 1}}},
      {{"strides", Ints{2, 3}}, {"output_padding", Ints{1, 1}}},
      {{"strides", Ints{2, 1}}, {"paddings", Ints{1, 0, 2, 1}}},
      {{"dilations", Ints{2, 1}}, {"paddings", Ints{2, 1}}}};
  for (const auto& attrs : forms)
    for (int64_t channels : {16, 11}) {
      KernelCase c;
      Feed(&c, "x", RandomArray({2, channels, 6, 7}, 1));
      Parameter(&c, "w", RandomArray({channels, 20, 3, 4}, 2));
      OpDesc op = Conv("conv2d_transpose", "x", "w", "y", 1, 0, 1);
      for (const auto& [name, value] : attrs) op.attrs[name] = value;
      Append(&c, op);
      c.fetches = {"y"};
      c.wrt = {"x", "w"};
      ExpectLikeReference(c, {{"conv2d_transpose", "onednn"},
                              {"conv2d_transpose_grad", "onednn"}});
    }
  KernelCase c;
  Feed(&c, "x", RandomArray({1, 16, 3, 4, 3}, 1));
  Parameter(&c, "w", RandomArray({16, 8, 2, 2, 2}, 2));
  OpDesc op = Conv("conv3d_transpose", "x", "w", "y", 1, 0, 1);
  op.attrs["strides"] = Ints{2, 2, 2};
  op.attrs["paddings"] = Ints{0, 0, 0};
  Append(&c, op);
  c.fetches = {"y"};
  c.wrt = {"x", "w"};
  ExpectLikeReference(
      c, {{"conv3d_transpose", "onednn"}, {"conv3d_transpose_grad", "onednn"}});
}

// conv -> batch norm -> relu -> pool, plus a residual: what a network does.
KernelCase Network(const std::string& pooling, bool is_test) {
  KernelCase c;
  Feed(&c, "x", RandomArray({4, 16, 8, 8}, 1));
  Parameter(&c, "w", RandomArray({20, 16, 3, 3}, 2));
  Parameter(&c, "w2", RandomArray({20, 20, 3, 3}, 3));
  for (const char* name : {"scale", "bias", "mean"})
    Parameter(&c, name, RandomArray({20}, 4));
  Parameter(&c, "variance", MakeArray<float>({20}, std::vector<float>(20, 2)));
  Append(&c, Conv("conv2d", "x", "w", "a", 1, 1, 1));
  OpDesc norm;
  norm.type = "batch_norm";
  norm.SetInput("X", {"a"});
  norm.SetInput("Scale", {"scale"});
  norm.SetInput("Bias", {"bias"});
  norm.SetInput("Mean", {"mean"});
  norm.SetInput("Variance", {"variance"});
  norm.SetOutput("Y", {"n"});
  norm.SetOutput("MeanOut", {"mean"});
  norm.SetOutput("VarianceOut", {"variance"});
  norm.SetOutput("SavedMean", {"saved_mean"});
  norm.SetOutput("SavedVariance", {"saved_variance"});
  norm.attrs["is_test"] = is_test;
  Append(&c, norm);
  OpDesc relu;
  relu.type = "relu";
  relu.SetInput("X", {"n"});
  relu.SetOutput("Out", {"r"});
  Append(&c, relu);
  Append(&c, Conv("conv2d", "r", "w2", "s", 1, 1, 1));
  OpDesc add;
  add.type = "elementwise_add";
  add.SetInput("X", {"s"});
  add.SetInput("Y", {"r"});
  add.SetOutput("Out", {"t"});
  Append(&c, add);
  OpDesc pool;
  pool.type = "pool2d";
  pool.SetInput("X", {"t"});
  pool.SetOutput("Out", {"y"});
  pool.attrs["pooling_type"] = pooling;
  pool.attrs["ksize"] = std::vector<int32_t>{3, 3};
  pool.attrs["strides"] = std::vector<int32_t>{2, 2};
  pool.attrs["paddings"] = std::vector<int32_t>{1, 1};
  Append(&c, pool);
  c.fetches = {"y"};
  return c;
}

TEST(OnednnNetwork, Training) {
  for (const char* pooling : {"max", "avg"}) {
    KernelCase c = Network(pooling, false);
    c.wrt = {"x", "w", "w2", "scale", "bias"};
    ExpectLikeReference(c, {{"batch_norm", "cpu:channels"},
                            {"batch_norm_grad", "cpu:channels"},
                            {"relu_grad", "cpu:any_layout"},
                            {"elementwise_add", "cpu:any_layout"},
                            {"sum", "cpu:any_layout"},
                            {"pool2d", "onednn"},
                            {"pool2d_grad", "onednn"}});
  }
}

TEST(OnednnNetwork, Inference) {
  ExpectLikeReference(Network("max", true),
                      {{"batch_norm", "cpu:channels"}, {"pool2d", "onednn"}});
}

TEST(OnednnPool, GlobalAdaptiveAndCeil) {
  for (int kind = 0; kind < 3; ++kind) {
    KernelCase c;
    Feed(&c, "x", RandomArray({2, 24, 8, 6}, 1));
    OpDesc op;
    op.type = "pool2d";
    op.SetInput("X", {"x"});
    op.SetOutput("Out", {"y"});
    op.attrs["pooling_type"] = std::string(kind == 2 ? "max" : "avg");
    op.attrs["ksize"] = std::vector<int32_t>{2, 3};
    op.attrs["strides"] = std::vector<int32_t>{2, 3};
    op.attrs["global_pooling"] = kind == 0;
    op.attrs["adaptive"] = kind == 1;
    op.attrs["ceil_mode"] = kind == 2;
    Append(&c, op);
    c.fetches = {"y"};
    c.wrt = {"x"};
    ExpectLikeReference(c, {{"pool2d", "onednn"}, {"pool2d_grad", "onednn"}});
  }
}

}  // namespace test_onednn_images
}  // namespace pd
