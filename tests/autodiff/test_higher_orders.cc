// SPDX-License-Identifier: Apache-2.0
// Derivatives of derivatives: for every gradient op that PaddlePaddle 2.6.2
// differentiates again, and for those that only we do, against central
// differences of the order below, in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/autodiff/backward.h"
#include "libcore/autodiff/jvp.h"
#include "libcore/base/error.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_higher_orders {

using Ints = std::vector<int32_t>;
using Names = std::map<std::string, std::string>;

// One op, whose first output slot is differentiated.
struct Curve {
  std::string type;
  std::vector<std::pair<std::string, std::vector<Shape>>> inputs;
  std::map<std::string, Attribute> attrs = {};
  double low = -1, high = 1;  // of the inputs
  int order = 3;
  std::map<std::string, Array> constants = {};
};

constexpr double kStep = 1e-5;
constexpr double kTolerance = 2e-6;

Array Random(const Shape& shape, const std::string& name, double low,
             double high) {
  RandomStream random(11, StreamOf(name));
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& v : values) v = low + (high - low) * random.Uniform();
  return MakeArray(shape, values);
}

class Orders {
 public:
  explicit Orders(const Curve& curve) : curve_(curve) {
    program_.version = 2006000;  // one that knows rank 0
    program_.blocks.emplace_back();
  }

  // Checks order after order; `differentiated` gets the types of the ops that
  // the orders from the second on went through.
  absl::Status Check(std::set<std::string>* differentiated) {
    PD_RETURN_IF_ERROR(Build());
    std::vector<std::string> wrt = inputs_;
    Names targets = {{out_, "c"}};
    PD_ASSIGN_OR_RETURN(Names made, Differentiate(targets, wrt));
    wrt.push_back("c");
    for (int order = 2; order <= curve_.order; ++order) {
      for (const OpDesc& op : program_.global().ops)
        differentiated->insert(op.type);
      const ProgramDesc below = program_;
      targets.clear();
      for (const auto& [variable, gradient] : made) {
        const std::string by = absl::StrCat("r", order, "_", variable);
        Feed(by, Random(feed_.at(variable).shape, by, -1, 1));
        targets[gradient] = by;
      }
      PD_ASSIGN_OR_RETURN(made, Differentiate(targets, wrt));
      PD_RETURN_IF_ERROR(Annotate(Compare(below, targets, made, wrt),
                                  absl::StrCat("order ", order)));
    }
    return absl::OkStatus();
  }

 private:
  void Feed(const std::string& name, Array value) {
    VarDesc var;
    var.name = name;
    var.dtype = value.dtype;
    var.shape = value.shape;
    var.need_check_feed = true;
    var.stop_gradient = name != "c";
    program_.global().vars.push_back(std::move(var));
    feed_[name] = std::move(value);
  }

  absl::Status Build() {
    OpDesc op;
    op.type = curve_.type;
    op.attrs = curve_.attrs;
    for (const auto& [slot, shapes] : curve_.inputs) {
      std::vector<std::string> names;
      for (const Shape& shape : shapes) {
        names.push_back(absl::StrCat(slot, "_", names.size()));
        Feed(names.back(),
             Random(shape, names.back(), curve_.low, curve_.high));
        inputs_.push_back(names.back());
      }
      op.SetInput(slot, names);
    }
    for (const auto& [slot, value] : curve_.constants) {
      Feed(slot, value);
      op.SetInput(slot, {slot});
    }
    PD_ASSIGN_OR_RETURN(const OpDef* def, ReferenceRegistry().Get(op.type));
    for (const SlotDef& slot : def->outputs()) {
      if (slot.name == "ReserveSpace") continue;
      op.SetOutput(slot.name, {absl::StrCat(slot.name, "_made")});
      if (out_.empty()) out_ = op.Out(slot.name);
    }
    BlockBuilder builder(&ReferenceRegistry(), &program_);
    PD_RETURN_IF_ERROR(builder.Append(std::move(op)));
    const Shape shape = builder.FindVar(out_)->shape;
    Feed("c", Random(shape, "c", -1, 1));
    return absl::OkStatus();
  }

