// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx/dynamic_product.h"

#include <algorithm>
#include <vector>

#include "libcore/ops/quantize/int8_dynamic.h"
#include "libcore/ops/quantize/quantize.h"

namespace pd {
namespace {

// Whether the product transposes its operand 'x' or 'y'.
bool Transposes(const OpDesc& op, char operand) {
  if (op.type == "mul") return false;
  if (op.type == "matmul_v2")
    return op.Attr<bool>(operand == 'x' ? "trans_x" : "trans_y");
  return op.Attr<bool>(operand == 'x' ? "transpose_X" : "transpose_Y");
}

const Array* Find(const InferenceModel& model, const std::string& name) {
  const auto it = model.params.find(name);
  return it == model.params.end() ? nullptr : &it->second;
}

// MatMulInteger wants its second matrix as it multiplies.
Array Turned(const Array& w) {
  const int64_t rows = w.shape[0], columns = w.shape[1];
  const auto* from = w.data<int8_t>();
  std::vector<int8_t> to(static_cast<size_t>(w.size()));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      to[static_cast<size_t>(c * rows + r)] = from[r * columns + c];
  return MakeArray<int8_t>({columns, rows}, to);
}

// How much one step of each column's integers is: a scalar, or one each.
Array StepsOf(const NamedArrays& params, const OpDesc& dequantize) {
  const Array& scale = params.at(dequantize.In("Scale"));
  const auto levels =
      static_cast<float>(QuantLevels(dequantize.Attr<int32_t>("bit_length")));
  std::vector<float> steps;
  for (int64_t i = 0; i < scale.size(); ++i)
    steps.push_back(scale.data<float>()[i] / levels);
  const Shape shape = steps.size() == 1 ? Shape() : Shape{scale.size()};
  return MakeArray<float>(shape, steps);
}

// The dequantize_linear behind the product's weight; null where the op
// multiplies floating point.
const OpDesc* WeightOf(const InferenceModel& model, const OpDesc& op) {
  const bool product =
      op.type == "matmul_v2" || op.type == "matmul" || op.type == "mul";
  if (!product || op.AttrOr<std::string>("quantization_type", "") != "dynamic")
    return nullptr;
  const BlockDesc& block = model.program.global();
  const VarDesc* x = block.FindVar(op.In("X"));
  if (x == nullptr || x->persistable || x->dtype != DType::kFloat32 ||
      x->shape.size() < 2 || Transposes(op, 'x') ||
      (op.type == "matmul" && op.Attr<float>("alpha") != 1.0f) ||
      (op.type == "mul" && op.Attr<int32_t>("y_num_col_dims") != 1))
    return nullptr;
  const auto maker = std::find_if(
      block.ops.begin(), block.ops.end(),
      [&](const OpDesc& made) { return made.Out("Y") == op.In("Y"); });
  if (maker == block.ops.end() || maker->type != "dequantize_linear" ||
      maker->Attr<bool>("only_observer") ||
      maker->Attr<int32_t>("bit_length") > 8)
    return nullptr;
  const Array* w = Find(model, maker->In("X"));
  const Array* scale = Find(model, maker->In("Scale"));
  if (w == nullptr || w->dtype != DType::kInt8 || w->shape.size() != 2 ||
      scale == nullptr || scale->dtype != DType::kFloat32)
    return nullptr;
  const int32_t columns = Transposes(op, 'y') ? 0 : 1;
  const auto axis = maker->Attr<int32_t>("quant_axis");
  const bool fits =
      axis < 0 ? scale->size() == 1
               : axis == columns &&
                     scale->size() == w->shape[static_cast<size_t>(columns)];
  return fits && w->shape[static_cast<size_t>(1 - columns)] <= kMostDynamicDepth
             ? &*maker
             : nullptr;
}

}  // namespace

bool GiveDynamicProduct(OnnxOp* op) {
  const OpDesc* dequantize = WeightOf(op->model(), op->desc());
  if (dequantize == nullptr) return false;
  op->Ignore("Y");
  const NamedArrays& params = op->model().params;
  const Array& w = params.at(dequantize->In("X"));
  const bool turned = Transposes(op->desc(), 'y');
  const int64_t rank = op->Rank("X");
  const int64_t rows =
      op->type() == "mul" ? op->Int("x_num_col_dims") : rank - 1;
  const std::string x = op->In("X");
  const std::string matrix =
      rows == rank - 1 ? x : op->Emit("Flatten", {x}, {{"axis", rows}});
  const OnnxValues bytes =
      op->EmitSeveral(3, "DynamicQuantizeLinear", {matrix});
  const std::string sum = op->Cast(
      op->Emit("MatMulInteger", {bytes[0],
                                 turned ? op->ConstArray(Turned(w))
                                        : op->ValueOf(dequantize->In("X")),
                                 bytes[2]}),
      DType::kFloat32);
  const std::string step =
      op->Emit("Mul", {bytes[1], op->ConstArray(StepsOf(params, *dequantize))});
  if (rows == 1 || rows == rank - 1) {
    op->Give("Out", "Mul", {sum, step});
    return true;
  }
  const std::string shape =
      op->Emit("Concat",
               {op->Slice(op->Emit("Shape", {x}), {0}, {0}, {rows}),
                op->ConstInts({w.shape[turned ? 0 : 1]})},
               {{"axis", int64_t{0}}});
  op->Give("Out", "Reshape", {op->Emit("Mul", {sum, step}), shape});
  return true;
}

bool IsForDynamicProducts(const OnnxOp& op) {
  const std::string& name = op.desc().Out("Y");
  const auto& fetches = op.model().names.fetches;
  if (std::count(fetches.begin(), fetches.end(), name) > 0) return false;
  bool any = false;
  for (const OpDesc& reader : op.model().program.global().ops)
    for (const auto& [slot, names] : reader.inputs) {
      if (std::count(names.begin(), names.end(), name) == 0) continue;
      if (slot != "Y" || WeightOf(op.model(), reader) == nullptr) return false;
      any = true;
    }
  return any;
}

}  // namespace pd
