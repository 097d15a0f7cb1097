// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"
#include "libcore/deploy/onnx/dynamic_product.h"

namespace pd {
namespace {

// The operand with its last two dimensions swapped; vectors stay.
std::string Operand(OnnxOp* op, const char* slot, bool transpose) {
  const std::string value = op->In(slot);
  const int64_t rank = op->Rank(slot);
  if (!transpose || rank < 2) return value;
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return op->Transpose(value, perm);
}

// A product of two vectors is [] in ONNX; [1] in PaddlePaddle before 2.5.
void GiveProduct(OnnxOp* op, const std::string& x, const std::string& y) {
  if (op->Rank("X") == 1 && op->Rank("Y") == 1 &&
      op->OutVar("Out").shape.size() == 1)
    op->Give("Out", "Reshape",
             {op->Emit("MatMul", {x, y}), op->ConstInts({1})});
  else
    op->Give("Out", "MatMul", {x, y});
}

void ConvertMatmulV2(OnnxOp* op) {
  if (GiveDynamicProduct(op)) return;
  GiveProduct(op, Operand(op, "X", op->Bool("trans_x")),
              Operand(op, "Y", op->Bool("trans_y")));
}

void ConvertMatmul(OnnxOp* op) {
  if (GiveDynamicProduct(op)) return;
  std::string x = Operand(op, "X", op->Bool("transpose_X"));
  const std::string y = Operand(op, "Y", op->Bool("transpose_Y"));
  const double alpha = op->Float("alpha");
  if (alpha != 1) x = op->Emit("Mul", {x, op->Const(alpha, op->TypeOf("X"))});
  GiveProduct(op, x, y);
}

void ConvertPlainMatmul(OnnxOp* op) {
  const bool vector = op->type() == "mv";
  op->Give("Out", "MatMul", {op->In("X"), op->In(vector ? "Vec" : "Y")});
}

// The extents [begin, end) of `x` as a value.
std::string Extents(OnnxOp* op, const std::string& x, int64_t begin,
                    int64_t end) {
  return op->Slice(op->Emit("Shape", {x}), {0}, {begin}, {end});
}

// Both operands flattened to matrices: X[a..., k...] Y[k..., b...] is
// Out[a..., b...].
void ConvertMul(OnnxOp* op) {
  if (GiveDynamicProduct(op)) return;
  const int64_t x_cols = op->Int("x_num_col_dims");
  const int64_t y_cols = op->Int("y_num_col_dims");
  const int64_t x_rank = op->Rank("X"), y_rank = op->Rank("Y");
  const std::string x = op->In("X"), y = op->In("Y");
  if (x_rank == x_cols + 1 && y_rank == 2 && y_cols == 1) {
    op->Give("Out", "MatMul", {x, y});
    return;
  }
  const std::string left = op->Emit("Flatten", {x}, {{"axis", x_cols}});
  const std::string right =
      y_rank == 2 ? y : op->Emit("Flatten", {y}, {{"axis", y_cols}});
  if (x_cols == 1 && y_rank == y_cols + 1) {
    op->Give("Out", "MatMul", {left, right});
    return;
  }
  const std::string shape = op->Emit(
      "Concat", {Extents(op, x, 0, x_cols), Extents(op, y, y_cols, y_rank)},
      {{"axis", int64_t{0}}});
  op->Give("Out", "Reshape", {op->Emit("MatMul", {left, right}), shape});
}

// Input * Beta + X Y * Alpha.
void ConvertAddmm(OnnxOp* op) {
  op->Give("Out", "Gemm", {op->In("X"), op->In("Y"), op->In("Input")},
           {{"alpha", static_cast<float>(op->Float("Alpha"))},
            {"beta", static_cast<float>(op->Float("Beta"))}});
}

// Both write equations in the same letters. InnerCache and XShape are the
// gradient's.
void ConvertEinsum(OnnxOp* op) {
  op->Give("Out", "Einsum", op->Ins("Operands"),
           {{"equation", op->Str("equation")}});
}

}  // namespace

OnnxConverters MatmulConverters() {
  return {
      {"addmm", ConvertAddmm},        {"bmm", ConvertPlainMatmul},
      {"einsum", ConvertEinsum},      {"matmul", ConvertMatmul},
      {"matmul_v2", ConvertMatmulV2}, {"mul", ConvertMul},
      {"mv", ConvertPlainMatmul},
  };
}

}  // namespace pd
