// SPDX-License-Identifier: Apache-2.0
// 8-bit kernels give the reference's integers: odd sizes, strides, padding,
// dilations, groups, zero points, every epilogue, and the values that make
// 16-bit sums of pairs saturate. CMakeLists.txt runs this with every
// instruction set, so the same integers on all CPUs follow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/rng.h"
#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_int8_kernels {

using Attrs = std::map<std::string, Attribute>;

enum class Values { kRandom, kGreatest, kAlternating };

template <typename T>
Array Integers(DType dtype, const Shape& shape, Values values, int low,
               int high, uint64_t number) {
  std::byte* bytes = nullptr;
  Array array = *NewArray(dtype, shape, &bytes);
  const Philox random(11, number);
  for (int64_t i = 0; i < array.size(); ++i) {
    int v = high;
    if (values == Values::kRandom)
      v = low + static_cast<int>(random.U32(static_cast<uint64_t>(i)) %
                                 static_cast<uint32_t>(high - low + 1));
    else if (values == Values::kAlternating && i / 3 % 2 == 1)
      v = low;
    reinterpret_cast<T*>(bytes)[i] = static_cast<T>(v);
  }
  return array;
}

Array Positive(const Shape& shape, uint64_t number) {
  Array array = RandomArray(shape, number);
  std::vector<float> values(static_cast<size_t>(array.size()));
  std::memcpy(values.data(), array.bytes.get(), array.size_bytes());
  for (float& v : values) v = 0.1f + std::fabs(v);
  return MakeArray<float>(shape, values);
}

struct Conv {
  Shape x = {2, 8, 7, 9};
  int64_t outputs = 16, kernel = 3;
  int32_t groups = 1;
  std::vector<int32_t> strides = {1, 1}, paddings = {1, 1}, dilations = {1, 1};
  Values values = Values::kRandom;
  int32_t zero = 128, high = 255;
  int weight_low = -128, weight_high = 127;
  int64_t outliers = 0;  // every so many weights: the greatest, the least
  std::string activation = "";
  float out_factor = 3.0f;
  bool both = false;  // numbers and what they are quantized to
  bool bias = true, residual = false, float_residual = false, norm = false;
  const char* label = "int8:gemm";
};

Attrs OutAttrs(const std::string& activation, float factor) {
  return {{"activation", activation},
          {"act_a", activation == "hard_swish" ? 6.0f
                    : activation == "clip"     ? 0.0f
                                               : 0.2f},
          {"act_b", activation == "hard_swish" ? 1 / 6.0f
                    : activation == "clip"     ? 6.0f
                                               : 0.5f},
          {"act_c", 3.0f},
          {"out_factor", factor},
          {"out_zero", int32_t{7}},
          {"out_low", int32_t{1}},
          {"out_high", int32_t{255}}};
}

Array Weights(const Conv& conv, const Shape& filter) {
  const Array array = Integers<int8_t>(DType::kInt8, filter, conv.values,
                                       conv.weight_low, conv.weight_high, 2);
  const int8_t* from = array.data<int8_t>();
  std::vector<int8_t> values(from, from + array.size());
  const auto step = static_cast<size_t>(conv.outliers);
  for (size_t i = 0; step > 0 && i < values.size(); i += step)
    values[i] = i / step % 2 == 0 ? 127 : -128;
  return MakeArray<int8_t>(filter, values);
}

