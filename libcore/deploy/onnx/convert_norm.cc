// SPDX-License-Identifier: Apache-2.0
// Normalisations as inference runs them.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"
#include "libcore/deploy/onnx/window.h"

namespace pd {
namespace {

// A [n] parameter, or `value` where the slot is empty.
std::string ScaleOr(OnnxOp* op, const char* slot, float value, int64_t n) {
  if (op->Has(slot)) return op->In(slot);
  if (n < 0) {
    op->Fail(
        Unimplemented("no '%s' for a number of channels known only when "
                      "it runs",
                      slot));
    n = 0;
  }
  return op->ConstArray(
      MakeArray({n}, std::vector<float>(static_cast<size_t>(n), value)));
}

void ConvertBatchNorm(OnnxOp* op) {
  if (!op->Bool("is_test") && !op->Bool("use_global_stats")) {
    op->Fail(Unimplemented(
        "it normalises with the batch's own statistics: attr 'is_test' is "
        "false"));
    return;
  }
  const Shape& x = op->ShapeOf("X");
  OnnxWindow window;
  window.channels_last = op->Str("data_layout") == "NHWC" && x.size() > 2;
  window.strides.assign(x.size() > 2 ? x.size() - 2 : 0, 1);
  const Shape& channels = op->ShapeOf("Mean");
  const int64_t n = channels.empty() ? -1 : channels[0];
  op->Ignore("MomentumTensor");
  GiveChannelsFirst(
      op, window, "Y", "BatchNormalization",
      {ToChannelsFirst(op, window, op->In("X")), ScaleOr(op, "Scale", 1, n),
       ScaleOr(op, "Bias", 0, n), op->In("Mean"), op->In("Variance")},
      {{"epsilon", static_cast<float>(op->Float("epsilon"))},
       {"momentum", static_cast<float>(op->Float("momentum"))}});
}

// (x - mean) / sqrt(variance + epsilon) over `axes`.
std::string Normalized(OnnxOp* op, const std::string& x,
                       const std::vector<int64_t>& axes, double epsilon,
                       DType dtype) {
  const std::string mean = op->Reduce("ReduceMean", x, axes, true);
  const std::string d = op->Emit("Sub", {x, mean});
  const std::string variance =
      op->Reduce("ReduceMean", op->Emit("Mul", {d, d}), axes, true);
  const std::string padded =
      op->Emit("Add", {variance, op->Const(epsilon, dtype)});
  return op->Emit("Div", {d, op->Emit("Sqrt", {padded})});
}

// Y = x * scale + bias, each where it is there.
void GiveAffine(OnnxOp* op, const std::string& x, const std::string& scale,
                const std::string& bias) {
  if (scale.empty() && bias.empty())
    op->Give("Y", "Identity", {x});
  else if (bias.empty())
    op->Give("Y", "Mul", {x, scale});
  else
    op->Give("Y", "Add",
             {scale.empty() ? x : op->Emit("Mul", {x, scale}), bias});
}

void ConvertLayerNorm(OnnxOp* op) {
  const int64_t begin = op->Int("begin_norm_axis");
  const Shape& x = op->ShapeOf("X");
  const auto rank = static_cast<int64_t>(x.size());
  if (begin < 1 || begin >= rank) {
    op->Fail(InvalidArgument(
        "attr 'begin_norm_axis' is %d; X has rank %d, so it must be in [1, %d]",
        begin, rank, rank - 1));
    return;
  }
  const Shape inner(x.begin() + begin, x.end());
  std::string scale = op->OptionalIn("Scale"), bias = op->OptionalIn("Bias");
  // They are flat in PaddlePaddle.
  if (inner.size() > 1 && !(scale.empty() && bias.empty())) {
    if (IsDynamic(inner)) {
      op->Fail(
          Unimplemented("'Scale' of an input of shape %s; the normalised "
                        "extents must be known",
                        ToString(x)));
      return;
    }
    if (!scale.empty()) scale = op->Reshape(scale, inner);
    if (!bias.empty()) bias = op->Reshape(bias, inner);
  }
  const double epsilon = op->Float("epsilon");
  if (op->opset() >= 17 && !scale.empty()) {
    op->Give("Y", "LayerNormalization", {op->In("X"), scale, bias},
             {{"axis", begin}, {"epsilon", static_cast<float>(epsilon)}});
    return;
  }
  std::vector<int64_t> axes;
  for (int64_t i = begin; i < rank; ++i) axes.push_back(i);
  GiveAffine(op, Normalized(op, op->In("X"), axes, epsilon, op->TypeOf("X")),
             scale, bias);
}

void ConvertInstanceNorm(OnnxOp* op) {
  const Shape& x = op->ShapeOf("X");
  const int64_t n = x.size() > 1 ? x[1] : -1;
  op->Give("Y", "InstanceNormalization",
           {op->In("X"), ScaleOr(op, "Scale", 1, n), ScaleOr(op, "Bias", 0, n)},
           {{"epsilon", static_cast<float>(op->Float("epsilon"))}});
}

// Groups become channels of an instance normalisation.
void ConvertGroupNorm(OnnxOp* op) {
  const Shape x = op->ShapeOf("X");
  OnnxWindow window;
  const std::string layout = op->Str("data_layout");
  window.channels_last = !layout.empty() && layout.back() == 'C';
  window.strides.assign(x.size() > 2 ? x.size() - 2 : 0, 1);
  const int64_t groups = op->Int("groups");
  if (x.size() < 3 || window.channels_last) {
    op->Fail(
        Unimplemented("an input of shape %s in layout '%s'; expected "
                      "'NCHW' and rank 3 or more",
                      ToString(x), layout));
    return;
  }
  const std::vector<float> ones(static_cast<size_t>(groups), 1.0f);
  const std::vector<float> zeros(static_cast<size_t>(groups), 0.0f);
  const std::string in = op->In("X");
  const std::string grouped = op->Reshape(in, {0, groups, -1});
  const std::string normal =
      op->Emit("InstanceNormalization",
               {grouped, op->ConstArray(MakeArray({groups}, ones)),
                op->ConstArray(MakeArray({groups}, zeros))},
               {{"epsilon", static_cast<float>(op->Float("epsilon"))}});
  const std::string back =
      op->Emit("Reshape", {normal, op->Emit("Shape", {in})});
  std::vector<int64_t> spatial;
  for (size_t i = 1; i + 1 < x.size(); ++i)
    spatial.push_back(static_cast<int64_t>(i));
  std::string scale = op->OptionalIn("Scale"), bias = op->OptionalIn("Bias");
  if (!scale.empty()) scale = op->Unsqueeze(scale, spatial);
  if (!bias.empty()) bias = op->Unsqueeze(bias, spatial);
  GiveAffine(op, back, scale, bias);
}

}  // namespace

OnnxConverters NormConverters() {
  return {
      {"batch_norm", ConvertBatchNorm},       {"group_norm", ConvertGroupNorm},
      {"instance_norm", ConvertInstanceNorm}, {"layer_norm", ConvertLayerNorm},
      {"sync_batch_norm", ConvertBatchNorm},
  };
}

}  // namespace pd
