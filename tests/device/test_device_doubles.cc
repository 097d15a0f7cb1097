// SPDX-License-Identifier: Apache-2.0
// Kernels of float64 on a device, each with its gradient, beside the reference
// on the CPU, which computes in float64 too and which PaddlePaddle's goldens
// have proved.
#include <cmath>
#include <map>

#include "libcore/autodiff/backward.h"
#include "libcore/program/block_builder.h"
#include "tests/device/device_plan.h"

namespace pd {
namespace test_device_doubles {

using Attrs = std::map<std::string, Attribute>;

// Doubles between `low` and `high` that no float holds.
Array Numbers(const Shape& shape, double low, double high, double phase = 0) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        low + (high - low) *
                  (0.5 + 0.5 * std::sin(1.7 * static_cast<double>(i) + phase));
  return MakeArray<double>(shape, values);
}

class DeviceDoubles : public DevicePlan {
 protected:
  // Begins anew.
  void Begin(const std::string& what) {
    program_ = ProgramDesc();
    program_.blocks.resize(1);
    feeds_.clear();
    states_.clear();
    what_ = what;
  }
  void Feed(const std::string& name, Array value) {
    Var(name, value.dtype, value.shape);
    feeds_[name] = std::move(value);
  }
  void State(const std::string& name, Array value) {
    Var(name, value.dtype, value.shape, true);
    states_[name] = std::move(value);
  }
  void Append(const std::string& type, SlotList inputs, SlotList outputs,
              Attrs attrs = {}) {
    OpDesc op;
    op.type = type;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.attrs = std::move(attrs);
    const absl::Status appended =
        BlockBuilder(&registry_, &program_).Append(std::move(op));
    ASSERT_TRUE(appended.ok()) << what_ << ": " << appended;
  }

  // The fetched values, and the states after the run.
  NamedArrays Run(bool on_gpu, const std::vector<std::string>& fetches) {
    NamedArrays values;
    Session session = on_gpu ? OnGpu() : OnCpu();
    for (const auto& [name, value] : states_) {
      EXPECT_TRUE(session.scope().Set(name, value).ok());
    }
    std::vector<FeedSpec> specs;
    for (const auto& [name, value] : feeds_)
      specs.push_back({name, value.dtype, value.shape});
    auto plan = session.Compile(program_, specs, fetches);
    EXPECT_TRUE(plan.ok()) << what_ << ": " << plan.status();
    if (!plan.ok()) return values;
    for (const StepInfo& step : (*plan)->steps()) {
      EXPECT_EQ(step.on_device, on_gpu)
          << what_ << ": " << step.op_type
          << (step.refusals.empty() ? "" : ": " + step.refusals[0]);
    }
    size_t i = 0;
    for (const auto& [name, value] : feeds_)
      (*plan)->SetFeed(i++, value.bytes.get());
    const absl::Status ran = (*plan)->Run({});
    EXPECT_TRUE(ran.ok()) << what_ << ": " << ran;
    for (i = 0; i < fetches.size(); ++i)
      values[fetches[i]] = ToArray((*plan)->fetch(i));
    for (const auto& [name, value] : states_)
      values[name] = *session.scope().Get(name);
    return values;
  }

  // The fetches, the gradients of the first by `wrt`, and the states.
  void ExpectLikeCpu(std::vector<std::string> fetches,
                     const std::vector<std::string>& wrt = {}) {
    if (!wrt.empty()) {
      const VarDesc* var = program_.FindVar(0, fetches[0]);
      Feed("cotangent", Numbers(var->shape, -2, 2, 0.3));
      BackwardOptions options;
      options.targets[fetches[0]] = "cotangent";
      options.wrt = wrt;
      const auto made = AppendBackward(registry_, options, &program_);
      ASSERT_TRUE(made.ok()) << what_ << ": " << made.status();
      for (const std::string& name : wrt) fetches.push_back(made->at(name));
    }
    const NamedArrays want = Run(false, fetches), got = Run(true, fetches);
    for (const auto& [name, array] : want) {
      ASSERT_EQ(got.count(name), 1u) << what_;
      ExpectClose(name, got.at(name), array);
    }
  }