void Check(const Conv& conv) {
  KernelCase c;
  Feed(&c, "x",
       Integers<uint8_t>(DType::kUInt8, conv.x, conv.values, 0, conv.high, 1));
  const Shape filter = {conv.outputs, conv.x[1] / conv.groups, conv.kernel,
                        conv.kernel};
  Parameter(&c, "w", Weights(conv, filter));
  Parameter(&c, "s", Positive({conv.outputs}, 3));
  OpDesc op;
  op.type = "int8_conv2d";
  op.SetInput("Input", {"x"});
  op.SetInput("Filter", {"w"});
  op.SetInput("FilterScale", {"s"});
  if (conv.bias) {
    Parameter(&c, "b", RandomArray({conv.outputs}, 4));
    op.SetInput("Bias", {"b"});
  }
  if (conv.norm)
    for (const char* part : {"Scale", "Bias", "Mean", "Variance"}) {
      Parameter(&c, part, Positive({conv.outputs}, 5));
      op.SetInput(absl::StrCat("Norm", part), {part});
    }
  const auto extent = [&](size_t i) {
    return (conv.x[2 + i] + 2 * conv.paddings[i] -
            conv.dilations[i] * (conv.kernel - 1) - 1) /
               conv.strides[i] +
           1;
  };
  const Shape out = {conv.x[0], conv.outputs, extent(0), extent(1)};
  if (conv.residual) {
    Feed(&c, "r",
         conv.float_residual
             ? RandomArray(out, 6)
             : Integers<uint8_t>(DType::kUInt8, out, conv.values, 0, 255, 6));
    op.SetInput("ResidualData", {"r"});
  }
  op.SetOutput("Output", {"out"});
  if (conv.both) op.SetOutput("OutputFloat", {"floats"});
  op.attrs = OutAttrs(conv.activation, conv.out_factor);
  op.attrs["strides"] = conv.strides;
  op.attrs["paddings"] = conv.paddings;
  op.attrs["dilations"] = conv.dilations;
  op.attrs["groups"] = conv.groups;
  op.attrs["x_scale"] = conv.values == Values::kRandom ? 0.003f : 0.0001f;
  op.attrs["x_zero"] = conv.zero;
  op.attrs["x_high"] = conv.high;
  op.attrs["y_scale"] = 0.02f;
  op.attrs["y_zero"] = int32_t{100};
  Append(&c, std::move(op));
  c.fetches = {"out"};
  if (conv.both) c.fetches.push_back("floats");
  ExpectLikeReference(c, {{"int8_conv2d", conv.label}}, 0);
}

TEST(Int8Conv, SizesAndWindows) {
  for (const int64_t channels : {3, 4, 16, 20, 64})
    for (const int64_t outputs : {1, 15, 16, 17, 33, 64})
      for (const int64_t kernel : {1, 3}) {
        Conv conv;
        conv.x[1] = channels;
        conv.outputs = outputs;
        conv.kernel = kernel;
        conv.paddings = {static_cast<int32_t>(kernel / 2),
                         static_cast<int32_t>(kernel / 2)};
        SCOPED_TRACE(absl::StrCat(channels, " ", outputs, " ", kernel));
        Check(conv);
        conv.strides = {2, 3};
        Check(conv);
      }
  Conv dilated;
  dilated.x = {1, 16, 11, 13};
  dilated.dilations = {2, 3};
  dilated.paddings = {2, 5};
  Check(dilated);
  Conv grouped;
  grouped.x[1] = 32;
  grouped.outputs = 24;
  grouped.groups = 4;
  Check(grouped);
  grouped.groups = 8;
  grouped.kernel = 1;
  grouped.paddings = {0, 0};
  Check(grouped);
  Conv first;
  first.x = {2, 3, 23, 21};
  first.kernel = 7;
  first.strides = {2, 2};
  first.paddings = {3, 3};
  first.outputs = 64;
  Check(first);
}

// All 255 times 127, and pairs of the same sign, with a range that 16 bits
// hold and with one that they do not.
TEST(Int8Conv, WorstCases) {
  for (const Values values : {Values::kGreatest, Values::kAlternating})
    for (const int32_t high : {127, 255})
      for (const int64_t kernel : {1, 3}) {
        Conv conv;
        conv.x = {1, 64, 5, 7};
        conv.kernel = kernel;
        conv.paddings = {1, 1};
        conv.outputs = 40;
        conv.values = values;
        conv.high = high;
        conv.zero = high == 255 ? 128 : 0;
        conv.out_factor = 0;  // the sums themselves
        SCOPED_TRACE(absl::StrCat(high, " ", kernel));
        Check(conv);
        conv.out_factor = 0.5f;
        Check(conv);
        conv.x[1] = conv.outputs = conv.groups = 40;
        conv.label = "int8:depthwise";
        conv.out_factor = 0;
        Check(conv);
      }
}

