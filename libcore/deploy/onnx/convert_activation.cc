// SPDX-License-Identifier: Apache-2.0
// Activations, softmax and dropout.
#include <cmath>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

float Alpha(OnnxOp* op, const char* attr) {
  return static_cast<float>(op->Float(attr));
}

void ConvertLeakyRelu(OnnxOp* op) {
  op->Give("Out", "LeakyRelu", {op->In("X")}, {{"alpha", Alpha(op, "alpha")}});
}

void ConvertElu(OnnxOp* op) {
  op->Give("Out", "Elu", {op->In("X")}, {{"alpha", Alpha(op, "alpha")}});
}

void ConvertSelu(OnnxOp* op) {
  op->Give("Out", "Selu", {op->In("X")},
           {{"alpha", Alpha(op, "alpha")}, {"gamma", Alpha(op, "scale")}});
}

// max(x, 0) + alpha * elu(min(x, 0) / alpha)
void ConvertCelu(OnnxOp* op) {
  const std::string x = op->In("X");
  const DType dtype = op->TypeOf("X");
  const std::string alpha = op->Const(op->Float("alpha"), dtype);
  const std::string low = op->Clip(x, -kInfinity, 0, dtype);
  const std::string bent =
      op->Emit("Elu", {op->Emit("Div", {low, alpha})}, {{"alpha", 1.0f}});
  op->Give("Out", "Add",
           {op->Emit("Relu", {x}), op->Emit("Mul", {bent, alpha})});
}

void ConvertClipped(OnnxOp* op, double low, double high) {
  op->Alias("Out", op->Clip(op->In("X"), low, high, op->TypeOf("X")));
}
void ConvertRelu6(OnnxOp* op) { ConvertClipped(op, 0, op->Float("threshold")); }
void ConvertBrelu(OnnxOp* op) {
  ConvertClipped(op, op->Float("t_min"), op->Float("t_max"));
}

void ConvertGelu(OnnxOp* op) {
  const std::string x = op->In("X");
  const DType dtype = op->TypeOf("X");
  const std::string half = op->Const(0.5, dtype), one = op->Const(1, dtype);
  std::string bent;
  if (op->Bool("approximate")) {
    // tanh(sqrt(2 / pi) * (x + 0.044715 x^3))
    const std::string cube = op->Emit("Mul", {op->Emit("Mul", {x, x}), x});
    const std::string sum = op->Emit(
        "Add", {x, op->Emit("Mul", {cube, op->Const(0.044715, dtype)})});
    bent = op->Emit(
        "Tanh", {op->Emit("Mul", {sum, op->Const(0.7978845608028654, dtype)})});
  } else {
    bent = op->Emit("Erf", {op->Emit("Mul", {x, op->Const(M_SQRT1_2, dtype)})});
  }
  op->Give("Out", "Mul",
           {op->Emit("Mul", {x, half}), op->Emit("Add", {bent, one})});
}

// x * clip(x + offset, 0, threshold) / scale
void ConvertHardSwish(OnnxOp* op) {
  const double threshold = op->Float("threshold");
  const double scale = op->Float("scale"), offset = op->Float("offset");
  const std::string x = op->In("X");
  const DType dtype = op->TypeOf("X");
  if (op->opset() >= 14 && threshold == 6 && scale == 6 && offset == 3) {
    op->Give("Out", "HardSwish", {x});
    return;
  }
  const std::string gate = op->Clip(
      op->Emit("Add", {x, op->Const(offset, dtype)}), 0, threshold, dtype);
  op->Give("Out", "Div", {op->Emit("Mul", {x, gate}), op->Const(scale, dtype)});
}

void ConvertHardSigmoid(OnnxOp* op) {
  op->Give("Out", "HardSigmoid", {op->In("X")},
           {{"alpha", Alpha(op, "slope")}, {"beta", Alpha(op, "offset")}});
}

// x * sigmoid(x): PaddlePaddle does not read swish's attr beta.
void ConvertSilu(OnnxOp* op) {
  const std::string x = op->In("X");
  op->Give("Out", "Mul", {x, op->Emit("Sigmoid", {x})});
}

void ConvertMish(OnnxOp* op) {
  const std::string x = op->In("X");
  op->Give("Out", "Mul", {x, op->Emit("Tanh", {op->Emit("Softplus", {x})})});
}

// log(1 + exp(beta x)) / beta; x itself where beta x > threshold.
void ConvertSoftplus(OnnxOp* op) {
  const double beta = op->Float("beta");
  const std::string x = op->In("X");
  const DType dtype = op->TypeOf("X");
  const std::string scale = op->Const(beta, dtype);
  const std::string scaled = beta == 1 ? x : op->Emit("Mul", {x, scale});
  std::string soft = op->Emit("Softplus", {scaled});
  if (beta != 1) soft = op->Emit("Div", {soft, scale});
  const std::string linear =
      op->Emit("Greater", {scaled, op->Const(op->Float("threshold"), dtype)});
  op->Give("Out", "Where", {linear, x, soft});
}

// log(sigmoid(x)) = -softplus(-x)
void ConvertLogSigmoid(OnnxOp* op) {
  op->Give("Out", "Neg",
           {op->Emit("Softplus", {op->Emit("Neg", {op->In("X")})})});
}

void ConvertTanhShrink(OnnxOp* op) {
  const std::string x = op->In("X");
  op->Give("Out", "Sub", {x, op->Emit("Tanh", {x})});
}