 private:
  void ExpectClose(const std::string& name, const Array& got,
                   const Array& want) {
    ASSERT_EQ(got.shape, want.shape) << what_ << " " << name;
    ASSERT_EQ(got.dtype, want.dtype) << what_ << " " << name;
    if (want.dtype != DType::kFloat64) {
      EXPECT_EQ(
          std::memcmp(got.bytes.get(), want.bytes.get(), want.size_bytes()), 0)
          << what_ << " " << name;
      return;
    }
    const double *a = got.data<double>(), *b = want.data<double>();
    double largest = 0;
    for (int64_t i = 0; i < want.size(); ++i)
      largest = std::max(largest, std::fabs(b[i]));
    for (int64_t i = 0; i < want.size(); ++i)
      ASSERT_LE(std::fabs(a[i] - b[i]), 1e-13 * (1 + largest))
          << what_ << " " << name << "[" << i << "]: " << a[i] << ", the CPU "
          << b[i];
  }

  std::string what_;
  NamedArrays feeds_, states_;
};

// clang-format off
const char* const kFunctionsOfOne[] = {
    "relu", "sigmoid", "tanh", "silu", "swish", "gelu", "elu", "relu6",
    "leaky_relu", "hard_sigmoid", "hard_swish", "softplus", "softsign", "exp",
    "log", "sqrt", "rsqrt", "square", "abs", "reciprocal", "clip", "sin", "cos",
    "erf", "log1p", "pow", "mish", "celu", "selu", "brelu", "thresholded_relu",
    "hard_shrink", "softshrink", "logsigmoid", "tanh_shrink", "expm1", "log2",
    "log10", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
    "atanh", "stanh", "soft_relu", "logit", "trunc", "scale", "sign", "floor",
    "ceil", "round", "label_smooth",
};
// clang-format on

TEST_F(DeviceDoubles, FunctionsOfOne) {
  std::map<std::string, std::pair<double, double>> ranges;
  for (const char* type :
       {"log", "sqrt", "rsqrt", "log1p", "pow", "reciprocal", "log2", "log10"})
    ranges[type] = {0.1, 4};
  for (const char* type : {"asin", "acos", "atanh", "tan"})
    ranges[type] = {-0.9, 0.9};
  ranges["logit"] = {-0.1, 1.1};
  ranges["acosh"] = {1.1, 4};
  const std::map<std::string, Attrs> attrs = {
      {"clip", {{"min", -0.3f}, {"max", 0.7f}}},
      {"pow", {{"factor", 2.5f}}},
      {"scale", {{"scale", 0.3f}, {"bias", 0.1f}}},
      {"elu", {{"alpha", 0.7f}}},
      {"celu", {{"alpha", 0.7f}}},
      {"label_smooth", {{"epsilon", 0.1f}}}};
  for (const std::string type : kFunctionsOfOne) {
    Begin(type);
    const bool steps = type == "sign" || type == "floor" || type == "ceil" ||
                       type == "round" || type == "trunc";
    const auto range = ranges.find(type);
    Feed("x", range == ranges.end() ? Numbers({5, 70}, -4, 4)
                                    : Numbers({5, 70}, range->second.first,
                                              range->second.second));
    const auto found = attrs.find(type);
    Append(type, {{"X", {"x"}}}, {{"Out", {"out"}}},
           found == attrs.end() ? Attrs() : found->second);
    ExpectLikeCpu({"out"}, steps ? std::vector<std::string>()
                                 : std::vector<std::string>{"x"});
  }
  for (const std::string type : {"gelu", "scale"}) {
    Begin(type + " otherwise");
    Feed("x", Numbers({5, 70}, -4, 4));
    Append(type, {{"X", {"x"}}}, {{"Out", {"out"}}},
           type == "gelu" ? Attrs{{"approximate", true}}
                          : Attrs{{"scale", 0.3f},
                                  {"bias", 0.1f},
                                  {"bias_after_scale", false}});
    ExpectLikeCpu({"out"}, {"x"});
  }
}

TEST_F(DeviceDoubles, FunctionsOfTwo) {
  // The sums of gradients are of few elements, or of many.
  const std::pair<Shape, Shape> shapes[] = {{{3, 4}, {3, 4}},
                                            {{3, 4}, {1, 4}},
                                            {{1, 4}, {3, 4}},
                                            {{4, 5, 300}, {4, 1, 1}},
                                            {{4, 1, 1}, {4, 5, 300}}};
  for (const std::string type :
       {"add", "sub", "mul", "div", "max", "min", "pow"})
    for (const auto& [x, y] : shapes) {
      Begin(type + " of " + ToString(x) + " and " + ToString(y));
      Feed("x", Numbers(x, 0.2, 3));
      Feed("y", Numbers(y, 0.3, 2.9, 0.7));
      Append("elementwise_" + type, {{"X", {"x"}}, {"Y", {"y"}}},
             {{"Out", {"out"}}});
      ExpectLikeCpu({"out"}, {"x", "y"});
    }
  for (const std::string type :
       {"equal", "not_equal", "less_than", "less_equal", "greater_than",
        "greater_equal"}) {
    Begin(type);
    Feed("x", Numbers({6, 4}, 0, 1));
    // Values that differ do so in bits that a float does not have.
    Array y = Numbers({6, 4}, 0, 1);
    auto* values = const_cast<double*>(y.data<double>());
    for (int i = 0; i < 8; ++i) values[i] += i % 2 == 0 ? 1e-12 : -1e-12;
    Feed("y", y);
    Append(type, {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"out"}}});
    ExpectLikeCpu({"out"});
  }
  Begin("sum");
  for (const std::string name : {"a", "b", "c"})
    Feed(name, Numbers({3, 5}, -1, 1, name[0]));
  Append("sum", {{"X", {"a", "b", "c"}}}, {{"Out", {"out"}}});
  ExpectLikeCpu({"out"});
}