  absl::StatusOr<Names> Differentiate(const Names& targets,
                                      const std::vector<std::string>& wrt) {
    BackwardOptions options;
    options.targets = targets;
    options.wrt = wrt;
    options.parameters = false;
    return AppendBackward(ReferenceRegistry(), options, &program_);
  }

  // The gradients `made` of sum(target * its weight) against differences of
  // that sum, by the program that makes the targets.
  absl::Status Compare(const ProgramDesc& below, const Names& targets,
                       const Names& made, const std::vector<std::string>& wrt) {
    Session session(&ReferenceRegistry());
    PlanOptions options;
    options.poison = true;
    session.set_plan_options(options);
    std::vector<std::string> gradients, values;
    for (const auto& [variable, gradient] : made) gradients.push_back(gradient);
    for (const auto& [target, by] : targets) values.push_back(target);
    PD_ASSIGN_OR_RETURN(const NamedArrays got,
                        session.Run(program_, feed_, gradients));
    std::vector<FeedSpec> specs;
    for (const auto& [name, array] : feed_)
      specs.push_back({name, array.dtype, array.shape, {}});
    PD_ASSIGN_OR_RETURN(const auto plan, session.Compile(below, specs, values));
    std::map<std::string, size_t> numbers;
    for (const auto& [name, array] : feed_) {
      const size_t number = numbers.size();
      numbers[name] = number;
      plan->SetFeed(number, array.bytes.get());
    }
    const auto sum = [&]() -> absl::StatusOr<double> {
      PD_RETURN_IF_ERROR(plan->Run(RunContext()));
      double total = 0;
      for (size_t k = 0; k < values.size(); ++k) {
        const double* by = feed_.at(targets.at(values[k])).data<double>();
        for (int64_t i = 0; i < plan->fetch(k).size(); ++i)
          total += plan->fetch(k).data<double>()[i] * by[i];
      }
      return total;
    };
    for (const std::string& variable : wrt) {
      const Array& at = feed_.at(variable);
      std::vector<double> moved(at.data<double>(),
                                at.data<double>() + at.size());
      plan->SetFeed(numbers[variable], moved.data());
      for (size_t i = 0; i < moved.size(); ++i) {
        const double here = moved[i];
        moved[i] = here + kStep;
        PD_ASSIGN_OR_RETURN(const double above, sum());
        moved[i] = here - kStep;
        PD_ASSIGN_OR_RETURN(const double beneath, sum());
        moved[i] = here;
        const double want = (above - beneath) / (2 * kStep);
        const auto gradient = made.find(variable);
        const double is = gradient == made.end()
                              ? 0
                              : got.at(gradient->second).data<double>()[i];
        const double scale = std::max({std::fabs(want), std::fabs(is), 1.0});
        if (!(std::fabs(want - is) <= kTolerance * scale))
          return DataLoss("by %s[%d]: %.12g; differences %.12g", variable, i,
                          is, want);
      }
      plan->SetFeed(numbers[variable], at.bytes.get());
    }
    return absl::OkStatus();
  }

  const Curve& curve_;
  ProgramDesc program_;
  NamedArrays feed_;
  std::vector<std::string> inputs_;
  std::string out_;
};