// Sums of two to eight products that 16 bits just hold, and just do not, with
// weights of one sign, of both in turn, and with a few far greater ones.
TEST(Int8Conv, SumsOfMany) {
  for (const int32_t high : {127, 255})
    for (const int sum : {128, 129, 258, 259})
      for (const int weights : {2, 4, 6, 8})
        for (const int sign : {1, -1, 0})
          for (const int64_t outliers : {0, 31}) {
            const int weight = std::min((sum + weights - 1) / weights, 127);
            Conv conv;
            conv.x = {1, 52, 3, 5};
            conv.kernel = weights == 8 ? 3 : 1;
            conv.outputs = 20;
            conv.values = sign == 0 ? Values::kAlternating : Values::kGreatest;
            conv.high = conv.zero = high;
            conv.weight_low = -weight;
            conv.weight_high = sign < 0 ? -weight : weight;
            conv.outliers = outliers;
            conv.out_factor = 0;  // the sums themselves
            Check(conv);
          }
}

TEST(Int8Conv, Epilogues) {
  for (const char* activation :
       {"", "relu", "clip", "leaky_relu", "hard_swish", "hard_sigmoid"})
    for (const float factor : {0.0f, 20.0f})
      for (const bool depthwise : {false, true}) {
        Conv conv;
        conv.x[1] = 37;
        conv.outputs = 37;
        conv.activation = activation;
        conv.out_factor = factor;
        if (depthwise) {
          conv.groups = 37;
          conv.label = "int8:depthwise";
        }
        SCOPED_TRACE(absl::StrCat(activation, " ", factor, " ", depthwise));
        Check(conv);
        conv.norm = true;
        conv.residual = true;
        Check(conv);
        conv.bias = false;
        conv.float_residual = true;
        Check(conv);
        conv.both = factor > 0;
        Check(conv);
      }
}

TEST(Int8Conv, Depthwise) {
  for (const int64_t channels : {8, 32, 64, 100})
    for (const int64_t kernel : {1, 2, 3, 5, 7})
      for (const int32_t stride : {1, 2}) {
        Conv conv;
        conv.x = {2, channels, 9, 10};
        conv.outputs = channels;
        conv.groups = static_cast<int32_t>(channels);
        conv.kernel = kernel;
        conv.strides = {stride, stride};
        conv.paddings = {static_cast<int32_t>(kernel / 2),
                         static_cast<int32_t>(kernel / 2)};
        conv.label = "int8:depthwise";
        SCOPED_TRACE(absl::StrCat(channels, " ", kernel, " ", stride));
        Check(conv);
      }
  Conv dilated;
  dilated.x = {1, 48, 12, 11};
  dilated.outputs = dilated.groups = 48;
  dilated.dilations = {3, 2};
  dilated.paddings = {3, 2};
  dilated.label = "int8:depthwise";
  Check(dilated);
}

// Windows of 3 x 3, whose columns stay in registers: blocks of channels that
// are full, with a part left, and smaller than one; one row and an odd number;
// as few columns as there can be.
TEST(Int8Conv, DepthwiseThree) {
  for (const int64_t channels : {8, 33, 64, 96, 130})
    for (const int64_t extent : {1, 2, 5, 8})
      for (const int32_t stride : {1, 2}) {
        Conv conv;
        conv.x = {2, channels, extent, extent + 1};
        conv.outputs = channels;
        conv.groups = static_cast<int32_t>(channels);
        conv.strides = {stride, stride};
        conv.activation = "clip";
        conv.out_factor = 40;
        conv.label = "int8:depthwise";
        SCOPED_TRACE(absl::StrCat(channels, " ", extent, " ", stride));
        Check(conv);
        conv.strides = {1, 3 - stride};
        conv.paddings = {2, 1};
        conv.residual = true;
        Check(conv);
      }
}

