// SPDX-License-Identifier: Apache-2.0
// Every differentiable op of the basic families against finite differences,
// with the shapes that tell rules apart: broadcasts on either side and at an
// axis, transposes, reductions inside and outside, rank 0, repeated inputs.
#include <gtest/gtest.h>

#include <cmath>

#include "libcore/ops/registry.h"
#include "tests/ops/op_test.h"

namespace pd {
namespace test_gradients {

using Inputs = std::vector<std::pair<std::string, std::vector<Shape>>>;
using Ints = std::vector<int32_t>;

class Gradients : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  void Check(const GradientCase& check, double tolerance = 1e-6) {
    const absl::Status status = CheckGradients(registry_, check, tolerance);
    EXPECT_TRUE(status.ok()) << check.type << ": " << status;
  }

  OpRegistry registry_;
};

TEST_F(Gradients, UnaryFunctions) {
  // Inputs in a range where the function is smooth.
  struct Range {
    const char* type;
    double low, high;
  };
  for (const Range& r :
       std::vector<Range>{{"sigmoid", -3, 3},     {"tanh", -2, 2},
                          {"silu", -3, 3},        {"swish", -3, 3},
                          {"mish", -3, 3},        {"elu", -2, -0.1},
                          {"celu", -2, -0.1},     {"selu", -2, -0.1},
                          {"relu6", 0.5, 5.5},    {"leaky_relu", -2, -0.1},
                          {"gelu", -3, 3},        {"hard_sigmoid", -2, 2},
                          {"hard_swish", -2, 2},  {"hard_shrink", 0.6, 2},
                          {"softshrink", 0.6, 2}, {"softplus", -3, 3},
                          {"logsigmoid", -3, 3},  {"tanh_shrink", -2, 2},
                          {"softsign", 0.1, 2},   {"stanh", -2, 2},
                          {"logit", 0.1, 0.9},    {"thresholded_relu", 1.1, 3},
                          {"exp", -2, 2},         {"expm1", -2, 2},
                          {"log", 0.3, 3},        {"log2", 0.3, 3},
                          {"log10", 0.3, 3},      {"log1p", -0.5, 3},
                          {"sqrt", 0.3, 3},       {"rsqrt", 0.3, 3},
                          {"square", -2, 2},      {"reciprocal", 0.3, 3},
                          {"sin", -3, 3},         {"cos", -3, 3},
                          {"tan", -1, 1},         {"asin", -0.8, 0.8},
                          {"acos", -0.8, 0.8},    {"atan", -2, 2},
                          {"sinh", -2, 2},        {"cosh", -2, 2},
                          {"asinh", -2, 2},       {"acosh", 1.3, 3},
                          {"atanh", -0.8, 0.8},   {"erf", -2, 2},
                          {"erfinv", -0.8, 0.8},  {"lgamma", 0.5, 4},
                          {"digamma", 0.5, 4},    {"abs", 0.1, 2},
                          {"relu", 0.1, 2},       {"brelu", 0.5, 20}}) {
    GradientCase check{r.type, {{"X", {{3, 5}}}}};
    check.low = r.low;
    check.high = r.high;
    Check(check);
  }
  GradientCase gelu{"gelu", {{"X", {{}}}}, {{"approximate", true}}};
  Check(gelu);
}

TEST_F(Gradients, ElementwiseBroadcasts) {
  struct Form {
    Shape x, y;
    int32_t axis;
  };
  const std::vector<Form> forms = {
      {{2, 3}, {2, 3}, -1},    {{4, 3}, {3}, -1},
      {{2, 3, 4, 5}, {3}, 1},  {{2, 3, 4}, {2, 3}, 0},
      {{2, 3, 4}, {3, 1}, 1},  {{3}, {2, 3}, -1},
      {{2, 1, 4}, {3, 1}, -1}, {{}, {2, 2}, -1},
      {{2, 2}, {}, -1},        {{}, {}, -1}};
  for (const char* type :
       {"elementwise_add", "elementwise_sub", "elementwise_mul",
        "elementwise_div", "elementwise_max", "elementwise_min",
        "elementwise_pow"}) {
    for (const Form& form : forms) {
      GradientCase check{
          type, {{"X", {form.x}}, {"Y", {form.y}}}, {{"axis", form.axis}}};
      check.low = 0.5;
      check.high = 2.0;
      SCOPED_TRACE(ToString(form.x) + " " + ToString(form.y));
      Check(check);
    }
  }
}

TEST_F(Gradients, Reductions) {
  for (const char* type : {"reduce_sum", "reduce_mean", "reduce_prod",
                           "reduce_max", "reduce_min"}) {
    for (const Ints& dims : std::vector<Ints>{{0}, {1}, {-1}, {0, 2}, {}}) {
      GradientCase check{type,
                         {{"X", {{2, 3, 4}}}},
                         {{"dim", dims}, {"reduce_all", dims.empty()}}};
      check.low = 0.5;
      check.high = 2.0;
      Check(check);
    }
  }
  Check({"mean", {{"X", {{3, 4}}}}});
  Check({"mean", {{"X", {{}}}}});
  for (float order : {1.0f, 2.0f, 3.0f})
    Check({"p_norm",
           {{"X", {{3, 4}}}},
           {{"porder", order}, {"axis", int32_t{0}}},
           0.2,
           2.0});
  Check({"frobenius_norm",
         {{"X", {{3, 4}}}},
         {{"dim", Ints{0, 1}}, {"reduce_all", true}},
         0.2,
         2.0});
}

TEST_F(Gradients, MatrixProducts) {
  struct Form {
    Shape x, y;
    bool trans_x, trans_y;
  };
  for (const Form& f :
       std::vector<Form>{{{3, 4}, {4, 5}, false, false},
                         {{4, 3}, {4, 5}, true, false},
                         {{3, 4}, {5, 4}, false, true},
                         {{4, 3}, {5, 4}, true, true},
                         {{2, 3, 4}, {4, 5}, false, false},
                         {{2, 4, 3}, {4, 5}, true, false},
                         {{2, 3, 4}, {2, 4, 5}, false, false},
                         {{2, 1, 3, 4}, {3, 4, 2}, false, false},
                         {{3, 4}, {2, 4, 5}, false, false},
                         {{4}, {4}, false, false},
                         {{3, 4}, {4}, false, false},
                         {{4}, {2, 4, 3}, false, false}}) {
    SCOPED_TRACE(ToString(f.x) + " " + ToString(f.y));
    Check({"matmul_v2",
           {{"X", {f.x}}, {"Y", {f.y}}},
           {{"trans_x", f.trans_x}, {"trans_y", f.trans_y}}});
    Check({"matmul",
           {{"X", {f.x}}, {"Y", {f.y}}},
           {{"transpose_X", f.trans_x},
            {"transpose_Y", f.trans_y},
            {"alpha", 0.5f}}});
  }
  Check({"mul",
         {{"X", {{2, 3, 4}}}, {"Y", {{4, 5}}}},
         {{"x_num_col_dims", int32_t{2}}}});
  Check({"bmm", {{"X", {{2, 3, 4}}}, {"Y", {{2, 4, 5}}}}});
}

TEST_F(Gradients, Attention) {
  const Inputs inputs = {{"query", {{2, 2, 3, 5}}},
                         {"key", {{2, 2, 4, 5}}},
                         {"value", {{2, 2, 4, 6}}}};
  const auto check = [&](const Inputs& with,
                         std::map<std::string, Attribute> attrs) {
    attrs["scale"] = 0.7f;
    GradientCase c{"scaled_dot_product_attention", with, attrs};
    c.output = "output";
    Check(c);
  };
  check(inputs, {});
  for (const Shape& bias : std::vector<Shape>{
           {2, 2, 3, 4}, {2, 1, 1, 4}, {1, 2, 3, 1}, {3, 4}, {4}, {}}) {
    SCOPED_TRACE(ToString(bias));
    Inputs with = inputs;
    with.push_back({"bias", {bias}});
    check(with, {});
  }
  const std::map<std::string, Attribute> drops = {
      {"dropout_prob", 0.4f}, {"fix_seed", true}, {"seed", int32_t{7}}};
  check(inputs, drops);
  for (const bool is_test : {false, true}) {
    std::map<std::string, Attribute> attrs = drops;
    attrs["dropout_implementation"] = std::string("downgrade_in_infer");
    attrs["is_test"] = is_test;
    check(inputs, attrs);
  }
}

TEST_F(Gradients, MovesOfElements) {
  const Inputs cube = {{"X", {{2, 3, 4}}}};
  Check({"reshape2", cube, {{"shape", Ints{0, -1}}}});
  Check({"flatten_contiguous_range", cube});
  Check({"squeeze2", {{"X", {{2, 1, 3}}}}, {{"axes", Ints{1}}}});
  Check({"unsqueeze2", cube, {{"axes", Ints{0, 2}}}});
  Check({"transpose", cube, {{"axis", Ints{1, 2, 0}}}});
  Check({"transpose2", cube, {{"axis", Ints{2, 0, 1}}}});
  Check({"concat", {{"X", {{2, 3}, {2, 1}, {2, 4}}}}, {{"axis", int32_t{1}}}});
  Check({"stack",
         {{"X", {{2, 3}, {2, 3}}}},
         {{"axis", int32_t{1}}},
         -1,
         1,
         {},
         "Y"});
  Check({"split",
         {{"X", {{2, 6}}}},
         {{"axis", int32_t{1}}, {"sections", Ints{1, -1, 3}}},
         -1,
         1,
         {},
         "Out",
         3});
  Check({"unbind",
         {{"X", {{2, 3}}}},
         {{"axis", int32_t{1}}},
         -1,
         1,
         {},
         "Out",
         3});
  Check({"unstack",
         {{"X", {{2, 3}}}},
         {{"axis", int32_t{0}}},
         -1,
         1,
         {},
         "Y",
         2});
  Check({"slice",
         {{"Input", {{4, 5}}}},
         {{"axes", Ints{0, 1}},
          {"starts", Ints{1, -3}},
          {"ends", Ints{3, 100}}}});
  Check({"strided_slice",
         {{"Input", {{6, 5}}}},
         {{"axes", Ints{0, 1}},
          {"starts", Ints{5, 0}},
          {"ends", Ints{0, 5}},
          {"strides", Ints{-2, 2}}}});
  Check({"expand_v2", {{"X", {{3, 1}}}}, {{"shape", Ints{2, 3, 4}}}});
  Check({"tile", {{"X", {{2, 3}}}}, {{"repeat_times", Ints{2, 1, 3}}}});
  Check({"cumsum", cube, {{"axis", int32_t{1}}}});
  Check({"cumsum",
         cube,
         {{"axis", int32_t{-1}}, {"exclusive", true}, {"reverse", true}}});
}

TEST_F(Gradients, Selections) {
  const Array rows = MakeArray<int64_t>({4}, {2, 0, 2, 1});
  Check({"gather", {{"X", {{3, 4}}}}, {}, -1, 1, {{"Index", rows}}});
  Check({"gather",
         {{"X", {{2, 3, 2}}}},
         {{"axis", int32_t{1}}},
         -1,
         1,
         {{"Index", rows}}});
  Check({"index_select",
         {{"X", {{2, 3, 2}}}},
         {{"dim", int32_t{1}}},
         -1,
         1,
         {{"Index", rows}}});
  Check({"gather_nd",
         {{"X", {{3, 4}}}},
         {},
         -1,
         1,
         {{"Index", MakeArray<int64_t>({2, 2}, {2, 1, 0, 3})}}});
  const Shape shape = {2, 2};
  std::byte* bytes = nullptr;
  Array mask = *NewArray(DType::kBool, shape, &bytes);
  for (int i = 0; i < 4; ++i) bytes[i] = std::byte(i % 2);
  Check({"where",
         {{"X", {shape}}, {"Y", {shape}}},
         {},
         -1,
         1,
         {{"Condition", mask}}});
  Check({"top_k_v2", {{"X", {{3, 5}}}}, {{"k", int32_t{2}}}});
  Check({"clip", {{"X", {{3, 4}}}}, {{"min", -5.0f}, {"max", 5.0f}}});
}

TEST_F(Gradients, SumsAndScales) {
  Check({"sum", {{"X", {{2, 3}, {2, 3}, {2, 3}}}}});
  Check({"scale",
         {{"X", {{2, 3}}}},
         {{"scale", 2.5f}, {"bias", 1.0f}, {"bias_after_scale", false}}});
  Check({"assign", {{"X", {{2, 3}}}}});
  Check({"pow", {{"X", {{2, 3}}}}, {{"factor", 2.5f}}, 0.2, 2.0});
  Check({"label_smooth", {{"X", {{2, 3}}}}, {{"epsilon", 0.1f}}});
  Check({"squared_l2_norm", {{"X", {{2, 3}}}}});
}

// The checker itself: a gradient that is a hundredth off, and one that is NaN.
TEST_F(Gradients, WrongOnesAreFound) {
  for (const float wrong : {1.01f, NAN}) {
    static float factor;
    factor = wrong;
    OpRegistry registry;
    ASSERT_TRUE(RegisterAllOps(&registry).ok());
    OpDef op("wrong");
    op.Input("X").Output("Out").Infer(InferUnary);
    op.Reference([](BindContext* context) -> absl::StatusOr<Step> {
      context->Alias(context->Input("X"), context->Output("Out"));
      return Step();
    });
    op.Grad([](const GradRequest& request) {
      OpDesc grad;
      grad.type = "scale";
      grad.SetInput("X", {GradName(request.op.Out("Out"))});
      grad.SetOutput("Out", {GradName(request.op.In("X"))});
      grad.attrs["scale"] = factor;
      return absl::StatusOr<std::vector<OpDesc>>({grad});
    });
    ASSERT_TRUE(registry.Add(std::move(op)).ok());
    const absl::Status status =
        CheckGradients(registry, {"wrong", {{"X", {{2, 3}}}}});
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
}

}  // namespace test_gradients
}  // namespace pd
