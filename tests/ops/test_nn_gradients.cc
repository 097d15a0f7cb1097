// SPDX-License-Identifier: Apache-2.0
// Gradients of the network ops against finite differences, in the forms where
// PaddlePaddle's own are wrong or missing on a CPU, and second gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "libcore/autodiff/backward.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/ops/registry.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/op_test.h"

namespace pd {
namespace test_nn_gradients {

using Ints = std::vector<int32_t>;

Array Doubles(const Shape& shape, const std::string& name, double low = -1,
              double high = 1) {
  RandomStream random(11, StreamOf(name));
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& v : values) v = low + (high - low) * random.Uniform();
  return MakeArray(shape, values);
}

class NnGradients : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  void Check(const GradientCase& check, double tolerance = 1e-6) {
    const absl::Status status = CheckGradients(registry_, check, tolerance);
    EXPECT_TRUE(status.ok()) << check.type << ": " << status;
  }

  // A normalisation with its gradient op behind it: Y's cotangent is fed, and
  // sum(dX * c + dScale * d + dBias * e) is differentiated by X, Scale and
  // Y's cotangent.
  void CheckSecond(const std::string& type, const NamedArrays& statistics,
                   const std::map<std::string, Attribute>& attrs);

  OpRegistry registry_;
};

// f of the feeds, and its gradients by them.
struct Function {
  Session session;
  ProgramDesc program;
  NamedArrays feed;

  double At(const std::vector<std::string>& outputs) {
    const auto results = session.Run(program, feed, outputs);
    EXPECT_TRUE(results.ok()) << results.status();
    double sum = 0;
    for (const std::string& out : outputs) {
      const Array& value = results->at(out);
      const Array& by = feed.at(out + "_ct");
      for (int64_t i = 0; i < NumElements(value.shape); ++i)
        sum += value.data<double>()[i] * by.data<double>()[i];
    }
    return sum;
  }
};

void NnGradients::CheckSecond(const std::string& type,
                              const NamedArrays& statistics,
                              const std::map<std::string, Attribute>& attrs) {
  Function f{Session(&registry_), {}, statistics};
  const Shape shape = {3, 2, 2};
  f.feed["x"] = Doubles(shape, "x");
  f.feed["dy"] = Doubles(shape, "dy");
  f.feed["dx_ct"] = Doubles(shape, "dx_ct");
  f.feed["scale"] = Doubles({2}, "scale", 0.5, 1.5);
  for (const char* name : {"bias", "dscale_ct", "dbias_ct"})
    f.feed[name] = Doubles({2}, name);
  f.program.blocks.emplace_back();
  BlockBuilder builder(&registry_, &f.program);
  for (const auto& [name, array] : f.feed) {
    VarDesc var;
    var.name = name;
    var.dtype = array.dtype;
    var.shape = array.shape;
    var.stop_gradient = false;
    builder.AddVar(var);
  }
  OpDesc forward, backward;
  forward.type = type;
  backward.type = type + "_grad";
  forward.attrs = backward.attrs = attrs;
  for (OpDesc* op : {&forward, &backward}) {
    op->SetInput("X", {"x"});
    op->SetInput("Scale", {"scale"});
    op->SetInput("Bias", {"bias"});
    for (const auto& [name, array] : statistics) op->SetInput(name, {name});
  }
  forward.SetOutput("Y", {"y"});
  for (const char* slot : {"MeanOut", "VarianceOut"})
    if (!statistics.empty()) forward.SetOutput(slot, {slot});
  for (const char* slot : {"SavedMean", "SavedVariance"}) {
    forward.SetOutput(slot, {slot});
    backward.SetInput(slot, {slot});
  }
  backward.SetInput("Y@GRAD", {"dy"});
  backward.SetOutput("X@GRAD", {"dx"});
  backward.SetOutput("Scale@GRAD", {"dscale"});
  backward.SetOutput("Bias@GRAD", {"dbias"});
  ASSERT_TRUE(builder.Append(forward).ok());
  ASSERT_TRUE(builder.Append(backward).ok());

  const std::vector<std::string> outputs = {"dx", "dscale", "dbias"};
  const std::vector<std::string> inputs = {"x", "scale", "dy"};
  ProgramDesc with_gradients = f.program;
  BackwardOptions options;
  for (const std::string& out : outputs) options.targets[out] = out + "_ct";
  options.wrt = inputs;
  const auto grads = AppendBackward(registry_, options, &with_gradients);
  ASSERT_TRUE(grads.ok()) << grads.status();
  std::vector<std::string> names;
  for (const std::string& input : inputs) names.push_back(grads->at(input));
  const auto ours = f.session.Run(with_gradients, f.feed, names);
  ASSERT_TRUE(ours.ok()) << ours.status();
  for (size_t k = 0; k < inputs.size(); ++k) {
    Array& input = f.feed.at(inputs[k]);
    const double* data = input.data<double>();
    const std::vector<double> values(data, data + NumElements(input.shape));
    const auto moved = [&](size_t i, double by) {
      std::vector<double> other = values;
      other[i] += by;
      input = MakeArray(input.shape, other);
      return f.At(outputs);
    };
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(ours->at(names[k]).data<double>()[i],
                  (moved(i, kStep) - moved(i, -kStep)) / (2 * kStep), 1e-5)
          << type << " by " << inputs[k] << " at " << i;
    input = MakeArray(input.shape, values);
  }
}