void ConvertShrink(OnnxOp* op) {
  const bool hard = op->type() == "hard_shrink";
  const float lambda = Alpha(op, hard ? "threshold" : "lambda");
  op->Give("Out", "Shrink", {op->In("X")},
           {{"lambd", lambda}, {"bias", hard ? 0.0f : lambda}});
}

void ConvertThresholdedRelu(OnnxOp* op) {
  op->Give("Out", "ThresholdedRelu", {op->In("X")},
           {{"alpha", Alpha(op, "threshold")}});
}

void ConvertStanh(OnnxOp* op) {
  const DType dtype = op->TypeOf("X");
  const std::string inner =
      op->Emit("Mul", {op->In("X"), op->Const(op->Float("scale_a"), dtype)});
  op->Give("Out", "Mul",
           {op->Emit("Tanh", {inner}), op->Const(op->Float("scale_b"), dtype)});
}

void ConvertPrelu(OnnxOp* op) {
  std::string slope = op->In("Alpha");
  const int64_t rank = op->Rank("X");
  const std::string mode = op->Str("mode");
  if (mode == "channel") {
    const std::string format = op->Str("data_format");
    const bool last = !format.empty() && format.back() == 'C';
    std::vector<int64_t> shape = {-1};
    if (!last) shape.resize(static_cast<size_t>(rank > 1 ? rank - 1 : 1), 1);
    slope = op->Reshape(slope, shape);
  } else if (mode == "all") {
    slope = op->Reshape(slope, {1});
  }
  op->Give("Out", "PRelu", {op->In("X"), slope});
}

// Before opset 13 ONNX flattens all dimensions from the axis on; on the last
// axis both meanings are the same.
void ConvertSoftmax(OnnxOp* op) {
  const int64_t rank = op->Rank("X");
  int64_t axis = op->Int("axis");
  if (axis < 0) axis += rank;
  if (rank == 0 || axis < 0 || axis >= rank) {
    op->Fail(InvalidArgument(
        "attr 'axis' is %d; X has rank %d, so it must be in [%d, %d]",
        op->Int("axis"), rank, -rank, rank - 1));
    return;
  }
  if (op->opset() >= 13 || axis == rank - 1) {
    op->Give("Out", op->onnx_type(), {op->In("X")}, {{"axis", axis}});
    return;
  }
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());  // its own inverse
  const std::string last =
      op->Emit(op->onnx_type(), {op->Transpose(op->In("X"), perm)},
               {{"axis", rank - 1}});
  op->Give("Out", "Transpose", {last}, {{"perm", perm}});
}

// In test mode: the input, scaled in the older of the two ways to train.
void ConvertDropout(OnnxOp* op) {
  op->Ignore("Seed");
  if (!op->Bool("is_test")) {
    op->Fail(Unimplemented("it draws random numbers: attr 'is_test' is false"));
    return;
  }
  const bool upscaled = op->Str("dropout_implementation") == "upscale_in_train";
  const double keep = 1 - op->Float("dropout_prob");
  if (upscaled || keep == 1)
    op->Alias("Out", op->In("X"));
  else
    op->Give("Out", "Mul", {op->In("X"), op->Const(keep, op->TypeOf("X"))});
}

// out = max over groups of channels
void ConvertMaxout(OnnxOp* op) {
  const Shape& x = op->ShapeOf("X");
  int64_t axis = op->Int("axis");
  if (axis < 0) axis += static_cast<int64_t>(x.size());
  const int64_t groups = op->Int("groups");
  std::vector<int64_t> shape;
  for (size_t i = 0; i < x.size(); ++i) {
    if (static_cast<int64_t>(i) != axis) {
      shape.push_back(static_cast<int64_t>(i) < axis ? 0 : x[i]);
      continue;
    }
    shape.push_back(x[i] / groups);
    shape.push_back(groups);
  }
  for (size_t i = static_cast<size_t>(axis); i < shape.size(); ++i)
    if (shape[i] < 0) {
      op->Fail(
          Unimplemented("an input of shape %s; extents from the channels "
                        "on must be known",
                        ToString(x)));
      return;
    }
  op->Alias("Out", op->Reduce("ReduceMax", op->Reshape(op->In("X"), shape),
                              {axis + 1}, false));
}

}  // namespace

OnnxConverters ActivationConverters() {
  return {
      {"brelu", ConvertBrelu},
      {"celu", ConvertCelu},
      {"dropout", ConvertDropout},
      {"elu", ConvertElu},
      {"gelu", ConvertGelu},
      {"hard_shrink", ConvertShrink},
      {"hard_sigmoid", ConvertHardSigmoid},
      {"hard_swish", ConvertHardSwish},
      {"leaky_relu", ConvertLeakyRelu},
      {"log_softmax", ConvertSoftmax, "LogSoftmax"},
      {"logsigmoid", ConvertLogSigmoid},
      {"maxout", ConvertMaxout},
      {"mish", ConvertMish},
      {"prelu", ConvertPrelu},
      {"relu6", ConvertRelu6},
      {"selu", ConvertSelu},
      {"silu", ConvertSilu},
      {"softmax", ConvertSoftmax, "Softmax"},
      {"softplus", ConvertSoftplus},
      {"softshrink", ConvertShrink},
      {"stanh", ConvertStanh},
      {"swish", ConvertSilu},
      {"tanh_shrink", ConvertTanhShrink},
      {"thresholded_relu", ConvertThresholdedRelu},
  };
}

}  // namespace pd
