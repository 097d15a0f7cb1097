// SPDX-License-Identifier: Apache-2.0
// The form of PaddlePaddle's WeightQuantization.
#include "libcore/deploy/weight_scales.h"

#include <utility>
#include <vector>

#include "libcore/ops/linalg/product_attrs.h"
#include "libcore/quant/op_table.h"
#include "libcore/quant/quantized_model.h"

namespace pd {
namespace {

bool IsConv(const OpDesc& op) { return WeightStepsAxis(op) == 0; }

// Whether a product is one of rows by a matrix, as mul is.
bool IsRowProduct(const BlockDesc& block, const OpDesc& op,
                  const QuantOp& chosen) {
  const VarDesc* x = block.FindVar(op.In("X"));
  if (!IsProduct(op.type) || chosen.axis != 1 || x == nullptr ||
      x->shape.size() < 2)
    return false;
  const ProductAttrs product = ProductAttrsOf(op);
  return !product.trans_x && product.alpha == 1 && product.y_num_col_dims == 1;
}

void MakeMul(const BlockDesc& block, OpDesc* op) {
  if (op->type == "mul") return;
  const auto rank =
      static_cast<int32_t>(block.FindVar(op->In("X"))->shape.size());
  for (const char* gone :
       {"trans_x", "trans_y", "transpose_X", "transpose_Y", "alpha"})
    op->attrs.erase(gone);
  op->type = "mul";
  op->attrs["x_num_col_dims"] = rank - 1;
  op->attrs["y_num_col_dims"] = int32_t{1};
}

}  // namespace

void KeepWeightScaleOps(const InferenceModel& model, QuantPlan* plan) {
  const BlockDesc& block = model.program.global();
  std::vector<std::string> leave;
  for (const QuantOp& op : plan->ops)
    if (!IsConv(block.ops[op.op]) && !IsRowProduct(block, block.ops[op.op], op))
      leave.push_back(op.output);
  for (const std::string& output : leave)
    LeaveInFloat(model, output, "Paddle Lite has no weights of integers for it",
                 plan);
}

InferenceModel WithWeightScales(const InferenceModel& model,
                                const Quantization& q) {
  InferenceModel made = model;
  BlockDesc& block = made.program.global();
  for (const QuantOp& chosen : q.plan.ops) {
    OpDesc& op = block.ops[chosen.op];
    const QuantizedWeight& weight = q.weights.at(chosen.weight);
    made.params[chosen.weight] = weight.AsIntegers();
    std::vector<float> steps = weight.scales;
    for (float& step : steps) step /= static_cast<float>(weight.levels());
    if (!IsConv(op)) MakeMul(block, &op);
    op.attrs[WeightStepsAttr(chosen.weight)] = steps;
    op.attrs[kWeightBitsAttr] = int32_t{weight.bits};
    op.attrs["quantization_type"] =
        std::string(weight.axis < 0 ? "post_weight_abs_max"
                                    : "post_weight_channel_wise_abs_max");
    op.attrs["with_quant_attr"] = true;
  }
  return made;
}

}  // namespace pd
