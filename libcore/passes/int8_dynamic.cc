// SPDX-License-Identifier: Apache-2.0
// A product that pd-quant --dynamic has marked, of an activation and weights
// behind a dequantize_linear, becomes an int8_dynamic_matmul, and an rnn op an
// int8_dynamic_rnn:
//   w -> dequantize_linear -> matmul_v2 (quantization_type: dynamic)
// PaddlePaddle runs the same file in floating point. A product that
// does not fit stays as it is. For programs that only infer.
#include "libcore/passes/int8_dynamic.h"

#include <string>
#include <utility>
#include <vector>

#include "libcore/ir/op_names.h"
#include "libcore/ops/linalg/product_attrs.h"
#include "libcore/ops/quantize/int8.h"
#include "libcore/ops/quantize/int8_dynamic.h"
#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

bool IsMarked(const OpDesc& op) {
  return (IsProduct(op.type) || op.type == "rnn") &&
         op.AttrOr<std::string>("quantization_type", "") == "dynamic";
}

struct Weights {
  int dequantize = kNone;
  std::string values, scale;
  int32_t bits = 8;
};

// The weights behind `name`: constant int8 with scales along `axis`; false for
// anything else.
bool FindWeights(const PassContext& context, const OpGraph& graph,
                 const std::string& name, int32_t axis, Weights* weights) {
  weights->dequantize = graph.OnlyWriter(name);
  if (weights->dequantize == kNone) return false;
  const OpDesc& from = graph.op(At(weights->dequantize));
  if (from.type != "dequantize_linear") return false;
  const int32_t own_axis = from.Attr<int32_t>("quant_axis");
  weights->bits = from.Attr<int32_t>("bit_length");
  if (weights->bits < 2 || weights->bits > 8 ||
      from.Attr<bool>("only_observer") || !graph.IsUnwritten(from.In("X")) ||
      (own_axis >= 0 && own_axis != axis))
    return false;
  weights->values = from.In("X");
  weights->scale = from.In("Scale");
  const Tensor* values = context.value(weights->values);
  return values != nullptr && values->dtype() == DType::kInt8 &&
         values->rank() == 2 && context.value(weights->scale) != nullptr &&
         values->shape()[1 - At(axis)] <= kMostDynamicDepth;
}

float LevelsOf(int32_t bits) {
  return static_cast<float>((1 << (bits - 1)) - 1);
}

// The product as an op of integers; false where it cannot be.
bool LowerProduct(const PassContext& context, const OpGraph& graph,
                  const OpDesc& op, OpDesc* made) {
  const VarDesc* x = graph.Var(op.In("X"));
  const ProductAttrs product = ProductAttrsOf(op);
  Weights weights;
  if (x == nullptr || x->persistable || x->dtype != DType::kFloat32 ||
      x->shape.size() < 2 || product.trans_x || product.alpha != 1.0f ||
      product.y_num_col_dims != 1 ||
      !FindWeights(context, graph, op.In("Y"), product.trans_y ? 0 : 1,
                   &weights))
    return false;
  made->type = "int8_dynamic_matmul";
  made->SetInput("Input", {op.In("X")});
  made->SetInput("Filter", {weights.values});
  made->SetInput("FilterScale", {weights.scale});
  made->SetOutput("Output", op.Output("Out"));
  const int32_t columns = op.type == "mul"
                              ? product.x_num_col_dims
                              : static_cast<int32_t>(x->shape.size()) - 1;
  made->attrs = {{"x_num_col_dims", columns},
                 {"trans_y", product.trans_y},
                 {"filter_levels", LevelsOf(weights.bits)}};
  CopyOpAttrs({&op}, made);
  return true;
}

bool LowerRnn(const PassContext& context, const OpGraph& graph,
              const OpDesc& op, OpDesc* made) {
  const VarDesc* x = graph.Var(op.In("Input"));
  if (x == nullptr || x->dtype != DType::kFloat32 || !op.Attr<bool>("is_test"))
    return false;
  *made = op;
  made->type = "int8_dynamic_rnn";
  std::vector<std::string> list = op.Input("WeightList"), scales;
  for (size_t i = 0; i < list.size() / 2; ++i) {
    Weights weights;
    if (!FindWeights(context, graph, list[i], 0, &weights)) return false;
    list[i] = weights.values;
    scales.push_back(weights.scale);
    made->attrs["filter_levels"] = LevelsOf(weights.bits);
  }
  made->SetInput("WeightList", list);
  made->SetInput("WeightScale", scales);
  for (const char* attr : {"quantization_type", "dropout_prob", "seed"})
    made->attrs.erase(attr);
  return true;
}

}  // namespace

absl::Status Int8Dynamic(const PassContext& context, ProgramDesc* program) {
  if (context.value == nullptr || !context.label.empty())
    return absl::OkStatus();
  bool any = false;
  for (const OpDesc& op : program->global().ops) {
    if (IsGradientOp(op.type)) return absl::OkStatus();
    any = any || IsMarked(op);
  }
  if (!any) return absl::OkStatus();
  OpGraph graph(context, program);
  for (size_t i = 0; i < graph.size(); ++i) {
    if (graph.IsRemoved(i) || !IsMarked(graph.op(i))) continue;
    const OpDesc op = graph.op(i);
    OpDesc made;
    if (op.type == "rnn" ? !LowerRnn(context, graph, op, &made)
                         : !LowerProduct(context, graph, op, &made))
      continue;
    graph.Replace(i, std::move(made), {});
    for (const std::string& name : NamesOf(op.inputs)) {
      const int writer = graph.OnlyWriter(name);
      if (writer != kNone && graph.Readers(name).empty() &&
          !graph.IsWanted(name) &&
          graph.op(At(writer)).type == "dequantize_linear")
        graph.Remove(At(writer));
    }
  }
  graph.Finish();
  return absl::OkStatus();
}

}  // namespace pd
