// SPDX-License-Identifier: Apache-2.0
// The pass int8_chains: which ops a quantized program of each form becomes,
// what it leaves as it is, and that the numbers are those of the program it
// replaces: within a step of the last quantizer, where a sum fell on the other
// side of a half.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/exec/session.h"
#include "libcore/passes/pipeline.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_int8_chains {

using Attrs = std::map<std::string, Attribute>;

std::vector<float> Wave(const Shape& shape, float scale, float speed = 0.7f) {
  std::vector<float> values(static_cast<size_t>(NumElements(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = scale * std::sin(speed * static_cast<float>(i) + scale);
  return values;
}

struct Result {
  std::string ops;
  std::vector<float> out;
};

// A quantized network, built op by op.
struct Net {
  ProgramDesc program;
  NamedArrays feeds, params;
  std::vector<std::string> fetches = {"out"};

  Net() { program.blocks.resize(1); }
  void Add(const std::string& name, Array value, bool param) {
    VarDesc var;
    var.name = name;
    var.dtype = value.dtype;
    var.shape = value.shape;
    var.persistable = var.is_parameter = param;
    program.global().vars.push_back(var);
    (param ? params : feeds)[name] = std::move(value);
  }
  void Feed(const std::string& name, const Shape& shape) {
    Add(name, MakeArray<float>(shape, Wave(shape, 1.0f)), false);
  }
  void Param(const std::string& name, const Shape& shape,
             std::vector<float> values) {
    Add(name, MakeArray<float>(shape, std::move(values)), true);
  }
  // Integers of 8 bits, as int8 or as floats.
  void Weights(const std::string& name, const Shape& shape, bool floats) {
    std::vector<float> values = Wave(shape, 127.0f, 1.3f);
    std::vector<int8_t> bytes;
    for (float& v : values) {
      v = std::nearbyint(v);
      bytes.push_back(static_cast<int8_t>(v));
    }
    Add(name,
        floats ? MakeArray<float>(shape, values)
               : MakeArray<int8_t>(shape, bytes),
        true);
  }
  void Op(const std::string& type, SlotList inputs, SlotList outputs,
          Attrs attrs = {}) {
    OpDesc op;
    op.type = type;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.attrs = std::move(attrs);
    BlockBuilder builder(&Registry(), &program);
    const absl::Status status = builder.Append(std::move(op));
    ASSERT_TRUE(status.ok()) << status;
  }
  // x -> quantize_linear -> dequantize_linear -> x_q
  void Linear(const std::string& x, float scale, const Attrs& more = {}) {
    Attrs attrs = {{"quant_axis", int32_t{-1}}};
    for (const auto& [name, value] : more) attrs[name] = value;
    Param(x + "@scale", {1}, {scale});
    Op("quantize_linear", {{"X", {x}}, {"Scale", {x + "@scale"}}},
       {{"Y", {x + "_i"}}}, attrs);
    Op("dequantize_linear", {{"X", {x + "_i"}}, {"Scale", {x + "@scale"}}},
       {{"Y", {x + "_q"}}}, attrs);
  }
  // name, its scales, name_q
  void LinearWeights(const std::string& name, const Shape& shape, int axis) {
    Weights(name, shape, false);
    const int64_t n = shape[static_cast<size_t>(axis)];
    std::vector<float> scales = Wave({n}, 0.1f);
    for (float& s : scales) s = 0.3f + std::fabs(s);
    Param(name + "@scale", {n}, scales);
    Op("dequantize_linear", {{"X", {name}}, {"Scale", {name + "@scale"}}},
       {{"Y", {name + "_q"}}}, {{"quant_axis", int32_t{axis}}});
  }
  void Conv(const std::string& x, const std::string& w, const std::string& out,
            Attrs attrs = {}) {
    attrs.emplace("paddings", std::vector<int32_t>{1, 1});
    Op("conv2d", {{"Input", {x}}, {"Filter", {w}}}, {{"Output", {out}}},
       std::move(attrs));
  }
  void Unary(const std::string& type, const std::string& x,
             const std::string& out, Attrs attrs = {}) {
    Op(type, {{"X", {x}}}, {{"Out", {out}}}, std::move(attrs));
  }
  void Binary(const std::string& type, const std::string& x,
              const std::string& y, const std::string& out, int axis = -1) {
    Op(type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}},
       {{"axis", int32_t{axis}}});
  }

  Result Run(bool int8, const std::string& label = "") const {
    Result result;
    Session session(&Registry());
    PassOptions options;
    if (!int8) options.disabled.insert("int8_chains");
    options.observer = [&](const std::string&, const std::string& pass,
                           const ProgramDesc& now) {
      if (pass != "int8_chains" && (int8 || !pass.empty()))
        return absl::OkStatus();
      std::vector<std::string> types;
      for (const OpDesc& op : now.global().ops) types.push_back(op.type);
      result.ops = absl::StrJoin(types, " ");
      return absl::OkStatus();
    };
    session.set_pass_options(options);
    for (const auto& [name, value] : params) {
      EXPECT_TRUE(
          session.scope().GetOrCreate(name, value.dtype, value.shape).ok());
      EXPECT_TRUE(session.scope().Set(name, value).ok());
    }
    std::vector<FeedSpec> specs;
    for (const auto& [name, value] : feeds)
      specs.push_back({name, value.dtype, value.shape});
    auto plan = session.Compile(program, specs, fetches, label);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return result;
    size_t i = 0;
    for (const auto& [name, value] : feeds)
      (*plan)->SetFeed(i++, value.bytes.get());
    const absl::Status status = (*plan)->Run({});
    EXPECT_TRUE(status.ok()) << status;
    const Array out = ToArray((*plan)->fetch(0));
    result.out.resize(static_cast<size_t>(out.size()));
    std::memcpy(result.out.data(), out.bytes.get(), out.size_bytes());
    return result;
  }
  // The pass makes these ops, and the numbers stay within `step`.
  void Expect(const std::string& ops, float step) const {
    const Result float_run = Run(false), int8_run = Run(true);
    EXPECT_EQ(int8_run.ops, ops);
    ASSERT_EQ(int8_run.out.size(), float_run.out.size());
    float most = 0;
    size_t off = 0;
    for (size_t i = 0; i < float_run.out.size(); ++i) {
      most = std::max(most, std::fabs(float_run.out[i]));
      const float d = std::fabs(int8_run.out[i] - float_run.out[i]);
      EXPECT_LE(d, step * 1.01f)
          << i << ": " << int8_run.out[i] << " and " << float_run.out[i];
      off += d > step * 0.01f ? 1 : 0;
    }
    EXPECT_GT(most, 2 * step) << "there is nothing to compare";
    EXPECT_LE(off, float_run.out.size() / 50) << "too many roundings differ";
  }
  void ExpectUntouched(const std::string& label = "") const {
    const Result float_run = Run(false), int8_run = Run(true, label);
    EXPECT_EQ(int8_run.ops, float_run.ops);
    ASSERT_EQ(int8_run.out.size(), float_run.out.size());
    EXPECT_EQ(std::memcmp(int8_run.out.data(), float_run.out.data(),
                          4 * float_run.out.size()),
              0);
  }
};

constexpr float kLevels = 127;

// conv + bias + relu + max pool, depthwise + hard_swish, linear + bias.
Net LinearNet() {
  Net net;
  net.Feed("x", {2, 3, 12, 12});
  net.LinearWeights("w1", {16, 3, 3, 3}, 0);
  net.Linear("x", 1.0f);
  net.Param("b1", {16}, Wave({16}, 0.2f));
  net.Conv("x_q", "w1_q", "c1");
  net.Binary("elementwise_add", "c1", "b1", "a1", 1);
  net.Unary("relu", "a1", "r1");
  net.Unary("pool2d", "r1", "p1",
            {{"pooling_type", std::string("max")},
             {"ksize", std::vector<int32_t>{2, 2}},
             {"strides", std::vector<int32_t>{2, 2}}});
  net.Linear("p1", 3.0f);
  net.LinearWeights("w2", {16, 1, 3, 3}, 0);
  net.Conv("p1_q", "w2_q", "c2", {{"groups", int32_t{16}}});
  net.Unary("hard_swish", "c2", "h2");
  net.Op("flatten_contiguous_range", {{"X", {"h2"}}},
         {{"Out", {"f2"}}, {"XShape", {"f2s"}}},
         {{"start_axis", int32_t{1}}, {"stop_axis", int32_t{3}}});
  net.Linear("f2", 4.0f);
  net.LinearWeights("w3", {576, 10}, 1);
  net.Op("matmul_v2", {{"X", {"f2_q"}}, {"Y", {"w3_q"}}}, {{"Out", {"m3"}}});
  net.Param("b3", {10}, Wave({10}, 0.5f));
  net.Binary("elementwise_add", "m3", "b3", "a3");
  net.Linear("a3", 40.0f);
  net.Unary("scale", "a3_q", "out");
  return net;
}

TEST(Int8Chains, QuantizeLinear) {
  LinearNet().Expect(
      "int8_quantize int8_conv2d int8_pool2d int8_conv2d "
      "flatten_contiguous_range int8_matmul int8_dequantize scale",
      40.0f / kLevels);
}

TEST(Int8Chains, WhatIsNotNegativeNeedsNoOffset) {
  const Net net = LinearNet();
  Session session(&Registry());
  for (const auto& [name, value] : net.params) {
    ASSERT_TRUE(
        session.scope().GetOrCreate(name, value.dtype, value.shape).ok());
    ASSERT_TRUE(session.scope().Set(name, value).ok());
  }
  PassContext context;
  context.registry = &Registry();
  context.keep = {"out"};
  context.value = [&](const std::string& name) {
    const Scope::Entry* entry = session.scope().Find(name);
    return entry != nullptr ? &entry->tensor : nullptr;
  };
  ProgramDesc program = net.program;
  ASSERT_TRUE(Int8Chains(context, &program).ok());
  const std::vector<OpDesc>& ops = program.global().ops;
  EXPECT_EQ(ops[1].AttrOr<int32_t>("x_zero", -1), 128);
  EXPECT_EQ(ops[1].AttrOr<int32_t>("out_zero", -1), 0);
  EXPECT_EQ(ops[1].AttrOr<int32_t>("out_high", -1), 127);
  EXPECT_EQ(ops[3].AttrOr<int32_t>("x_zero", -1), 0);
  EXPECT_EQ(ops[3].AttrOr<int32_t>("x_high", -1), 127);
  EXPECT_EQ(ops[3].AttrOr<int32_t>("out_zero", -1), 128);
  for (const VarDesc& var : program.global().vars)
    if (var.name == "p1_i") {
      EXPECT_EQ(var.dtype, DType::kUInt8);
    }
  // A second time there is nothing left to do.
  std::vector<std::string> before, after;
  for (const OpDesc& op : ops) before.push_back(op.type);
  ASSERT_TRUE(Int8Chains(context, &program).ok());
  for (const OpDesc& op : program.global().ops) after.push_back(op.type);
  EXPECT_EQ(before, after);
}

// Integers that are floats, and a scale behind the product.
TEST(Int8Chains, FakeQuantizeAndDequantize) {
  for (const bool per_channel : {true, false}) {
    Net net;
    net.Feed("x", {2, 8, 6, 6});
    net.Param("x@scale", {1}, {1.0f});
    net.Param("ws", {12}, std::vector<float>(12, 0.4f));
    net.Weights("w", {12, 8, 3, 3}, true);
    net.Op("fake_quantize_moving_average_abs_max",
           {{"X", {"x"}}, {"InScale", {"x@scale"}}},
           {{"Out", {"x_i"}}, {"OutScale", {"x@scale"}}}, {{"is_test", true}});
    net.Conv("x_i", "w", "c");
    if (per_channel)
      net.Op("fake_channel_wise_dequantize_max_abs",
             {{"X", {"c"}}, {"Scales", {"ws", "x@scale"}}}, {{"Out", {"d"}}},
             {{"quant_bits", std::vector<int32_t>{8, 8}}});
    else
      net.Op("fake_dequantize_max_abs", {{"X", {"c"}}, {"Scale", {"x@scale"}}},
             {{"Out", {"d"}}}, {{"max_range", 127.0f * 127.0f / 0.4f}});
    for (const char* part : {"g", "b", "m"})
      net.Param(part, {12}, Wave({12}, 0.5f));
    net.Param("v", {12}, std::vector<float>(12, 2.0f));
    net.Op("batch_norm",
           {{"X", {"d"}},
            {"Scale", {"g"}},
            {"Bias", {"b"}},
            {"Mean", {"m"}},
            {"Variance", {"v"}}},
           {{"Y", {"n"}},
            {"MeanOut", {"m"}},
            {"VarianceOut", {"v"}},
            {"SavedMean", {"sm"}},
            {"SavedVariance", {"sv"}}},
           {{"is_test", true}});
    net.Unary("leaky_relu", "n", "out", {{"alpha", 0.1f}});
    net.Expect("int8_quantize int8_conv2d", 1e-4f);
  }
}

// A program of quantization-aware training, as it is evaluated.
TEST(Int8Chains, TrainedForIt) {
  for (const bool per_channel : {true, false}) {
    Net net;
    net.Feed("x", {3, 20});
    net.Param("x@scale", {1}, {1.0f});
    net.Param("w", {20, 9}, Wave({20, 9}, 0.6f, 1.9f));
    net.Op("fake_quantize_dequantize_moving_average_abs_max",
           {{"X", {"x"}}, {"InScale", {"x@scale"}}},
           {{"Out", {"x_q"}}, {"OutScale", {"x@scale"}}}, {{"is_test", true}});
    net.Op(per_channel ? "fake_channel_wise_quantize_dequantize_abs_max"
                       : "fake_quantize_dequantize_abs_max",
           {{"X", {"w"}}}, {{"Out", {"w_q"}}, {"OutScale", {"w@scale"}}},
           per_channel ? Attrs{{"quant_axis", int32_t{1}}} : Attrs{});
    net.Op("mul", {{"X", {"x_q"}}, {"Y", {"w_q"}}}, {{"Out", {"m"}}});
    net.Unary("relu6", "m", "out");
    const Result result = net.Run(true);
    EXPECT_NE(result.ops.find("int8_quantize"), std::string::npos)
        << result.ops;
    EXPECT_NE(result.ops.find("int8_matmul"), std::string::npos) << result.ops;
    EXPECT_EQ(result.ops.find("mul "), std::string::npos) << result.ops;
    const Result want = net.Run(false);
    for (size_t i = 0; i < want.out.size(); ++i)
      EXPECT_NEAR(result.out[i], want.out[i], 1e-5f);
  }
}

// Sums of two branches: within the product's op, and by themselves.
TEST(Int8Chains, Residuals) {
  Net net;
  net.Feed("x", {1, 16, 5, 5});
  net.Linear("x", 1.0f);
  net.LinearWeights("w", {16, 16, 3, 3}, 0);
  net.Conv("x_q", "w_q", "c");
  net.Binary("elementwise_add", "x_q", "c", "s");
  net.Unary("relu", "s", "r");
  net.Linear("r", 5.0f);
  net.LinearWeights("w2", {16, 16, 1, 1}, 0);
  net.Conv("r_q", "w2_q", "c2", {{"paddings", std::vector<int32_t>{0, 0}}});
  net.Linear("c2", 6.0f);
  net.Binary("elementwise_add", "c2_q", "r_q", "s2");
  net.Linear("s2", 7.0f);
  net.Unary("pool2d", "s2_q", "p",
            {{"pooling_type", std::string("avg")},
             {"ksize", std::vector<int32_t>{5, 5}},
             {"global_pooling", true}});
  net.Binary("elementwise_mul", "s2_q", "s2_q", "q2");
  net.Binary("elementwise_mul", "q2", "p", "out");
  net.Expect(
      "int8_quantize int8_conv2d int8_conv2d int8_elementwise int8_pool2d "
      "int8_elementwise elementwise_mul",
      0.5f);
}

// Bytes, not numbers, go through concat and split.
TEST(Int8Chains, Joins) {
  Net net;
  net.Feed("x", {2, 8, 6, 6});
  net.Linear("x", 1.0f);
  for (const char* w : {"wa", "wb"}) {
    net.LinearWeights(w, {8, 8, 3, 3}, 0);
    net.Conv("x_q", absl::StrCat(w, "_q"), absl::StrCat("c", w));
  }
  net.Unary("relu", "cwa", "ra");
  net.Op("concat", {{"X", {"ra", "cwb", "ra"}}}, {{"Out", {"j"}}},
         {{"axis", int32_t{1}}});
  net.Linear("j", 8.0f);
  net.Op("split", {{"X", {"j_q"}}}, {{"Out", {"s1", "s2"}}},
         {{"axis", int32_t{1}}, {"num", int32_t{2}}});
  for (const char* part : {"1", "2"}) {
    const std::string s = absl::StrCat("s", part), w = absl::StrCat("w", part);
    net.Linear(s, 8.0f);
    net.LinearWeights(w, {4, 12, 1, 1}, 0);
    net.Conv(absl::StrCat(s, "_q"), absl::StrCat(w, "_q"),
             absl::StrCat("d", part),
             {{"paddings", std::vector<int32_t>{0, 0}}});
  }
  net.Binary("elementwise_add", "d1", "d2", "out");
  net.Expect(
      "int8_quantize int8_conv2d int8_conv2d concat split int8_conv2d "
      "int8_conv2d",
      0.1f);
}

// The neck of a detector: images of several sizes, enlarged and side by side.
// Bytes are enlarged, and numbers only where somebody adds them.
TEST(Int8Chains, NearestResizing) {
  for (const bool v2 : {false, true}) {
    const char* type = v2 ? "nearest_interp_v2" : "nearest_interp";
    Attrs attrs = {{"interp_method", std::string("nearest")},
                   {"align_corners", false}};
    if (v2)
      attrs["scale"] = std::vector<float>{2, 2};
    else
      attrs["scale"] = 2.0f;
    Net net;
    net.Feed("x", {2, 8, 6, 6});
    net.Linear("x", 1.0f);
    net.LinearWeights("wa", {8, 8, 3, 3}, 0);
    net.Conv("x_q", "wa_q", "a");
    net.LinearWeights("wb", {8, 8, 3, 3}, 0);
    net.Conv("x_q", "wb_q", "b", {{"strides", std::vector<int32_t>{2, 2}}});
    net.Unary("relu", "b", "r");
    net.Unary(type, "r", "u", attrs);
    net.Op("concat", {{"X", {"a", "u"}}}, {{"Out", {"j"}}},
           {{"axis", int32_t{1}}});
    net.Linear("j", 8.0f);
    net.LinearWeights("wc", {4, 16, 1, 1}, 0);
    net.Conv("j_q", "wc_q", "c", {{"paddings", std::vector<int32_t>{0, 0}}});
    net.Unary(type, "c", "d", attrs);
    net.Binary("elementwise_add", "d", "d", "out");
    net.Expect(absl::StrCat("int8_quantize int8_conv2d int8_conv2d ", type,
                            " concat int8_conv2d ", type, " elementwise_add"),
               0.1f);
  }
}

// Between two neighbours there are new numbers, which are rounded anew.
TEST(Int8Chains, OtherResizingStays) {
  Net net;
  net.Feed("x", {2, 8, 6, 6});
  net.Unary("bilinear_interp_v2", "x", "u",
            {{"interp_method", std::string("bilinear")},
             {"scale", std::vector<float>{2, 2}}});
  net.Linear("u", 1.0f);
  net.LinearWeights("w", {8, 8, 3, 3}, 0);
  net.Conv("u_q", "w_q", "out");
  net.Expect("bilinear_interp_v2 int8_quantize int8_conv2d", 0.1f);
}

// Joins whose result other ops read, or with an axis tensor, stay in float32.
TEST(Int8Chains, JoinsThatStay) {
  Net net;
  net.Feed("x", {2, 8, 6, 6});
  net.Feed("y", {2, 8, 6, 6});
  net.Op("concat", {{"X", {"x", "y"}}}, {{"Out", {"j"}}},
         {{"axis", int32_t{1}}});
  net.Linear("j", 1.0f);
  net.LinearWeights("w", {16, 16, 1, 1}, 0);
  net.Conv("j_q", "w_q", "c", {{"paddings", std::vector<int32_t>{0, 0}}});
  net.Binary("elementwise_add", "c", "j", "out");
  net.Expect("concat int8_quantize int8_conv2d", 1e-4f);
}

// PaddlePaddle's fused product: rows, bias and activation in one op.
TEST(Int8Chains, FullyConnected) {
  Net net;
  net.Feed("x", {2, 3, 20});
  net.Linear("x", 1.0f);
  net.LinearWeights("w", {20, 9}, 1);
  net.Param("b", {9}, Wave({9}, 0.5f));
  net.Op("fc", {{"Input", {"x_q"}}, {"W", {"w_q"}}, {"Bias", {"b"}}},
         {{"Out", {"f"}}},
         {{"in_num_col_dims", int32_t{2}},
          {"activation_type", std::string("relu")}});
  net.Linear("f", 4.0f);
  net.Unary("scale", "f_q", "out");
  net.Expect("int8_quantize int8_matmul int8_dequantize scale", 4.0f / kLevels);
}

TEST(Int8Chains, Transposed) {
  for (const int groups : {1, 2}) {
    Net net;
    net.Feed("x", {1, 8, 5, 5});
    net.Linear("x", 1.0f);
    net.LinearWeights("w", {8, 6, 2, 2}, 1);
    net.Op(
        "conv2d_transpose", {{"Input", {"x_q"}}, {"Filter", {"w_q"}}},
        {{"Output", {"c"}}},
        {{"strides", std::vector<int32_t>{2, 2}}, {"groups", int32_t{groups}}});
    net.Param("b", {6 * groups}, Wave({6 * groups}, 0.3f));
    net.Binary("elementwise_add", "c", "b", "a", 1);
    net.Unary("relu", "a", "r");
    net.Linear("r", 4.0f);
    net.Unary("scale", "r_q", "out");
    if (groups == 1)
      net.Expect("int8_quantize int8_conv2d_transpose int8_dequantize scale",
                 4.0f / kLevels);
    else
      EXPECT_NE(net.Run(true).ops.find(" conv2d_transpose"), std::string::npos);
  }
}

// As an ONNX file gives it: uint8 with a zero point.
TEST(Int8Chains, ZeroPoints) {
  Net net;
  net.Feed("x", {2, 8, 6, 6});
  const Attrs in = {{"Scale", 120.0f}, {"Shift", 131.0f}};
  net.Op("quantize", {{"Input", {"x"}}}, {{"Output", {"x_i"}}}, in);
  net.Op("dequantize", {{"Input", {"x_i"}}}, {{"Output", {"x_q"}}}, in);
  net.LinearWeights("w", {12, 8, 3, 3}, 0);
  net.Conv("x_q", "w_q", "c", {{"strides", std::vector<int32_t>{2, 2}}});
  net.Unary("relu6", "c", "r");
  const Attrs after = {{"Scale", 50.0f}, {"Shift", 3.0f}};
  net.Op("quantize", {{"Input", {"r"}}}, {{"Output", {"r_i"}}}, after);
  net.Op("dequantize", {{"Input", {"r_i"}}}, {{"Output", {"out"}}}, after);
  net.Expect("int8_quantize int8_conv2d int8_dequantize", 1 / 50.0f);
}

TEST(Int8Chains, ActivationsBetweenQuantizers) {
  Net net;
  net.Feed("x", {2, 8, 6, 6});
  net.Linear("x", 1.0f);
  net.Unary("relu", "x_q", "r");
  net.Linear("r", 0.8f);
  net.LinearWeights("w", {12, 8, 3, 3}, 0);
  net.Conv("r_q", "w_q", "out");
  net.Expect("int8_quantize int8_quantize int8_conv2d", 1e-4f);
}

// The number and its integers are wanted: a residual in floating point.
TEST(Int8Chains, GivesBoth) {
  Net net;
  net.Feed("x", {1, 16, 5, 5});
  net.Linear("x", 1.0f);
  net.LinearWeights("w", {16, 16, 3, 3}, 0);
  net.Conv("x_q", "w_q", "c");
  net.Unary("relu", "c", "r");
  net.Linear("r", 5.0f);
  net.LinearWeights("w2", {16, 16, 3, 3}, 0);
  net.Conv("r_q", "w2_q", "c2");
  net.Binary("elementwise_add", "c2", "r", "out");
  net.Expect("int8_quantize int8_conv2d int8_conv2d", 0.2f);
}

TEST(Int8Chains, Observers) {
  Net net;
  net.Feed("x", {2, 8, 6, 6});
  net.Linear("x", 1.0f);
  net.LinearWeights("w", {12, 8, 3, 3}, 0);
  net.Conv("x_q", "w_q", "c");
  net.Linear("c", 9.0f, {{"only_observer", true}});
  net.Unary("relu", "c_q", "out");
  net.Expect("int8_quantize int8_conv2d", 1e-4f);
}

Net Small(const Attrs& attrs, float scale) {
  Net net;
  net.Feed("x", {2, 8, 6, 6});
  net.Linear("x", scale, attrs);
  net.LinearWeights("w", {12, 8, 3, 3}, 0);
  net.Conv("x_q", "w_q", "out");
  return net;
}

TEST(Int8Chains, LeavesWhatItDoesNotUnderstand) {
  Small({{"bit_length", int32_t{4}}}, 1.0f).ExpectUntouched();
  Small({}, 0.0f).ExpectUntouched();
  Small({}, -1.0f).ExpectUntouched();
  Small({}, std::numeric_limits<float>::infinity()).ExpectUntouched();
  // While it is trained the scales change.
  Small({}, 1.0f).ExpectUntouched("eval");
  // Somebody wants the integers themselves.
  Net wanted = Small({}, 1.0f);
  wanted.fetches = {"x_i"};
  wanted.ExpectUntouched();
  // A float network.
  Net plain;
  plain.Feed("x", {2, 8, 6, 6});
  plain.Param("w", {12, 8, 3, 3}, Wave({12, 8, 3, 3}, 0.1f));
  plain.Conv("x", "w", "out");
  plain.ExpectUntouched();
}

// The tensor is quantized, the product is not.
TEST(Int8Chains, LeavesProductsInFloatingPoint) {
  Net axis;  // scales along the inputs
  axis.Feed("x", {2, 8, 6, 6});
  axis.Linear("x", 1.0f);
  axis.LinearWeights("w", {12, 8, 3, 3}, 1);
  axis.Conv("x_q", "w_q", "out");
  axis.Expect("int8_quantize int8_dequantize dequantize_linear conv2d", 1e-4f);
  Net weights;  // not quantized
  weights.Feed("x", {2, 8, 6, 6});
  weights.Linear("x", 1.0f);
  weights.Param("w", {12, 8, 3, 3}, Wave({12, 8, 3, 3}, 0.1f));
  weights.Conv("x_q", "w", "out");
  weights.Expect("int8_quantize int8_dequantize conv2d", 1e-4f);
}

}  // namespace test_int8_chains
}  // namespace pd
