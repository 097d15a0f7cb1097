// SPDX-License-Identifier: Apache-2.0
// Normalizations.
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

// [C] -> [C, 1, 1, ...], to broadcast over x of this rank.
std::string ByChannel(OnnxNode* node, const std::string& v, int64_t rank) {
  Ints shape(static_cast<size_t>(std::max<int64_t>(1, rank - 1)), 1);
  shape[0] = -1;
  return node->Reshape(v, shape);
}

// (x - mean) / sqrt(variance + epsilon) over `axes`.
struct Moments {
  std::string mean, variance, normal, inverse;
};

Moments Normalize(OnnxNode* node, const std::string& x, const Ints& axes,
                  double epsilon) {
  Moments m;
  m.mean = node->Reduce("reduce_mean", x, axes, true);
  const std::string off = node->Sub(x, m.mean);
  m.variance = node->Reduce("reduce_mean", node->Mul(off, off), axes, true);
  m.inverse = node->Unary(
      "reciprocal", node->Unary("sqrt", node->Affine(m.variance, 1, epsilon)));
  m.normal = node->Mul(off, m.inverse);
  return m;
}

void TrainingBatchNorm(OnnxNode* node, const std::string& x, float epsilon) {
  const int64_t rank = node->Rank(x);
  Ints axes = {0};
  for (int64_t i = 2; i < rank; ++i) axes.push_back(i);
  const Moments m = Normalize(node, x, axes, epsilon);
  node->Give(0,
             node->Add(node->Mul(m.normal, ByChannel(node, node->In(1), rank)),
                       ByChannel(node, node->In(2), rank)));
  const double keep = node->Float("momentum", 0.9f);
  for (size_t i : {1, 2}) {
    const std::string now = node->Reshape(i == 1 ? m.mean : m.variance, {-1});
    node->Give(i, node->Add(node->Affine(node->In(i + 2), keep, 0),
                            node->Affine(now, 1 - keep, 0)));
  }
}

// The names of a batch norm's inputs.
struct NormInputs {
  std::string x, scale, bias, mean, variance;
};

void GiveBatchNorm(OnnxNode* node, const NormInputs& in, float epsilon) {
  OnnxImporter& importer = node->importer();
  OpDesc op;
  op.type = "batch_norm";
  op.SetInput("X", {in.x});
  op.SetInput("Scale", {in.scale});
  op.SetInput("Bias", {in.bias});
  op.SetInput("Mean", {in.mean});
  op.SetInput("Variance", {in.variance});
  // PaddlePaddle wants the statistics to be written where they are read.
  const auto kept = [&](const std::string& v) {
    return importer.ParamOf(v) != nullptr ? v : importer.NewVariable();
  };
  const std::string y = importer.NewVariable();
  op.SetOutput("Y", {y});
  op.SetOutput("MeanOut", {kept(in.mean)});
  op.SetOutput("VarianceOut", {kept(in.variance)});
  op.SetOutput("SavedMean", {importer.NewVariable()});
  op.SetOutput("SavedVariance", {importer.NewVariable()});
  op.attrs = {{"epsilon", epsilon},
              {"is_test", true},
              {"momentum", node->Float("momentum", 0.9f)}};
  if (!node->ok()) return;
  node->Fail(importer.builder().Append(std::move(op)));
  node->Give(0, y);
}

void ImportBatchNorm(OnnxNode* node) {
  const std::string x = node->In(0);
  const float epsilon = node->Float("epsilon", 1e-5f);
  if (node->Int("training_mode", 0) != 0)
    return TrainingBatchNorm(node, x, epsilon);
  if (node->opset() < 9 && node->Int("spatial", 1) == 0)
    return node->Fail(Unimplemented("batch norm of each place by itself"));
  GiveBatchNorm(node, {x, node->In(1), node->In(2), node->In(3), node->In(4)},
                epsilon);
}

// x m + s by channel: the batch norm of Keras, which has put the statistics
// into m and s. As an op it goes into the convolution before it.
void ImportScaledByChannel(OnnxNode* node) {
  const std::string x = node->In(0), m = node->In(1), s = node->In(2);
  const Shape shape = node->ShapeOf(x);
  if (!node->ok()) return;
  const auto fits = [&](const std::string& v) {
    return node->importer().ParamOf(v) != nullptr && shape.size() == 4 &&
           node->ShapeOf(v) == Shape{shape[1]} &&
           node->TypeOf(v) == DType::kFloat32;
  };
  if (fits(m) && fits(s))
    return GiveBatchNorm(node,
                         {x, m, s, node->FullLike(m, 0, DType::kFloat32),
                          node->FullLike(m, 1, DType::kFloat32)},
                         0);
  const auto rank = static_cast<int64_t>(shape.size());
  node->Give(0, node->Add(node->Mul(x, ByChannel(node, m, rank)),
                          ByChannel(node, s, rank)));
}

void ImportInstanceNorm(OnnxNode* node) {
  node->Give(0, node->Emit("instance_norm",
                           {{"X", {node->In(0)}},
                            {"Scale", {node->In(1)}},
                            {"Bias", {node->In(2)}}},
                           {{"epsilon", node->Float("epsilon", 1e-5f)}}, "Y"));
}