// Rows that end where the input does: no kernel reads behind it, and blocks of
// rows of every height.
TEST(Int8Conv, Rows) {
  for (const int64_t width : {1, 7, 17, 33, 49})
    for (const int64_t channels : {16, 64, 72, 100}) {
      Conv conv;
      conv.x = {1, channels, 1, width};
      conv.kernel = 1;
      conv.paddings = {0, 0};
      conv.outputs = 40;
      conv.activation = "relu";
      conv.out_factor = 20;
      SCOPED_TRACE(absl::StrCat(width, " ", channels));
      Check(conv);
      conv.residual = true;
      Check(conv);
      conv.kernel = 3;
      conv.paddings = {1, 1};
      Check(conv);
    }
}

// Results far outside of 8, 16 and 32 bits.
TEST(Int8Conv, Clamps) {
  for (const float factor : {1.0f, 1e4f, 1e9f})
    for (const char* activation : {"", "relu", "clip"})
      for (const bool depthwise : {false, true}) {
        Conv conv;
        conv.x[1] = conv.outputs = 32;
        if (depthwise) {
          conv.groups = 32;
          conv.label = "int8:depthwise";
        }
        conv.activation = activation;
        conv.out_factor = factor;
        SCOPED_TRACE(absl::StrCat(factor, " ", activation, " ", depthwise));
        Check(conv);
        conv.residual = !depthwise;
        Check(conv);
      }
}

// Numbers that are too many for caches, which are written past them, over many
// chunks of rows.
TEST(Int8Conv, ManyNumbers) {
  Conv conv;
  conv.x = {1, 48, 257, 256};
  conv.kernel = 1;
  conv.paddings = {0, 0};
  conv.outputs = 64;
  conv.activation = "relu";
  conv.out_factor = 0;
  Check(conv);
  conv.out_factor = 20;
  conv.residual = conv.float_residual = conv.both = true;
  Check(conv);
}

struct Transposed {
  Shape x = {2, 16, 5, 6};
  int64_t outputs = 24, kernel = 3;
  std::vector<int32_t> strides = {2, 2}, paddings = {1, 1}, dilations = {1, 1};
  std::vector<int32_t> output_padding = {};
  Values values = Values::kRandom;
  bool residual = false;
};

void CheckTransposed(const Transposed& t) {
  KernelCase c;
  Feed(&c, "x", Integers<uint8_t>(DType::kUInt8, t.x, t.values, 0, 255, 1));
  Parameter(
      &c, "w",
      Integers<int8_t>(DType::kInt8, {t.x[1], t.outputs, t.kernel, t.kernel},
                       t.values, -128, 127, 2));
  Parameter(&c, "s", Positive({t.outputs}, 3));
  Parameter(&c, "b", RandomArray({t.outputs}, 4));
  OpDesc op;
  op.type = "int8_conv2d_transpose";
  op.SetInput("Input", {"x"});
  op.SetInput("Filter", {"w"});
  op.SetInput("FilterScale", {"s"});
  op.SetInput("Bias", {"b"});
  if (t.residual) {
    Shape out = {t.x[0], t.outputs};
    for (size_t i = 0; i < 2; ++i)
      out.push_back((t.x[2 + i] - 1) * t.strides[i] - 2 * t.paddings[i] +
                    t.dilations[i] * (t.kernel - 1) + 1 +
                    (t.output_padding.empty() ? 0 : t.output_padding[i]));
    Feed(&c, "r", RandomArray(out, 6));
    op.SetInput("ResidualData", {"r"});
  }
  op.SetOutput("Output", {"out"});
  op.attrs = OutAttrs("leaky_relu", 3.0f);
  op.attrs["strides"] = t.strides;
  op.attrs["paddings"] = t.paddings;
  op.attrs["dilations"] = t.dilations;
  op.attrs["output_padding"] = t.output_padding;
  op.attrs["x_scale"] = 0.003f;
  op.attrs["x_zero"] = int32_t{100};
  Append(&c, std::move(op));
  c.fetches = {"out"};
  ExpectLikeReference(c, {{"int8_conv2d_transpose", "int8:gemm"}}, 0);
}

