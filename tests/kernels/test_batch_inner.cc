// SPDX-License-Identifier: Apache-2.0
// Convolution and pooling in the batch-inner layout. The shapes are chosen to
// break it: batches below, between and above whole vectors; channels that do
// not fill a tile; strides, dilations and padding where the pattern of taps
// changes from pixel to pixel; kernels wider than a group of taps.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_batch_inner {

struct ConvShape {
  int64_t batch, in, height, width, out, kernel_h, kernel_w;
  int32_t stride, pad, dilation;
};

OpDesc ConvOp(const char* type, const ConvShape& s, bool channels_last) {
  OpDesc op;
  op.type = type;
  op.SetInput("Input", {"x"});
  op.SetInput("Filter", {"w"});
  op.SetOutput("Output", {"y"});
  op.attrs["strides"] = std::vector<int32_t>{s.stride, s.stride};
  op.attrs["paddings"] = std::vector<int32_t>{s.pad, s.pad};
  op.attrs["dilations"] = std::vector<int32_t>{s.dilation, s.dilation};
  op.attrs["data_format"] = std::string(channels_last ? "NHWC" : "NCHW");
  return op;
}

KernelCase ConvCase(const ConvShape& s, bool channels_last = false) {
  KernelCase c;
  Feed(&c, "x",
       RandomArray(channels_last ? Shape{s.batch, s.height, s.width, s.in}
                                 : Shape{s.batch, s.in, s.height, s.width},
                   1));
  Feed(&c, "w", RandomArray({s.out, s.in, s.kernel_h, s.kernel_w}, 2));
  c.fetches = {"y"};
  c.wrt = {"x", "w"};
  return c;
}

class BatchInner : public ::testing::TestWithParam<ConvShape> {};

TEST_P(BatchInner, Conv2d) {
  for (bool channels_last : {false, true}) {
    KernelCase c = ConvCase(GetParam(), channels_last);
    Append(&c, ConvOp("conv2d", GetParam(), channels_last));
    ExpectLikeReference(
        c, {{"conv2d", "cpu:batch_inner"}, {"conv2d_grad", "cpu:batch_inner"}});
  }
}

TEST_P(BatchInner, FusedConv2d) {
  KernelCase c = ConvCase(GetParam());
  Feed(&c, "b", RandomArray({GetParam().out}, 3));
  c.wrt.push_back("b");
  OpDesc op = ConvOp("fused_conv2d", GetParam(), false);
  op.SetInput("Bias", {"b"});
  op.attrs["fuse_activation"] = std::string("relu");
  Append(&c, op);
  ExpectLikeReference(c, {{"fused_conv2d", "cpu:batch_inner"},
                          {"fused_conv2d_grad", "cpu:batch_inner"}});
}

TEST_P(BatchInner, NoGradientOfData) {
  KernelCase c = ConvCase(GetParam());
  Feed(&c, "b", RandomArray({GetParam().out}, 3));
  c.wrt = {"w", "b"};
  OpDesc op = ConvOp("fused_conv2d", GetParam(), false);
  op.SetInput("Bias", {"b"});
  op.attrs["fuse_activation"] = std::string("relu");
  Append(&c, op);
  ExpectLikeReference(c, {{"fused_conv2d_grad", "cpu:batch_inner"}});
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BatchInner,
    ::testing::Values(ConvShape{64, 1, 12, 12, 6, 3, 3, 1, 1, 1},
                      ConvShape{64, 6, 9, 9, 7, 5, 5, 1, 0, 1},
                      ConvShape{15, 1, 9, 7, 5, 3, 3, 1, 1, 1},
                      ConvShape{16, 3, 8, 8, 5, 3, 2, 1, 1, 1},
                      ConvShape{24, 2, 11, 9, 3, 3, 3, 2, 1, 1},
                      ConvShape{37, 5, 12, 13, 2, 3, 3, 3, 2, 2},
                      ConvShape{32, 4, 6, 6, 5, 1, 1, 1, 0, 1},
                      ConvShape{16, 2, 16, 5, 5, 7, 7, 1, 3, 1},
                      ConvShape{100, 1, 5, 20, 1, 2, 11, 2, 5, 1},
                      ConvShape{15, 7, 4, 4, 1, 3, 3, 1, 2, 1}));