// Inputs in a range where the function is smooth.
std::vector<Curve> Functions() {
  struct Range {
    const char* type;
    double low, high;
  };
  std::vector<Curve> curves;
  for (const Range& r :
       std::vector<Range>{{"exp", -1, 1},          {"expm1", -1, 1},
                          {"log", 0.4, 2},         {"log2", 0.4, 2},
                          {"log10", 0.4, 2},       {"log1p", -0.4, 2},
                          {"sqrt", 0.4, 2},        {"rsqrt", 0.4, 2},
                          {"square", -1, 1},       {"reciprocal", 0.4, 2},
                          {"sin", -2, 2},          {"cos", -2, 2},
                          {"tan", -1, 1},          {"asin", -0.7, 0.7},
                          {"acos", -0.7, 0.7},     {"atan", -2, 2},
                          {"sinh", -1, 1},         {"cosh", -1, 1},
                          {"asinh", -2, 2},        {"acosh", 1.4, 3},
                          {"atanh", -0.7, 0.7},    {"erf", -1, 1},
                          {"erfinv", -0.7, 0.7},   {"floor", 0.1, 0.9},
                          {"sigmoid", -2, 2},      {"tanh", -2, 2},
                          {"silu", -2, 2},         {"swish", -2, 2},
                          {"mish", -2, 2},         {"gelu", -2, 2},
                          {"elu", -2, -0.1},       {"celu", -2, -0.1},
                          {"selu", -2, -0.1},      {"relu", 0.1, 2},
                          {"relu6", 0.5, 5.5},     {"brelu", 0.5, 20},
                          {"leaky_relu", -2, -.1}, {"thresholded_relu", 1.1, 3},
                          {"hard_sigmoid", -2, 2}, {"hard_shrink", 0.6, 2},
                          {"softshrink", 0.6, 2},  {"softplus", -2, 2},
                          {"logsigmoid", -2, 2},   {"tanh_shrink", -2, 2},
                          {"softsign", 0.1, 2},    {"stanh", -2, 2},
                          {"logit", 0.2, 0.8},     {"abs", 0.1, 2}})
    curves.push_back({r.type, {{"X", {{2, 3}}}}, {}, r.low, r.high});
  curves.push_back({"lgamma", {{"X", {{3}}}}, {}, 0.6, 3, 2});
  curves.push_back({"pow", {{"X", {{2, 3}}}}, {{"factor", 2.5f}}, 0.4, 2});
  curves.push_back(
      {"clip", {{"X", {{2, 3}}}}, {{"min", -2.0f}, {"max", 2.0f}}});
  curves.push_back({"elu", {{"X", {{4}}}}, {{"alpha", 0.75f}}, 0.1, 2});
  curves.push_back({"celu", {{"X", {{4}}}}, {{"alpha", 0.5f}}, -2, -0.1});
  curves.push_back({"stanh", {{"X", {{4}}}}, {{"scale_a", 0.5f}}});
  curves.push_back({"softplus", {{"X", {{4}}}}, {{"beta", 2.0f}}});
  for (const int32_t axis : {-1, 0}) {
    curves.push_back({"softmax", {{"X", {{2, 3}}}}, {{"axis", axis}}});
    curves.push_back({"log_softmax", {{"X", {{2, 3}}}}, {{"axis", axis}}});
  }
  return curves;
}

