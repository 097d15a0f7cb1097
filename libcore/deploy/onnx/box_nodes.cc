// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx/box_nodes.h"

namespace pd {

std::string Extent(OnnxOp* op, const std::string& x, const Shape& shape,
                   size_t axis) {
  if (axis < shape.size() && shape[axis] >= 0) return op->ConstInt(shape[axis]);
  return op->Extent(x, static_cast<int64_t>(axis));
}

std::string Vector(OnnxOp* op, const OnnxValues& scalars) {
  OnnxValues parts;
  for (const std::string& scalar : scalars)
    parts.push_back(op->Reshape(scalar, {1}));
  return op->Emit("Concat", parts, {{"axis", int64_t{0}}});
}

std::string Mul(OnnxOp* op, const std::string& a, const std::string& b) {
  return op->Emit("Mul", {a, b});
}
std::string Add(OnnxOp* op, const std::string& a, const std::string& b) {
  return op->Emit("Add", {a, b});
}
std::string Sub(OnnxOp* op, const std::string& a, const std::string& b) {
  return op->Emit("Sub", {a, b});
}
std::string Div(OnnxOp* op, const std::string& a, const std::string& b) {
  return op->Emit("Div", {a, b});
}

std::string AtMost(OnnxOp* op, int64_t most, const std::string& scalar) {
  if (most < 0) return scalar;
  const std::string limit = op->ConstInt(most);
  return op->Emit("Where", {op->Emit("Less", {limit, scalar}), limit, scalar});
}

OnnxValues TopK(OnnxOp* op, const std::string& x, const std::string& k,
                int64_t axis) {
  return op->EmitSeveral(2, "TopK", {x, op->Reshape(k, {1})}, {{"axis", axis}});
}

std::string Column(OnnxOp* op, const std::string& rows, int64_t column) {
  return op->Emit("Gather", {rows, op->ConstInt(column)},
                  {{"axis", int64_t{1}}});
}

std::string ImageOfRows(OnnxOp* op, const std::string& counts,
                        const std::string& rows) {
  const std::string ends =
      op->Emit("CumSum", {op->Cast(counts, DType::kInt64), op->ConstInt(0)});
  const std::string done =
      op->Emit("Not", {op->Emit("Less", {op->Unsqueeze(op->Counting(rows), {1}),
                                         op->Unsqueeze(ends, {0})})});
  return op->Reduce("ReduceSum", op->Cast(done, DType::kInt64), {1}, false);
}

void GiveCounts(OnnxOp* op, const std::string& image, const std::string& images,
                const char* slot) {
  const std::string own = op->Emit(
      "Equal",
      {op->Unsqueeze(op->Counting(images), {1}), op->Unsqueeze(image, {0})});
  op->Alias(slot, op->Cast(op->Reduce("ReduceSum", op->Cast(own, DType::kInt64),
                                      {1}, false),
                           op->OutVar(slot).dtype));
}

}  // namespace pd