void ImportLayerNorm(OnnxNode* node) {
  const std::string x = node->In(0), scale = node->In(1);
  const int64_t rank = node->Rank(x);
  const int64_t axis = node->Axis(node->Int("axis", -1), rank);
  const float epsilon = node->Float("epsilon", 1e-5f);
  const Shape shape = node->ShapeOf(x);
  if (!node->ok()) return;
  const Shape part(shape.begin() + axis, shape.end());
  const bool plain = !node->Wants(1) && !node->Wants(2) && !IsDynamic(part) &&
                     node->ShapeOf(scale) == part;
  if (plain) {
    OnnxNode::Slots inputs = {{"X", {x}},
                              {"Scale", {node->Reshape(scale, {-1})}}};
    if (node->Has(2))
      inputs.push_back({"Bias", {node->Reshape(node->In(2), {-1})}});
    return node->Give(
        0, node->Emit("layer_norm", inputs,
                      {{"epsilon", epsilon},
                       {"begin_norm_axis", static_cast<int32_t>(axis)}},
                      "Y"));
  }
  Ints axes(static_cast<size_t>(rank - axis));
  std::iota(axes.begin(), axes.end(), axis);
  const Moments m = Normalize(node, x, axes, epsilon);
  std::string y = node->Mul(m.normal, scale);
  if (node->Has(2)) y = node->Add(y, node->In(2));
  node->Give(0, y);
  node->Give(1, m.mean);
  node->Give(2, m.inverse);
}

// Scale and bias: one a channel from opset 21 on, one a group before.
void ImportGroupNorm(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t groups = node->Int("num_groups", 1);
  const int64_t channels = node->Extent(x, 1);
  if (!node->ok()) return;
  if (groups < 1 || channels < 0 || channels % groups != 0)
    return node->Fail(
        InvalidArgument("%d channels in %d groups", channels, groups));
  const auto by_channel = [&](size_t i) {
    const std::string v = node->In(i);
    if (node->opset() >= 21 || channels == groups) return v;
    return node->Reshape(
        node->Expand(node->Unsqueeze(v, {1}), {groups, channels / groups}),
        {-1});
  };
  node->Give(0, node->Emit("group_norm",
                           {{"X", {x}},
                            {"Scale", {by_channel(1)}},
                            {"Bias", {by_channel(2)}}},
                           {{"epsilon", node->Float("epsilon", 1e-5f)},
                            {"groups", static_cast<int32_t>(groups)}},
                           "Y"));
}

// PaddlePaddle does not divide alpha by the number of channels.
void ImportLrn(OnnxNode* node) {
  const int64_t size = node->Int("size", 0);
  if (size < 1 || size > 65536)
    return node->Fail(InvalidArgument("size is %d", size));
  const float alpha = node->Float("alpha", 1e-4f) / static_cast<float>(size);
  node->Give(0, node->Emit("lrn", {{"X", {node->In(0)}}},
                           {{"n", static_cast<int32_t>(size)},
                            {"alpha", alpha},
                            {"beta", node->Float("beta", 0.75f)},
                            {"k", node->Float("bias", 1.0f)}}));
}

void ImportMeanVariance(OnnxNode* node) {
  const std::string x = node->In(0);
  const Ints axes =
      node->Axes(node->AttrInts("axes", {0, 2, 3}), node->Rank(x));
  const std::string mean = node->Reduce("reduce_mean", x, axes, true);
  const std::string off = node->Sub(x, mean);
  const std::string deviation = node->Unary(
      "sqrt", node->Reduce("reduce_mean", node->Mul(off, off), axes, true));
  node->Give(0, node->Div(off, node->Affine(deviation, 1, 1e-9)));
}

void ImportLpNorm(OnnxNode* node) {
  const std::string x = node->In(0);
  const Ints axes = {node->Axis(node->Int("axis", -1), node->Rank(x))};
  const bool one = node->Int("p", 2) == 1;
  std::string norm = node->Reduce(
      "reduce_sum", one ? node->Unary("abs", x) : node->Mul(x, x), axes, true);
  if (!one) norm = node->Unary("sqrt", norm);
  // Nothing but zeros stays so.
  const std::string zero = node->Scalar(0, node->TypeOf(x));
  node->Give(0, node->Where(node->Binary("equal", norm, zero), zero,
                            node->Div(x, norm)));
}

}  // namespace

OnnxImportEntries NormImports() {
  return {
      {"BatchNormalization", ImportBatchNorm},
      {"GroupNormalization", ImportGroupNorm},
      {"InstanceNormalization", ImportInstanceNorm},
      {"LRN", ImportLrn},
      {"LayerNormalization", ImportLayerNorm},
      {"LpNormalization", ImportLpNorm},
      {"MeanVarianceNormalization", ImportMeanVariance},
      {"tensorflow:ScaledByChannel", ImportScaledByChannel},
  };
}

}  // namespace pd