std::vector<Curve> Products() {
  std::vector<Curve> curves;
  const std::pair<Shape, Shape> operands[] = {
      {{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{3}, {2, 3}}, {{2, 1}, {1, 3}}};
  for (const char* type : {"elementwise_add", "elementwise_sub",
                           "elementwise_mul", "elementwise_div"})
    for (const auto& [x, y] : operands)
      curves.push_back({type, {{"X", {x}}, {"Y", {y}}}, {}, 0.5, 2});
  // The pairs lie apart, so no step changes which operand is picked.
  for (const char* type :
       {"elementwise_max", "elementwise_min", "elementwise_fmax",
        "elementwise_fmin", "elementwise_pow"})
    for (const auto& [x, y] : operands)
      curves.push_back({type, {{"X", {x}}, {"Y", {y}}}, {}, 0.5, 2});
  curves.push_back({"elementwise_pow",
                    {{"X", {{2, 3, 2}}}, {"Y", {{3}}}},
                    {{"axis", int32_t{1}}},
                    0.5,
                    2});
  for (const bool trans : {false, true}) {
    const Shape x = trans ? Shape{3, 2} : Shape{2, 3};
    curves.push_back(
        {"matmul_v2", {{"X", {x}}, {"Y", {{3, 2}}}}, {{"trans_x", trans}}});
    curves.push_back({"matmul",
                      {{"X", {x}}, {"Y", {{3, 2}}}},
                      {{"transpose_X", trans}, {"alpha", 0.5f}}});
  }
  curves.push_back({"matmul_v2", {{"X", {{2, 2, 3}}}, {"Y", {{3, 2}}}}});
  curves.push_back({"mul",
                    {{"X", {{2, 1, 3}}}, {"Y", {{3, 2}}}},
                    {{"x_num_col_dims", int32_t{2}}}});
  curves.push_back({"bmm", {{"X", {{2, 2, 3}}}, {"Y", {{2, 3, 2}}}}});
  curves.push_back({"dot", {{"X", {{2, 3}}}, {"Y", {{2, 3}}}}});
  curves.push_back({"mv", {{"X", {{2, 3}}}, {"Vec", {{3}}}}});
  const Attribute pads = Ints{1, 0};
  curves.push_back({"conv2d",
                    {{"Input", {{1, 2, 3, 3}}}, {"Filter", {{2, 2, 2, 2}}}},
                    {{"paddings", pads}}});
  curves.push_back({"depthwise_conv2d",
                    {{"Input", {{1, 2, 3, 3}}}, {"Filter", {{2, 1, 2, 2}}}},
                    {{"groups", int32_t{2}}}});
  curves.push_back(
      {"conv3d",
       {{"Input", {{1, 1, 2, 3, 2}}}, {"Filter", {{2, 1, 2, 2, 1}}}}});
  curves.push_back({"conv2d_transpose",
                    {{"Input", {{1, 2, 2, 2}}}, {"Filter", {{2, 1, 2, 2}}}},
                    {{"strides", Attribute(Ints{2, 1})}}});
  return curves;
}

std::vector<Curve> Moves() {
  const std::pair<std::string, std::vector<Shape>> cube = {"X", {{2, 3, 2}}};
  std::vector<Curve> curves = {
      {"reshape2", {cube}, {{"shape", Ints{3, 4}}}},
      {"flatten_contiguous_range", {cube}},
      {"squeeze2", {{"X", {{2, 1, 3}}}}, {{"axes", Ints{1}}}},
      {"unsqueeze2", {cube}, {{"axes", Ints{1}}}},
      {"transpose2", {cube}, {{"axis", Ints{2, 0, 1}}}},
      {"concat", {{"X", {{2, 1}, {2, 3}}}}, {{"axis", int32_t{1}}}},
      {"expand", {{"X", {{2, 1}}}}, {{"expand_times", Ints{1, 3}}}},
      {"expand_v2", {{"X", {{2, 1}}}}, {{"shape", Ints{2, 3}}}},
      {"tile", {{"X", {{2, 2}}}}, {{"repeat_times", Ints{1, 2}}}},
      {"slice",
       {{"Input", {{3, 4}}}},
       {{"axes", Ints{1}}, {"starts", Ints{1}}, {"ends", Ints{3}}}},
      {"pad",
       {{"X", {{2, 2}}}},
       {{"paddings", Ints{0, 1, 2, 0}}, {"pad_value", 0.5f}}},
      {"pad3d",
       {{"X", {{1, 1, 2, 2, 2}}}},
       {{"paddings", Ints{1, 0, 0, 1, 1, 0}}, {"value", 0.5f}}},
      {"reduce_sum", {cube}, {{"dim", Ints{1}}}},
      {"reduce_mean", {cube}, {{"dim", Ints{0, 2}}}},
      {"mean", {cube}},
      {"cumsum", {{"X", {{2, 3}}}}, {{"axis", int32_t{1}}}},
      {"tril_triu", {{"X", {{3, 3}}}}},
      {"pool2d",
       {{"X", {{1, 1, 4, 4}}}},
       {{"ksize", Ints{2, 2}},
        {"strides", Ints{2, 2}},
        {"pooling_type", std::string("avg")}},
       -1,
       1,
       2}};
  curves.push_back({"gather", {{"X", {{4, 2}}}}});
  curves.back().constants["Index"] = MakeArray<int32_t>({3}, {2, 0, 2});
  curves.push_back({"lookup_table_v2", {{"W", {{4, 2}}}}});
  curves.back().constants["Ids"] = MakeArray<int64_t>({3}, {1, 3, 1});
  return curves;
}

// Statistics of the batch: two orders, as PaddlePaddle has them. Those of a
// row, which PaddlePaddle differentiates once: all.
std::vector<Curve> Norms() {
  const std::vector<std::pair<std::string, std::vector<Shape>>> inputs = {
      {"X", {{3, 2, 1, 2}}}, {"Scale", {{2}}}, {"Bias", {{2}}}};
  Curve batch{"batch_norm", inputs, {{"epsilon", 1e-3f}}, 0.3, 2, 2};
  batch.constants["Mean"] = MakeArray<double>({2}, {0, 0});
  batch.constants["Variance"] = MakeArray<double>({2}, {1, 1});
  Curve instance{"instance_norm", inputs, {{"epsilon", 1e-3f}}, 0.3, 2, 2};
  std::vector<Curve> norms = {batch, instance};
  for (const int32_t axis : {1, 2})
    for (const size_t given : {0, 1, 2}) {
      const Shape width = axis == 1 ? Shape{6} : Shape{2};
      Curve layer{"layer_norm",
                  {{"X", {{2, 3, 2}}}, {"Scale", {width}}, {"Bias", {width}}},
                  {{"epsilon", 1e-2f}, {"begin_norm_axis", axis}},
                  0.3,
                  2};
      layer.inputs.resize(1 + given);
      norms.push_back(layer);
    }
  return norms;
}

std::set<std::string> CheckAll(const std::vector<Curve>& curves) {
  std::set<std::string> differentiated;
  for (const Curve& curve : curves) {
    const absl::Status status = Orders(curve).Check(&differentiated);
    EXPECT_TRUE(status.ok()) << curve.type << ": " << status;
  }
  return differentiated;
}

TEST(HigherOrders, OfFunctions) { CheckAll(Functions()); }
TEST(HigherOrders, OfProducts) { CheckAll(Products()); }
TEST(HigherOrders, OfMoves) { CheckAll(Moves()); }
TEST(HigherOrders, OfNorms) { CheckAll(Norms()); }

// The types that paddle.base.core.has_non_empty_grad_op_maker or
// has_comp_grad_op_maker says yes to in PaddlePaddle 2.6.2.
TEST(HigherOrders, GoThroughEveryGradientThatPaddlePaddleDifferentiates) {
  std::vector<Curve> all = Functions();
  for (const auto& more : {Products(), Moves(), Norms()})
    all.insert(all.end(), more.begin(), more.end());
  const std::set<std::string> differentiated = CheckAll(all);
  for (const char* type : {"abs_grad",
                           "batch_norm_grad",
                           "celu_grad",
                           "clip_grad",
                           "concat_grad",
                           "conv2d_grad",
                           "conv2d_transpose_grad",
                           "conv3d_grad",
                           "cos_double_grad",
                           "cos_grad",
                           "depthwise_conv2d_grad",
                           "elementwise_add_grad",
                           "elementwise_add_grad_grad",
                           "elementwise_div_grad",
                           "elementwise_mul_grad",
                           "elementwise_mul_grad_grad",
                           "elementwise_sub_grad",
                           "elu_grad",
                           "expand_grad",
                           "expand_v2_grad",
                           "instance_norm_grad",
                           "leaky_relu_grad",
                           "log_grad",
                           "matmul_grad",
                           "matmul_v2_grad",
                           "matmul_v2_grad_grad",
                           "mul_grad",
                           "pad3d_grad",
                           "pad_grad",
                           "pool2d_grad",
                           "pow_double_grad",
                           "pow_grad",
                           "reduce_mean_grad",
                           "reduce_sum_grad",
                           "relu_grad",
                           "reshape2_grad",
                           "rsqrt_grad",
                           "sigmoid_grad",
                           "sigmoid_grad_grad",
                           "silu_grad",
                           "sin_double_grad",
                           "sin_grad",
                           "slice_grad",
                           "softplus_grad",
                           "sqrt_grad",
                           "square_grad",
                           "squeeze2_grad",
                           "tanh_grad",
                           "tanh_grad_grad",
                           "tile_grad",
                           "transpose2_grad",
                           "unsqueeze2_grad"})
    EXPECT_EQ(differentiated.count(type), 1u) << type;
}

struct Variables {
  ProgramDesc program;

  explicit Variables(const std::map<std::string, DType>& variables) {
    program.version = 2006000;
    program.blocks.emplace_back();
    for (const auto& [name, dtype] : variables) {
      VarDesc var;
      var.name = name;
      var.dtype = dtype;
      var.shape = {2};
      program.global().vars.push_back(std::move(var));
    }
  }
  void Append(const char* type, const char* slot, const std::string& x,
              const std::string& out) {
    OpDesc op;
    op.type = type;
    op.SetInput(slot, {x});
    op.SetOutput("Out", {out});
    BlockBuilder builder(&ReferenceRegistry(), &program);
    const absl::Status status = builder.Append(std::move(op));
    EXPECT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<Names> Differentiate(const std::string& target,
                                      const std::string& by) {
    BackwardOptions options;
    options.targets[target] = "";
    options.wrt = {by};
    return AppendBackward(ReferenceRegistry(), options, &program);
  }
};

// Derivatives that nobody has worked out are no zeros.
TEST(HigherOrders, StopAtGradientsWithoutOne) {
  Variables v({{"x", DType::kFloat64}});
  v.Append("digamma", "X", "x", "y");
  const auto once = v.Differentiate("y", "x");
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(v.Differentiate(once->at("x"), "x").status().message(),
            "op 'digamma_grad' has no gradient: no derivative of this order "
            "goes through it");
}

// For complex numbers the second gradient of exp has conjugates.
TEST(HigherOrders, OfComplexNumbersAreRefusedWhereTheyWouldBeWrong) {
  Variables v({{"x", DType::kComplex128}});
  v.Append("exp", "X", "x", "y");
  const auto once = v.Differentiate("y", "x");
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(v.Differentiate(once->at("x"), "x").status().message(),
            "op 'exp_grad' has no gradient for complex numbers");
}

TEST(HigherOrders, AreOfFloatingPointNumbers) {
  Variables v({{"x", DType::kFloat64}, {"n", DType::kInt64}});
  v.Append("tanh", "X", "x", "y");
  EXPECT_EQ(v.Differentiate("y", "n").status().message(),
            "variable to differentiate by 'n' is int64; expected "
            "floating-point numbers");
  EXPECT_EQ(v.Differentiate("n", "x").status().message(),
            "target 'n' is int64; expected floating-point numbers");
}

// y = x^3 at 2 along 5: 60; z does not depend on x.
TEST(Jvp, IsTheSlopeAlongATangent) {
  Variables v({{"x", DType::kFloat64},
               {"t", DType::kFloat64},
               {"other", DType::kFloat64}});
  v.Append("square", "X", "x", "s");
  OpDesc cube;
  cube.type = "elementwise_mul";
  cube.SetInput("X", {"s"});
  cube.SetInput("Y", {"x"});
  cube.SetOutput("Out", {"y"});
  BlockBuilder builder(&ReferenceRegistry(), &v.program);
  ASSERT_TRUE(builder.Append(std::move(cube)).ok());
  v.Append("tanh", "X", "other", "z");
  const auto made =
      AppendJvp(ReferenceRegistry(), {{"y", "z"}, {{"x", "t"}}}, &v.program);
  ASSERT_TRUE(made.ok()) << made.status();
  Session session(&ReferenceRegistry());
  const auto results = session.Run(v.program,
                                   {{"x", MakeArray<double>({2}, {2, -1})},
                                    {"t", MakeArray<double>({2}, {5, 0.5})},
                                    {"other", MakeArray<double>({2}, {1, 2})}},
                                   {made->at("y"), made->at("z")});
  ASSERT_TRUE(results.ok()) << results.status();
  const double* y = results->at(made->at("y")).data<double>();
  EXPECT_DOUBLE_EQ(y[0], 60);
  EXPECT_DOUBLE_EQ(y[1], 1.5);
  EXPECT_EQ(results->at(made->at("z")).data<double>()[0], 0);
}

}  // namespace test_higher_orders
}  // namespace pd