TEST(Int8ConvTranspose, WindowsAndStrides) {
  for (const int64_t kernel : {1, 2, 3, 4, 5})
    for (const int32_t stride : {1, 2, 3})
      for (const int32_t dilation : {1, 2}) {
        Transposed t;
        t.kernel = kernel;
        t.strides = {stride, 2};
        t.dilations = {dilation, 3 - dilation};
        t.paddings = {static_cast<int32_t>(kernel / 2), 0};
        SCOPED_TRACE(absl::StrCat(kernel, " ", stride, " ", dilation));
        CheckTransposed(t);
        t.x[1] = 7;
        t.outputs = 1;
        t.residual = true;
        CheckTransposed(t);
      }
  Transposed t;
  t.output_padding = {1, 1};
  t.x[1] = 80;
  t.values = Values::kGreatest;
  CheckTransposed(t);
}

TEST(Int8Matmul, Sizes) {
  for (const int64_t depth : {1, 7, 64, 200})
    for (const int64_t columns : {1, 10, 33, 100})
      for (const bool turned : {false, true}) {
        KernelCase c;
        Feed(&c, "x",
             Integers<uint8_t>(DType::kUInt8, {2, 9, depth}, Values::kRandom, 0,
                               255, 1));
        Parameter(&c, "w",
                  Integers<int8_t>(
                      DType::kInt8,
                      turned ? Shape{columns, depth} : Shape{depth, columns},
                      Values::kRandom, -127, 127, 2));
        Parameter(&c, "s", Positive({1}, 3));
        OpDesc op;
        op.type = "int8_matmul";
        op.SetInput("Input", {"x"});
        op.SetInput("Filter", {"w"});
        op.SetInput("FilterScale", {"s"});
        op.SetOutput("Output", {"out"});
        op.attrs = OutAttrs("relu", turned ? 0.0f : 2.0f);
        op.attrs["trans_y"] = turned;
        op.attrs["x_num_col_dims"] = int32_t{2};
        op.attrs["x_scale"] = 0.01f;
        op.attrs["x_zero"] = int32_t{50};
        Append(&c, std::move(op));
        c.fetches = {"out"};
        ExpectLikeReference(c, {{"int8_matmul", "int8:gemm"}}, 0);
      }
}

TEST(Int8Tensor, QuantizesAndBack) {
  for (const Shape& shape :
       {Shape{2, 3, 17, 19}, Shape{3, 40, 5, 7}, Shape{33}, Shape{4, 129}}) {
    KernelCase c;
    Feed(&c, "x", RandomArray(shape, 1));
    OpDesc quantize;
    quantize.type = "int8_quantize";
    quantize.SetInput("X", {"x"});
    quantize.SetOutput("Out", {"u"});
    quantize.attrs = OutAttrs("", 60.0f);
    Append(&c, std::move(quantize));
    OpDesc back;
    back.type = "int8_dequantize";
    back.SetInput("X", {"u"});
    back.SetOutput("Out", {"z"});
    back.attrs = OutAttrs("leaky_relu", 0.0f);
    back.attrs["x_scale"] = 1 / 60.0f;
    back.attrs["x_zero"] = int32_t{7};
    Append(&c, std::move(back));
    c.fetches = {"u", "z"};
    ExpectLikeReference(c, {{"int8_quantize", "int8:vectors"}}, 0);
  }
}

TEST(Int8Tensor, SumsAndProducts) {
  for (const char* operation : {"add", "mul"}) {
    KernelCase c;
    const Shape shape = {2, 21, 5, 7};
    for (const char* name : {"x", "y"})
      Feed(&c, name,
           Integers<uint8_t>(DType::kUInt8, shape, Values::kRandom, 0, 255,
                             static_cast<uint64_t>(name[0])));
    OpDesc op;
    op.type = "int8_elementwise";
    op.SetInput("X", {"x"});
    op.SetInput("Y", {"y"});
    op.SetOutput("Out", {"out"});
    op.attrs = OutAttrs("relu", 9.0f);
    op.attrs["operation"] = std::string(operation);
    op.attrs["x_scale"] = 0.07f;
    op.attrs["x_zero"] = int32_t{128};
    op.attrs["y_scale"] = 0.11f;
    op.attrs["y_zero"] = int32_t{90};
    Append(&c, std::move(op));
    c.fetches = {"out"};
    ExpectLikeReference(c, {{"int8_elementwise", "int8:vectors"}}, 0);
  }
}

