// SPDX-License-Identifier: Apache-2.0
// Gradients of ops that move elements by indices, orders, slices and graphs,
// against finite differences: PaddlePaddle's own answers for some of them are
// wrong (gather along a later axis) or not recorded.
#include <gtest/gtest.h>

#include "libcore/ops/registry.h"
#include "tests/ops/op_test.h"

namespace pd {
namespace test_index_gradients {

using Ints = std::vector<int32_t>;
using Longs = std::vector<int64_t>;

class IndexGradients : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  void Check(const GradientCase& check) {
    const absl::Status status = CheckGradients(registry_, check);
    EXPECT_TRUE(status.ok()) << check.type << ": " << status;
  }
  // With one constant input, and another output slot.
  void Check(GradientCase check, const char* slot, const Array& constant,
             const char* output = "Out") {
    check.constants[slot] = constant;
    check.output = output;
    Check(check);
  }

  OpRegistry registry_;
};

Array Indices(Shape shape, std::vector<int64_t> values) {
  return MakeArray<int64_t>(std::move(shape), values);
}

TEST_F(IndexGradients, GatherAlongEveryAxis) {
  for (int32_t axis : {0, 1, 2, -1})
    Check({"gather", {{"X", {{3, 4, 3}}}}, {{"axis", axis}}}, "Index",
          Indices({4}, {2, 0, 2, 1}));
  GradientCase by_tensor{"gather", {{"X", {{2, 3, 2}}}}};
  by_tensor.constants["Axis"] = Indices({1}, {1});
  by_tensor.output_shape = {2, 3, 2};
  Check(by_tensor, "Index", Indices({3}, {2, 0, 2}));
  Check({"gather", {{"X", {{3, 4}}}}, {{"axis", int32_t{1}}}}, "Index",
        Indices({}, {2}));
  for (int32_t axis : {0, 1, -1})
    Check({"index_select", {{"X", {{3, 3, 2}}}}, {{"dim", axis}}}, "Index",
          Indices({4}, {1, 0, 1, 1}));
  Check({"index_sample", {{"X", {{2, 4}}}}}, "Index",
        Indices({2, 3}, {3, 0, 3, 1, 1, 2}));
  Check({"take_along_axis", {{"Input", {{3, 2}}}}, {{"Axis", int32_t{0}}}},
        "Index", Indices({4, 2}, {2, 0, 2, 1, 0, 0, 1, 2}), "Result");
}

TEST_F(IndexGradients, PutAlongAxis) {
  // Two values meet at Input[0, 1]; nothing goes to Input[2, 0].
  const Array index = Indices({3, 2}, {0, 0, 1, 0, 0, 2});
  for (const char* reduce :
       {"add", "mul", "multiply", "mean", "amax", "amin"}) {
    for (bool self : {true, false}) {
      GradientCase check{"put_along_axis",
                         {{"Input", {{3, 2}}}, {"Value", {{3, 2}}}},
                         {{"Axis", int32_t{0}},
                          {"Reduce", std::string(reduce)},
                          {"Include_self", self}}};
      check.low = 0.5;
      check.high = 2;
      SCOPED_TRACE(std::string(reduce) + (self ? " with self" : ""));
      Check(check, "Index", index, "Result");
    }
  }
  GradientCase assign{"put_along_axis",
                      {{"Input", {{3, 2}}}, {"Value", {{2, 2}}}},
                      {{"Axis", int32_t{0}}}};
  Check(assign, "Index", Indices({2, 2}, {2, 0, 1, 1}), "Result");
}

TEST_F(IndexGradients, Scatter) {
  const Array rows = Indices({3}, {2, 0, 2});
  Check({"scatter",
         {{"X", {{4, 2}}}, {"Updates", {{3, 2}}}},
         {{"overwrite", false}}},
        "Ids", rows);
  Check({"scatter", {{"X", {{4, 2}}}, {"Updates", {{2, 2}}}}}, "Ids",
        Indices({2}, {3, 1}));
  Check({"scatter_nd_add", {{"X", {{3, 2}}}, {"Updates", {{3, 2}}}}}, "Index",
        Indices({3, 1}, {2, 0, 2}));
  Check({"scatter_nd_add", {{"X", {{3, 2}}}, {"Updates", {{3}}}}}, "Index",
        Indices({3, 2}, {2, 1, 0, 0, 2, 1}));
  for (int32_t axis : {0, 1, -2})
    Check({"index_add",
           {{"X", {{3, 3, 2}}}, {"AddValue", {{3, 3, 2}}}},
           {{"axis", axis}}},
          "Index", rows);
}

TEST_F(IndexGradients, PutByIndices) {
  GradientCase put{"index_put", {{"x", {{4, 2}}}, {"value", {{2}}}}};
  Check(put, "indices", Indices({2}, {3, -3}), "out");
  put.attrs["accumulate"] = true;
  Check(put, "indices", Indices({3}, {3, 0, 3}), "out");
  Array mask = MakeArray<uint8_t>({4}, {1, 0, 1, 1});
  mask.dtype = DType::kBool;
  Check(put, "indices", mask, "out");
}

TEST_F(IndexGradients, SetValue) {
  for (const Shape& value : {Shape{2, 2}, Shape{2}, Shape{2, 1}, Shape{1}}) {
    GradientCase check{"set_value",
                       {{"Input", {{3, 4}}}, {"ValueTensor", {value}}},
                       {{"axes", Longs{0, 1}},
                        {"starts", Longs{2, 0}},
                        {"ends", Longs{0, 4}},
                        {"steps", Longs{-1, 2}}}};
    Check(check);
  }
  Check({"set_value",
         {{"Input", {{3, 4}}}, {"ValueTensor", {{1, 4}}}},
         {{"axes", Longs{0}},
          {"starts", Longs{1}},
          {"ends", Longs{2}},
          {"steps", Longs{1}},
          {"decrease_axes", Longs{0}},
          {"none_axes", Longs{0}}}});
}

TEST_F(IndexGradients, Orders) {
  for (const char* type : {"argsort", "kthvalue", "mode"})
    for (int32_t axis : {0, 1, -1})
      Check({type, {{"X", {{3, 4, 2}}}}, {{"axis", axis}}});
  Check({"argsort", {{"X", {{5}}}}, {{"descending", true}}});
  Check({"top_k", {{"X", {{3, 4}}}}, {{"k", int32_t{2}}}});
  for (const Ints& axis : {Ints{}, Ints{0}, Ints{1}, Ints{0, 2}})
    Check({"nanmedian", {{"X", {{3, 4, 2}}}}, {{"axis", axis}}});
}

TEST_F(IndexGradients, Moves) {
  Check({"roll",
         {{"X", {{3, 4}}}},
         {{"shifts", Longs{1, -2}}, {"axis", Longs{0, 1}}}});
  Check({"roll", {{"X", {{3, 4}}}}, {{"shifts", Longs{5}}}});
  Check({"flip", {{"X", {{3, 4}}}}, {{"axis", Ints{1}}}});
  Check({"diagonal", {{"Input", {{3, 4, 2}}}}, {{"offset", int32_t{-1}}}});
  Check({"trace", {{"Input", {{3, 4, 2}}}}, {{"axis2", int32_t{2}}}});
  Check({"diag_v2", {{"X", {{3}}}}, {{"offset", int32_t{1}}}});
  Check({"diag_v2", {{"X", {{3, 4}}}}, {{"offset", int32_t{1}}}});
  Check({"repeat_interleave",
         {{"X", {{2, 3}}}},
         {{"Repeats", int32_t{2}}, {"dim", int32_t{1}}}});
  Check({"crop",
         {{"X", {{3, 4}}}},
         {{"offsets", Ints{1, 0}}, {"shape", Ints{2, 3}}}});
  for (const char* mode : {"constant", "reflect", "replicate", "circular"})
    for (const char* format : {"NCDHW", "NDHWC"})
      Check({"pad3d",
             {{"X", {{1, 2, 3, 3, 2}}}},
             {{"paddings", Ints{1, 0, 1, 1, 0, 1}},
              {"mode", std::string(mode)},
              {"data_format", std::string(format)}}});
  for (const char* mode : {"constant", "reflect", "edge"})
    Check({"pad2d",
           {{"X", {{1, 2, 3, 3}}}},
           {{"paddings", Ints{1, 0, 1, 2}}, {"mode", std::string(mode)}}});
  Check({"pad", {{"X", {{2, 3}}}}, {{"paddings", Ints{1, 0, 0, 2}}}});
  for (const char* type : {"pixel_shuffle", "pixel_unshuffle"})
    Check({type,
           {{"X", {{1, 4, 2, 4}}}},
           {{type[6] == 's' ? "upscale_factor" : "downscale_factor",
             int32_t{2}}}});
  Check({"squeeze", {{"X", {{2, 1, 3}}}}, {{"axes", Ints{1}}}});
  Check({"unsqueeze", {{"X", {{2, 3}}}}, {{"axes", Ints{0, 2}}}});
  Check({"flatten", {{"X", {{2, 3, 2}}}}, {{"axis", int32_t{2}}}});
  Check({"reshape", {{"X", {{2, 3, 2}}}}, {{"shape", Ints{0, -1}}}});
  Check({"renorm",
         {{"X", {{3, 4}}}},
         {{"p", 3.0f}, {"axis", int32_t{0}}, {"max_norm", 0.8f}}});
}

// The gradients of gradient ops, which only move elements too.
TEST_F(IndexGradients, SecondGradients) {
  const auto check = [&](const char* type, Shape dout,
                         std::map<std::string, Attribute> attrs,
                         const char* slot, Shape x, const char* output) {
    GradientCase c{type, {{"Out@GRAD", {std::move(dout)}}}, std::move(attrs)};
    std::vector<double> zeros(static_cast<size_t>(NumElements(x)));
    Check(c, slot, MakeArray<double>(std::move(x), zeros), output);
  };
  check("reshape2_grad", {6}, {{"shape", Ints{6}}}, "XShape", {0, 2, 3},
        "X@GRAD");
  check("squeeze2_grad", {2, 3}, {{"axes", Ints{1}}}, "XShape", {0, 2, 1, 3},
        "X@GRAD");
  check("unsqueeze2_grad", {2, 1, 3}, {{"axes", Ints{1}}}, "XShape", {0, 2, 3},
        "X@GRAD");
  check("flatten_contiguous_range_grad", {2, 6},
        {{"start_axis", int32_t{1}}, {"stop_axis", int32_t{2}}}, "XShape",
        {0, 2, 3, 2}, "X@GRAD");
  check("transpose2_grad", {3, 2}, {{"axis", Ints{1, 0}}}, "XShape", {0, 2, 3},
        "X@GRAD");
  check("tile_grad", {4, 3}, {{"repeat_times", Ints{2, 1}}}, "X", {2, 3},
        "X@GRAD");
  check("expand_v2_grad", {4, 2, 3}, {{"shape", Ints{4, 2, 3}}}, "X", {2, 1},
        "X@GRAD");
  check("expand_as_v2_grad", {4, 3}, {{"target_shape", Ints{4, 3}}}, "X",
        {1, 3}, "X@GRAD");
  check("slice_grad", {2, 3},
        {{"axes", Ints{0}}, {"starts", Ints{1}}, {"ends", Ints{3}}}, "Input",
        {4, 3}, "Input@GRAD");
  check("strided_slice_grad", {2, 3},
        {{"axes", Ints{0}},
         {"starts", Ints{3}},
         {"ends", Ints{0}},
         {"strides", Ints{-2}}},
        "Input", {4, 3}, "Input@GRAD");
  check("concat_grad", {2, 3}, {{"axis", int32_t{1}}}, "X", {2, 3}, "X@GRAD");
  check(
      "pad3d_grad", {1, 1, 2, 2, 4},
      {{"paddings", Ints{1, 1, 0, 0, 0, 0}}, {"mode", std::string("reflect")}},
      "X", {1, 1, 2, 2, 2}, "X@GRAD");
}

TEST_F(IndexGradients, SegmentsAndGraphs) {
  for (const char* pool : {"SUM", "MEAN", "MAX", "MIN"}) {
    GradientCase segments{
        "segment_pool", {{"X", {{4, 2}}}}, {{"pooltype", std::string(pool)}}};
    segments.output_shape = {3, 2};
    Check(segments, "SegmentIds", Indices({4}, {0, 0, 2, 2}));
    GradientCase nodes{"graph_send_recv",
                       {{"X", {{3, 2}}}},
                       {{"reduce_op", std::string(pool)}}};
    nodes.constants["Src_index"] = Indices({4}, {0, 1, 2, 0});
    Check(nodes, "Dst_index", Indices({4}, {1, 2, 1, 0}));
    for (const char* message : {"ADD", "MUL"}) {
      GradientCase edges{"graph_send_ue_recv",
                         {{"X", {{3, 2, 2}}}, {"Y", {{4, 2, 1}}}},
                         {{"reduce_op", std::string(pool)},
                          {"message_op", std::string(message)}}};
      edges.constants["Src_index"] = Indices({4}, {0, 1, 2, 0});
      Check(edges, "Dst_index", Indices({4}, {1, 2, 1, 0}));
    }
  }
  GradientCase pairs{"graph_send_uv",
                     {{"x", {{3, 2}}}, {"y", {{2, 1}}}},
                     {{"message_op", std::string("MUL")}}};
  pairs.constants["src_index"] = Indices({4}, {0, 1, 2, 0});
  Check(pairs, "dst_index", Indices({4}, {1, 0, 1, 0}), "out");
}

}  // namespace test_index_gradients
}  // namespace pd