TEST(BatchInner, LeavesFullBlocksToOthers) {
  const ConvShape shape{4, 16, 6, 6, 16, 3, 3, 1, 1, 1};
  KernelCase c = ConvCase(shape);
  Append(&c, ConvOp("conv2d", shape, false));
  EXPECT_NE(RunCase(c, true).labels.at("conv2d"), "cpu:batch_inner");
}

struct PoolShape {
  const char* type;
  int64_t batch, height, width;
  std::vector<int32_t> kernel, stride, pad;
  bool exclusive = true, ceil_mode = false, adaptive = false;
};

class BatchInnerPool : public ::testing::TestWithParam<PoolShape> {};

// Behind a convolution, whose output lies batch-inner.
TEST_P(BatchInnerPool, Pool2d) {
  const PoolShape& p = GetParam();
  const ConvShape shape{p.batch, 2, p.height, p.width, 3, 1, 1, 1, 0, 1};
  KernelCase c = ConvCase(shape);
  Append(&c, ConvOp("conv2d", shape, false));
  OpDesc op;
  op.type = "pool2d";
  op.SetInput("X", {"y"});
  op.SetOutput("Out", {"z"});
  op.attrs["pooling_type"] = std::string(p.type);
  op.attrs["ksize"] = p.kernel;
  op.attrs["strides"] = p.stride;
  op.attrs["paddings"] = p.pad;
  op.attrs["exclusive"] = p.exclusive;
  op.attrs["ceil_mode"] = p.ceil_mode;
  op.attrs["adaptive"] = p.adaptive;
  Append(&c, op);
  c.fetches = {"z"};
  ExpectLikeReference(c, {{"conv2d", "cpu:batch_inner"},
                          {"pool2d", "cpu:batch_inner"},
                          {"pool2d_grad", "cpu:batch_inner"}});
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BatchInnerPool,
    ::testing::Values(
        PoolShape{"max", 64, 8, 8, {2, 2}, {2, 2}, {0, 0}},
        PoolShape{"max", 37, 9, 7, {3, 3}, {2, 2}, {1, 1}},
        PoolShape{"max", 16, 7, 8, {3, 2}, {1, 2}, {0, 1}, true, true},
        PoolShape{"max", 13, 9, 9, {4, 5}, {1, 1}, {0, 0}, true, false, true},
        PoolShape{"avg", 64, 8, 8, {2, 2}, {2, 2}, {0, 0}},
        PoolShape{"avg", 13, 9, 7, {3, 3}, {2, 2}, {1, 1}},
        PoolShape{"avg", 20, 9, 7, {3, 3}, {2, 2}, {1, 1}, false, true},
        PoolShape{"avg", 16, 7, 9, {3, 4}, {1, 1}, {0, 0}, true, false, true}));

// A NaN in a window is its maximum, the first of several.
TEST(BatchInnerPool, NotANumber) {
  const ConvShape shape{16, 1, 4, 4, 1, 1, 1, 1, 0, 1};
  KernelCase c = ConvCase(shape);
  auto* x = const_cast<float*>(c.feeds["x"].data<float>());
  for (int i = 0; i < 16; ++i)
    x[i * 16 + i] = std::numeric_limits<float>::quiet_NaN();
  x[5 * 16] = x[5 * 16 + 1] = std::numeric_limits<float>::quiet_NaN();
  Append(&c, ConvOp("conv2d", shape, false));
  OpDesc op;
  op.type = "pool2d";
  op.SetInput("X", {"y"});
  op.SetOutput("Out", {"z"});
  op.attrs["pooling_type"] = std::string("max");
  op.attrs["ksize"] = op.attrs["strides"] = std::vector<int32_t>{2, 2};
  Append(&c, op);
  c.fetches = {"z"};
  c.wrt = {"x"};
  ExpectLikeReference(
      c, {{"pool2d", "cpu:batch_inner"}, {"pool2d_grad", "cpu:batch_inner"}});
}

}  // namespace test_batch_inner
}  // namespace pd