TEST(Int8Tensor, OneNumberAChannel) {
  for (const char* operation : {"add", "mul"}) {
    KernelCase c;
    Feed(&c, "x",
         Integers<uint8_t>(DType::kUInt8, {2, 37, 5, 7}, Values::kRandom, 0,
                           255, 1));
    Feed(&c, "y",
         Integers<uint8_t>(DType::kUInt8, {2, 37, 1, 1}, Values::kRandom, 0,
                           255, 2));
    OpDesc op;
    op.type = "int8_elementwise";
    op.SetInput("X", {"x"});
    op.SetInput("Y", {"y"});
    op.SetOutput("Out", {"out"});
    op.attrs = OutAttrs("", 9.0f);
    op.attrs["operation"] = std::string(operation);
    op.attrs["x_scale"] = 0.07f;
    op.attrs["y_scale"] = 0.11f;
    op.attrs["y_zero"] = int32_t{90};
    Append(&c, std::move(op));
    c.fetches = {"out"};
    ExpectLikeReference(c, {{"int8_elementwise", "int8:vectors"}}, 0);
  }
}

// Bytes side by side and apart again.
TEST(Int8Tensor, JoinsAndSplits) {
  KernelCase c;
  const int64_t widths[] = {3, 32, 64, 5};
  std::vector<std::string> names;
  for (const int64_t width : widths) {
    names.push_back(absl::StrCat("x", width));
    Feed(&c, names.back(),
         Integers<uint8_t>(DType::kUInt8, {2, width, 5, 7}, Values::kRandom, 0,
                           255, static_cast<uint64_t>(width)));
  }
  OpDesc concat;
  concat.type = "concat";
  concat.SetInput("X", names);
  concat.SetOutput("Out", {"all"});
  concat.attrs["axis"] = int32_t{1};
  Append(&c, std::move(concat));
  OpDesc split;
  split.type = "split";
  split.SetInput("X", {"all"});
  split.SetOutput("Out", {"a", "b"});
  split.attrs["axis"] = int32_t{1};
  split.attrs["num"] = int32_t{2};
  Append(&c, std::move(split));
  c.fetches = {"all", "a", "b"};
  ExpectLikeReference(
      c, {{"concat", "int8:channels_last"}, {"split", "int8:channels_last"}},
      0);
}

TEST(Int8Tensor, Pools) {
  for (const char* type : {"max", "avg"})
    for (const bool exclusive : {false, true})
      for (const bool global : {false, true}) {
        KernelCase c;
        Feed(&c, "x",
             Integers<uint8_t>(DType::kUInt8, {2, 19, 9, 8}, Values::kRandom, 0,
                               255, 1));
        OpDesc op;
        op.type = "int8_pool2d";
        op.SetInput("X", {"x"});
        op.SetOutput("Out", {"out"});
        op.attrs = OutAttrs("", 40.0f);
        op.attrs["pooling_type"] = std::string(type);
        op.attrs["ksize"] = std::vector<int32_t>{3, 3};
        op.attrs["strides"] = std::vector<int32_t>{2, 2};
        op.attrs["paddings"] = std::vector<int32_t>{1, 1};
        op.attrs["exclusive"] = exclusive;
        op.attrs["global_pooling"] = global;
        op.attrs["x_scale"] = 0.02f;
        op.attrs["x_zero"] = int32_t{128};
        Append(&c, std::move(op));
        c.fetches = {"out"};
        ExpectLikeReference(c, {{"int8_pool2d", "int8:channels_last"}}, 0);
      }
}

}  // namespace test_int8_kernels
}  // namespace pd