TEST_F(DeviceDoubles, Reductions) {
  for (const std::string type :
       {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"})
    for (const int32_t dim : {0, 1}) {  // a thread for each, a block for each
      Begin(type);
      Feed("x", Numbers({6, 77}, -1, 1));
      Append(type, {{"X", {"x"}}}, {{"Out", {"out"}}},
             {{"dim", std::vector<int32_t>{dim}}});
      ExpectLikeCpu({"out"}, {"x"});
    }
  Array some = Numbers({6, 77}, -1, 1);
  Array zeros = Numbers({6, 77}, -1, 1);
  const_cast<double*>(zeros.data<double>())[80] = 0;
  for (const int32_t dim : {0, 1}) {
    const std::vector<int32_t> axes = {dim};
    const auto follow = [&](const std::string& type, const Array& x,
                            const Attrs& attrs) {
      Begin(type);
      Feed("x", x);
      Append(type, {{"X", {"x"}}}, {{"Out", {"out"}}}, attrs);
      ExpectLikeCpu({"out"}, {"x"});
    };
    for (const char* type : {"reduce_amax", "reduce_amin", "frobenius_norm"})
      follow(type, some, {{"dim", axes}});
    // Products of many numbers are small beside 1.
    follow("reduce_prod", Numbers({6, 77}, 0.9, 1.2), {{"dim", axes}});
    follow("reduce_prod", zeros, {{"dim", axes}});
    follow("logsumexp", some, {{"axis", axes}});
    for (const float order : {0.0f, 1.0f, 2.0f, 2.5f, HUGE_VALF, -HUGE_VALF})
      follow("p_norm", order == 0 ? zeros : some,
             {{"axis", dim}, {"porder", order}});
  }
  Begin("expand_v2");
  Feed("x", Numbers({1, 5}, -1, 1));
  Append("expand_v2", {{"X", {"x"}}}, {{"Out", {"out"}}},
         {{"shape", std::vector<int32_t>{4, 5}}});
  ExpectLikeCpu({"out"}, {"x"});
  Begin("squared_l2_norm");
  Feed("x", Numbers({9, 1000}, -1, 1));
  Append("squared_l2_norm", {{"X", {"x"}}}, {{"Out", {"out"}}});
  ExpectLikeCpu({"out"});
}

TEST_F(DeviceDoubles, Lines) {
  for (const std::string type : {"softmax", "log_softmax"})
    for (const int32_t axis : {0, 1}) {
      Begin(type);
      Feed("x", Numbers({6, 77}, -3, 3));
      Append(type, {{"X", {"x"}}}, {{"Out", {"out"}}}, {{"axis", axis}});
      ExpectLikeCpu({"out"}, {"x"});
    }
  for (const bool soft : {false, true}) {
    Begin("softmax_with_cross_entropy");
    Feed("x", Numbers({4, 7}, -3, 3));
    Feed("label", soft ? Numbers({4, 7}, 0, 1)
                       : MakeArray<int64_t>({4, 1}, {3, 0, 6, 2}));
    Append(
        "softmax_with_cross_entropy", {{"Logits", {"x"}}, {"Label", {"label"}}},
        {{"Loss", {"loss"}}, {"Softmax", {"softmax"}}}, {{"soft_label", soft}});
    ExpectLikeCpu({"loss", "softmax"}, {"x"});
  }
  Begin("layer_norm");
  Feed("x", Numbers({6, 77}, -3, 3));
  Feed("scale", Numbers({77}, 0.5, 2));
  Feed("bias", Numbers({77}, -1, 1));
  Append("layer_norm", {{"X", {"x"}}, {"Scale", {"scale"}}, {"Bias", {"bias"}}},
         {{"Y", {"y"}}, {"Mean", {"mean"}}, {"Variance", {"variance"}}},
         {{"begin_norm_axis", int32_t{1}}});
  ExpectLikeCpu({"y", "mean", "variance"}, {"x", "scale", "bias"});
}

TEST_F(DeviceDoubles, BatchNorm) {
  for (const bool is_test : {false, true})
    for (const std::string layout : {"NCHW", "NHWC"}) {
      Begin("batch_norm of " + layout);
      Feed("x", Numbers({2, 3, 4, 3}, -3, 3));
      Feed("scale", Numbers({3}, 0.5, 2));
      Feed("bias", Numbers({3}, -1, 1));
      State("mean", Numbers({3}, -1, 1, 1));
      State("variance", Numbers({3}, 0.5, 2, 1));
      Append("batch_norm",
             {{"X", {"x"}},
              {"Scale", {"scale"}},
              {"Bias", {"bias"}},
              {"Mean", {"mean"}},
              {"Variance", {"variance"}}},
             {{"Y", {"y"}},
              {"MeanOut", {"mean"}},
              {"VarianceOut", {"variance"}},
              {"SavedMean", {"saved_mean"}},
              {"SavedVariance", {"saved_variance"}}},
             {{"data_layout", layout}, {"is_test", is_test}});
      ExpectLikeCpu({"y"},
                    is_test ? std::vector<std::string>()
                            : std::vector<std::string>{"x", "scale", "bias"});
    }
}

TEST_F(DeviceDoubles, Pooling) {
  for (const std::string kind : {"max", "avg"})
    for (const bool cube : {false, true}) {
      Begin(kind + (cube ? " of cubes" : " of squares"));
      const size_t axes = cube ? 3 : 2;
      Shape shape(axes + 2, 5);
      shape[0] = 2;
      Feed("x", Numbers(shape, -1, 1));
      Append(cube ? "pool3d" : "pool2d", {{"X", {"x"}}}, {{"Out", {"out"}}},
             {{"pooling_type", kind},
              {"ksize", std::vector<int32_t>(axes, 3)},
              {"strides", std::vector<int32_t>(axes, 2)},
              {"paddings", std::vector<int32_t>(axes, 1)}});
      ExpectLikeCpu({"out"}, {"x"});
    }
  Begin("max_pool2d_with_index");
  Feed("x", Numbers({2, 3, 6, 6}, -1, 1));
  Append("max_pool2d_with_index", {{"X", {"x"}}},
         {{"Out", {"out"}}, {"Mask", {"mask"}}},
         {{"ksize", std::vector<int32_t>{2, 2}},
          {"strides", std::vector<int32_t>{2, 2}}});
  ExpectLikeCpu({"out", "mask"});
}

TEST_F(DeviceDoubles, Rows) {
  for (const std::string type : {"lookup_table_v2", "gather", "index_select"}) {
    Begin(type);
    const bool lookup = type == "lookup_table_v2";
    Feed("x", Numbers({6, 5}, -1, 1));
    Feed("ids", MakeArray<int64_t>({4}, {3, 0, 3, 5}));
    Append(type,
           {{lookup ? "W" : "X", {"x"}}, {lookup ? "Ids" : "Index", {"ids"}}},
           {{"Out", {"out"}}});
    ExpectLikeCpu({"out"}, {"x"});
  }
  for (const bool is_test : {false, true}) {
    Begin("dropout");
    Feed("x", Numbers({6, 50}, -1, 1));
    Append(
        "dropout", {{"X", {"x"}}}, {{"Out", {"out"}}, {"Mask", {"mask"}}},
        {{"is_test", is_test},
         {"dropout_prob", 0.3f},
         {"dropout_implementation",
          std::string(is_test ? "downgrade_in_infer" : "upscale_in_train")}});
    ExpectLikeCpu({"out"}, is_test ? std::vector<std::string>()
                                   : std::vector<std::string>{"x"});
  }
}

TEST_F(DeviceDoubles, Losses) {
  struct Loss {
    std::string type, x, y, out;
    Attrs attrs;
  };
  const Loss losses[] = {
      {"sigmoid_cross_entropy_with_logits", "X", "Label", "Out", {}},
      {"bce_loss", "X", "Label", "Out", {}},
      {"log_loss", "Predicted", "Labels", "Loss", {{"epsilon", 1e-4f}}},
      {"hinge_loss", "Logits", "Labels", "Loss", {}},
      {"huber_loss", "X", "Y", "Out", {{"delta", 0.2f}}},
      {"kldiv_loss",
       "X",
       "Target",
       "Loss",
       {{"reduction", std::string("none")}}},
      {"kldiv_loss",
       "X",
       "Target",
       "Loss",
       {{"reduction", std::string("mean")}}},
  };
  for (const Loss& loss : losses) {
    Begin(loss.type);
    Feed("x", Numbers({40, 1}, 0.05, 0.95));
    Feed("y", Numbers({40, 1}, 0.1, 0.9, 2));
    SlotList outputs = {{loss.out, {"loss"}}};
    if (loss.type == "huber_loss") outputs.push_back({"Residual", {"rest"}});
    Append(loss.type, {{loss.x, {"x"}}, {loss.y, {"y"}}}, outputs, loss.attrs);
    ExpectLikeCpu({"loss"}, {"x"});
  }
}

TEST_F(DeviceDoubles, Updates) {
  struct Update {
    std::string type;
    std::vector<std::pair<std::string, std::string>> moments;
    int powers;
    Attrs attrs;
  };
  const Update updates[] = {
      {"sgd", {}, 0, {}},
      {"momentum",
       {{"Velocity", "VelocityOut"}},
       0,
       {{"mu", 0.9f},
        {"use_nesterov", true},
        {"regularization_method", std::string("l2_decay")},
        {"regularization_coeff", 0.1f}}},
      {"adam", {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}, 2, {}},
      {"adamw",
       {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
       2,
       {{"with_decay", true}, {"coeff", 0.1f}, {"lr_ratio", 0.7f}}},
      {"rmsprop",
       {{"MeanSquare", "MeanSquareOut"},
        {"Moment", "MomentOut"},
        {"MeanGrad", "MeanGradOut"}},
       0,
       {{"centered", true}, {"epsilon", 0.9f}, {"momentum", 0.3f}}},
      {"adagrad", {{"Moment", "MomentOut"}}, 0, {}},
      {"decayed_adagrad", {{"Moment", "MomentOut"}}, 0, {}},
      {"adadelta",
       {{"AvgSquaredGrad", "AvgSquaredGradOut"},
        {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}},
       0,
       {}},
      {"adamax", {{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}}, 1, {}},
      {"ftrl",
       {{"SquaredAccumulator", "SquaredAccumOut"},
        {"LinearAccumulator", "LinearAccumOut"}},
       0,
       {{"l1", 0.1f}, {"l2", 0.2f}}},
      {"proximal_gd", {}, 0, {{"l1", 0.1f}, {"l2", 0.2f}}},
  };
  for (const Update& update : updates)
    for (const bool float_rate : {false, true}) {
      Begin(update.type);
      State("w", Numbers({9, 7}, -1, 1));
      State("rate", float_rate ? MakeArray<float>({1}, {0.1f})
                               : MakeArray<double>({1}, {0.1}));
      Feed("g", Numbers({9, 7}, -1, 1, 1));
      SlotList inputs = {
          {"Param", {"w"}}, {"Grad", {"g"}}, {"LearningRate", {"rate"}}};
      SlotList outputs = {{"ParamOut", {"w"}}};
      for (const auto& [in, out] : update.moments) {
        State(in, Numbers({9, 7}, 0.1, 0.5, 2));
        inputs.push_back({in, {in}});
        outputs.push_back({out, {in}});
      }
      for (int k = 1; k <= update.powers; ++k) {
        const std::string power = "Beta" + std::to_string(k) + "Pow";
        State(power, MakeArray<double>({1}, {k == 1 ? 0.81 : 0.998}));
        inputs.push_back({power, {power}});
        if (update.powers == 2) outputs.push_back({power + "Out", {power}});
      }
      Append(update.type, inputs, outputs, update.attrs);
      ExpectLikeCpu({});
    }
}

}  // namespace test_device_doubles
}  // namespace pd
