// SPDX-License-Identifier: Apache-2.0
// Products of matrices. One with a parameter is `linear`, whose weights lie in
// panels; any other is `matmul`. Normalisations are here, too.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "libcore/bundle/lowerings.h"
#include "libcore/bundle/runtime/bundle_format.h"
#include "libcore/bundle/runtime/panels.h"

namespace pd {
namespace {

using pd_run::Binary;
using pd_run::Function;

}  // namespace

Array PackColumns(const Array& matrix, int64_t depth, int64_t columns,
                  bool transposed, float by) {
  std::byte* bytes = nullptr;
  Array packed = NewCopy(
      DType::kFloat32,
      {pd_run::ColumnPanels(columns) * pd_run::kPanelColumns * depth}, &bytes);
  auto* panels = reinterpret_cast<float*>(bytes);
  pd_run::PackLines(matrix.data<float>(), columns, depth,
                    transposed ? depth : 1, transposed ? 1 : columns,
                    pd_run::kPanelColumns, panels);
  if (by != 1.0f)
    for (int64_t i = 0; i < packed.size(); ++i) panels[i] *= by;
  return packed;
}

namespace {

// x times the parameter in `slot`, taken as a matrix.
uint32_t LinearOf(BundleOp* op, uint32_t x, const char* slot, int64_t depth,
                  int64_t columns, bool transposed, int64_t axis,
                  float by = 1) {
  const Array* weights = op->Param(slot);
  if (weights == nullptr || depth < 1 || columns < 1) {
    op->Refuse("its weights are empty");
    return x;
  }
  const uint32_t packed = op->Packed(
      op->desc().In(slot),
      absl::StrCat("|columns|", depth, "|", transposed, "|", by),
      [&] { return PackColumns(*weights, depth, columns, transposed, by); });
  return op->Emit("linear", {x, packed}, {depth, columns, axis, 0},
                  NoFunction());
}

void LowerMatmulOf(BundleOp* op, bool transpose_x, bool transpose_y,
                   float alpha) {
  const uint32_t x = op->In("X");
  op->ExpectFloat("X");
  op->ExpectFloat("Y");
  const Shape& y = op->ShapeOf("Y");
  if (op->IsParam("Y") && y.size() == 2 && !transpose_x) {
    const int64_t depth = y[transpose_y ? 1 : 0];
    const int64_t columns = y[transpose_y ? 0 : 1];
    // The last axis; a bias may name it by its number.
    const auto axis = static_cast<int64_t>(op->ShapeOf("X").size()) - 1;
    return op->Alias(
        "Out", LinearOf(op, x, "Y", depth, columns, transpose_y, axis, alpha));
  }
  const uint32_t product =
      op->Emit("matmul", {x, op->In("Y")}, {transpose_x, transpose_y}, {alpha});
  op->AliasScalar("Out", product,
                  op->ShapeOf("X").size() == 1 && y.size() == 1);
}

void LowerMatmulV2(BundleOp* op) {
  LowerMatmulOf(op, op->Bool("trans_x"), op->Bool("trans_y"), 1);
}

void LowerMatmul(BundleOp* op) {
  if (op->desc().AttrOr<int32_t>("head_number", 1) > 1)
    op->Refuse("it has several heads");
  LowerMatmulOf(op, op->Bool("transpose_X"), op->Bool("transpose_Y"),
                static_cast<float>(op->Float("alpha")));
}

void LowerBmm(BundleOp* op) { LowerMatmulOf(op, false, false, 1); }

void LowerMul(BundleOp* op) {
  op->ExpectFloat("X");
  const Shape& y = op->ShapeOf("Y");
  if (y.size() != 2 || op->Int("y_num_col_dims") != 1)
    return op->Refuse("its 'Y' is no matrix");
  if (op->IsParam("Y"))
    return op->Alias("Out", LinearOf(op, op->In("X"), "Y", y[0], y[1], false,
                                     op->Int("x_num_col_dims")));
  if (op->ShapeOf("X").size() != 2)
    return op->Refuse("neither 'X' is a matrix nor 'Y' a parameter");
  op->Give("Out", "matmul", {op->In("X"), op->In("Y")}, {0, 0}, {1});
}

void LowerFc(BundleOp* op) {
  op->ExpectFloat("Input");
  const Array* weights = op->Param("W");
  if (weights == nullptr) return;
  if (weights->shape.size() != 2 || op->Bool("padding_weights"))
    return op->Refuse("its weights are padded");
  const std::string activation = op->Str("activation_type");
  if (!activation.empty() && activation != "relu")
    op->Refuse(absl::StrCat("its activation is '", activation, "'"));
  uint32_t y = LinearOf(op, op->In("Input"), "W", weights->shape[0],
                        weights->shape[1], false, op->Int("in_num_col_dims"));
  if (op->Has("Bias")) y = op->BinaryOf(Binary::kAdd, y, op->In("Bias"));
  if (activation == "relu") y = op->Unary(Function::kRelu, y);
  op->Alias("Out", y);
}

// A batch norm that stands behind no convolution: x * scale + shift for each
// channel.
void LowerBatchNorm(BundleOp* op) {
  op->ExpectFloat("X");
  if (!op->Bool("is_test") && !op->Bool("use_global_stats"))
    op->Refuse("it uses the statistics of its input");
  const Array *mean = op->Param("Mean"), *variance = op->Param("Variance");
  const Array *scale = op->Has("Scale") ? op->Param("Scale") : nullptr,
              *bias = op->Has("Bias") ? op->Param("Bias") : nullptr;
  const uint32_t x = op->In("X");
  if (mean == nullptr || variance == nullptr) return;
  const int64_t channels = mean->size();
  for (const Array* each : {variance, scale, bias})
    if (each != nullptr && each->size() != channels)
      return op->Refuse("its parameters differ in size");
  std::vector<float> by, plus;
  for (int64_t c = 0; c < channels; ++c) {
    const auto at = [&](const Array* a, double none) {
      return a == nullptr ? none : static_cast<double>(a->data<float>()[c]);
    };
    const double factor =
        at(scale, 1) / std::sqrt(at(variance, 0) + op->Float("epsilon"));
    by.push_back(static_cast<float>(factor));
    plus.push_back(static_cast<float>(at(bias, 0) - at(mean, 0) * factor));
  }
  const bool last = op->Str("data_layout") == "NHWC";
  const int64_t axis = last ? -1 : 1;
  const uint32_t scaled = op->BinaryOf(
      Binary::kMul, x, op->Constant(MakeArray({channels}, by)), axis);
  op->Alias("Y", op->BinaryOf(Binary::kAdd, scaled,
                              op->Constant(MakeArray({channels}, plus)), axis));
}

void LowerLayerNorm(BundleOp* op) {
  op->ExpectFloat("X");
  op->Give("Y", "layer_norm",
           {op->In("X"), op->OptionalIn("Scale"), op->OptionalIn("Bias")},
           {op->Int("begin_norm_axis")},
           {static_cast<float>(op->Float("epsilon"))});
}

void LowerInstanceNorm(BundleOp* op) {
  op->ExpectFloat("X");
  op->Give("Y", "group_norm",
           {op->In("X"), op->OptionalIn("Scale"), op->OptionalIn("Bias")}, {0},
           {static_cast<float>(op->Float("epsilon"))});
}

void LowerGroupNorm(BundleOp* op) {
  op->ExpectFloat("X");
  if (op->Str("data_layout") != "NCHW") op->Refuse("its channels come last");
  op->Give("Y", "group_norm",
           {op->In("X"), op->OptionalIn("Scale"), op->OptionalIn("Bias")},
           {op->Int("groups")}, {static_cast<float>(op->Float("epsilon"))});
}

void LowerSoftmax(BundleOp* op) {
  op->ExpectFloat("X");
  op->Give("Out", "softmax", {op->In("X")},
           {op->Int("axis"), op->type() == "log_softmax"});
}

}  // namespace

Lowerings ProductLowerings() {
  return {
      {"batch_norm", LowerBatchNorm},
      {"bmm", LowerBmm},
      {"fc", LowerFc},
      {"group_norm", LowerGroupNorm},
      {"instance_norm", LowerInstanceNorm},
      {"layer_norm", LowerLayerNorm},
      {"log_softmax", LowerSoftmax},
      {"matmul", LowerMatmul},
      {"matmul_v2", LowerMatmulV2},
      {"mul", LowerMul},
      {"softmax", LowerSoftmax},
  };
}

}  // namespace pd