TEST_F(NnGradients, SecondOfNorms) {
  CheckSecond("instance_norm", {}, {{"epsilon", 1e-3f}});
  const NamedArrays statistics = {{"Mean", Doubles({2}, "Mean")},
                                  {"Variance", Doubles({2}, "V", 0.5, 1.5)}};
  for (const char* layout : {"NCHW", "NHWC"})
    for (bool global : {false, true})
      CheckSecond(
          "batch_norm", statistics,
          {{"use_global_stats", global}, {"data_layout", std::string(layout)}});
}

TEST_F(NnGradients, SecondOfConvolutionsAndAverages) {
  struct Form {
    const char* type;
    Shape input, filter, output;
    std::map<std::string, Attribute> attrs;
  };
  const std::vector<Form> forms = {
      {"conv2d_grad",
       {2, 4, 5, 4},
       {6, 2, 3, 2},
       {2, 6, 3, 3},
       {{"groups", int32_t{2}},
        {"strides", Ints{2, 1}},
        {"paddings", Ints{1, 0}}}},
      {"depthwise_conv2d_grad",
       {1, 3, 4, 4},
       {3, 1, 2, 2},
       {1, 3, 3, 3},
       {{"groups", int32_t{3}}}},
      {"conv3d_grad", {1, 2, 3, 4, 3}, {2, 2, 2, 2, 2}, {1, 2, 2, 3, 2}, {}}};
  for (const Form& form : forms)
    for (const char* output : {"Input@GRAD", "Filter@GRAD"}) {
      GradientCase check{form.type,
                         {{"Input", {form.input}},
                          {"Filter", {form.filter}},
                          {"Output@GRAD", {form.output}}},
                         form.attrs};
      check.output = output;
      Check(check);
    }
  GradientCase pool{"pool2d_grad",
                    {{"Out@GRAD", {{2, 2, 3, 2}}}},
                    {{"pooling_type", std::string("avg")},
                     {"ksize", Ints{3, 2}},
                     {"strides", Ints{2, 2}},
                     {"paddings", Ints{1, 0}}}};
  pool.constants = {{"X", Doubles({2, 2, 5, 4}, "X")}};
  pool.output = "X@GRAD";
  Check(pool);
}

// PaddlePaddle's CPU kernels give other numbers for these.
TEST_F(NnGradients, WherePaddlePaddleIsWrong) {
  GradientCase deformable{"deformable_conv",
                          {{"Input", {{2, 4, 4, 4}}},
                           {"Offset", {{2, 16, 3, 3}}},
                           {"Mask", {{2, 8, 3, 3}}},
                           {"Filter", {{2, 2, 2, 2}}}},
                          {{"groups", int32_t{2}},
                           {"deformable_groups", int32_t{2}},
                           {"im2col_step", int32_t{2}}}};
  deformable.output = "Output";
  deformable.low = 0.1;  // away from whole positions
  deformable.high = 0.9;
  Check(deformable);
}

TEST_F(NnGradients, WithoutKernelsOnACpu) {
  GradientCase norm{"sync_batch_norm",
                    {{"X", {{3, 2, 4}}}, {"Scale", {{2}}}, {"Bias", {{2}}}}};
  norm.constants = {{"Mean", Doubles({2}, "Mean")},
                    {"Variance", Doubles({2}, "Variance", 0.5, 1)}};
  norm.output = "Y";
  Check(norm);
  Check({"fused_softmax_mask_upper_triangle", {{"X", {{2, 1, 4, 4}}}}});
}

// Two heads; a row without places, a place behind the last row.
TEST_F(NnGradients, SparseAttention) {
  GradientCase check;
  check.type = "sparse_attention";
  for (const char* slot : {"Q", "K", "V"})
    check.inputs.push_back({slot, {{1, 2, 3, 2}}});
  check.constants = {
      {"Offset", MakeArray<int32_t>({1, 2, 4}, {0, 2, 3, 5, 0, 3, 3, 4})},
      {"Columns",
       MakeArray<int32_t>({1, 2, 5}, {0, 2, 1, 0, 1, 2, 0, 1, 2, 0})}};
  Check(check);
  check.constants["KeyPaddingMask"] = MakeArray<double>({1, 3}, {1, 0, 1});
  check.constants["AttnMask"] =
      MakeArray<double>({3, 3}, {1, 1, 0, 1, 1, 1, 0, 1, 1});
  Check(check);
}

}  // namespace test_nn_gradients
}  // namespace pd
