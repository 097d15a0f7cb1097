// SPDX-License-Identifier: Apache-2.0
// linear: x [..., depth] times weights that lie in panels, + bias, function.
// matmul: a and b of any rank, as numpy's matmul, each transposed or not.
#include <algorithm>

#include "libcore/bundle/runtime/gemm.h"
#include "libcore/bundle/runtime/kernels.h"

namespace pd_run {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 32;

struct Linear {
  int64_t rows = 1, depth = 0, columns = 0;
};

bool ReadLinear(Call* call, Linear* linear, Shape* out) {
  const Shape& x = call->In(0).shape;
  if (!call->Expect(0, DType::kFloat32) ||
      !call->Within(LinearInts::kDepth, 0, kMostExtent) ||
      !call->Within(LinearInts::kColumns, 1, kMostExtent) ||
      !ExpectFunction(call, LinearInts::kFunction))
    return false;
  // A negative axis counts dimensions from the end.
  int64_t axis = call->Int(LinearInts::kAxis);
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank || axis >= kMaxRank)
    return call->Fail("input of shape %s has no axis %lld", ToString(x).c_str(),
                      static_cast<long long>(axis));
  linear->depth = call->Int(LinearInts::kDepth);
  linear->columns = call->Int(LinearInts::kColumns);
  const int first = static_cast<int>(axis);
  linear->rows = Elements(x, 0, first);
  if (Elements(x, first, x.rank) != linear->depth)
    return call->Fail("input of shape %s meets weights of %lld rows",
                      ToString(x).c_str(),
                      static_cast<long long>(linear->depth));
  for (int i = 0; i < first; ++i) out->Append(x[i]);
  out->Append(linear->columns);
  return true;
}

bool PrepareLinear(Call* call) {
  Linear linear;
  Shape out;
  if (!ReadLinear(call, &linear, &out)) return false;
  int64_t weights = 0, packed = 0;
  if (!Multiply({ColumnPanels(linear.columns), kPanelColumns, linear.depth},
                &weights) ||
      !Multiply({RowPanels(linear.rows), kPanelRows, linear.depth}, &packed))
    return call->Fail("operands cannot be so large");
  // The first thread's memory holds the packed rows.
  return call->ExpectVector(1, weights) &&
         call->ExpectVector(2, linear.columns) &&
         call->Give(0, DType::kFloat32, out) && call->NeedScratch(packed);
}

bool RunLinear(Call* call) {
  Linear linear;
  Shape out;
  if (!ReadLinear(call, &linear, &out)) return false;
  PackLines(call->In(0).as<float>(), linear.rows, linear.depth, linear.depth, 1,
            kPanelRows, call->Scratch(0));
  const PackedColumns columns(call->In(1).as<float>(), linear.depth);
  Gemm gemm;
  gemm.a = call->Scratch(0);
  gemm.b = &columns;
  gemm.c = call->Out(0).as<float>();
  gemm.rows = linear.rows;
  gemm.columns = gemm.c_stride = linear.columns;
  gemm.depth = linear.depth;
  if (call->Has(2)) gemm.column_bias = call->In(2).as<float>();
  gemm.activation = FunctionOf(*call, LinearInts::kFunction);
  call->threads()->For(
      ColumnPanels(linear.columns), [&](int64_t begin, int64_t end, int) {
        gemm.Run(begin, end, 0, RowPanels(linear.rows), nullptr);
      });
  return true;
}

// Operands as stacks of matrices; an operand of rank 1 is a row or a column.
struct Matmul {
  Shape a, b;    // with at least two dimensions
  Shape result;  // with the dimensions that rank 1 does not have
  Shape out;
  int64_t rows = 0, depth = 0, columns = 0;
  bool transpose_a = false, transpose_b = false;
};

bool ReadStack(Call* call, Matmul* m) {
  const int rank = std::max(m->a.rank, m->b.rank);
  for (int i = 0; i < rank - 2; ++i) {
    const int in_a = i - (rank - m->a.rank), in_b = i - (rank - m->b.rank);
    const int64_t left = in_a < 0 ? 1 : m->a[in_a];
    const int64_t right = in_b < 0 ? 1 : m->b[in_b];
    if (left != right && left != 1 && right != 1)
      return call->Fail("shapes %s and %s do not fit", ToString(m->a).c_str(),
                        ToString(m->b).c_str());
    m->result.Append(left == 1 ? right : left);
  }
  return true;
}

bool ReadMatmul(Call* call, Matmul* m) {
  if (!call->Expect(0, DType::kFloat32) || !call->Expect(1, DType::kFloat32))
    return false;
  m->a = call->In(0).shape;
  m->b = call->In(1).shape;
  if (m->a.rank < 1 || m->b.rank < 1)
    return call->Fail("an operand is a scalar");
  m->transpose_a = call->Int(MatmulInts::kTransposeA) != 0;
  m->transpose_b = call->Int(MatmulInts::kTransposeB) != 0;
  const bool row = m->a.rank == 1, column = m->b.rank == 1;
  if (row) {
    m->a = {2, {1, m->a[0]}};
    m->transpose_a = false;
  }
  if (column) {
    m->b = {2, {m->b[0], 1}};
    m->transpose_b = false;
  }
  const int ra = m->a.rank, rb = m->b.rank;
  m->rows = m->a[ra - (m->transpose_a ? 1 : 2)];
  m->depth = m->a[ra - (m->transpose_a ? 2 : 1)];
  m->columns = m->b[rb - (m->transpose_b ? 2 : 1)];
  if (m->b[rb - (m->transpose_b ? 1 : 2)] != m->depth)
    return call->Fail("shapes %s and %s do not fit",
                      ToString(call->In(0).shape).c_str(),
                      ToString(call->In(1).shape).c_str());
  if (!ReadStack(call, m)) return false;
  m->out = m->result;
  if (!row) m->out.Append(m->rows);
  if (!column) m->out.Append(m->columns);
  return true;
}

bool PrepareMatmul(Call* call) {
  Matmul m;
  if (!ReadMatmul(call, &m)) return false;
  int64_t packed = 0;
  if (!Multiply({RowPanels(m.rows), kPanelRows, m.depth}, &packed))
    return call->Fail("operands cannot be so large");
  return call->Give(0, DType::kFloat32, m.out) &&
         call->NeedScratch(packed + kPanelFloats);
}

// The matrix of `operand` that belongs to number `index` of the result's.
int64_t MatrixAt(const Shape& result, const Shape& operand, int64_t index) {
  int64_t at = 0, stride = 1;
  const int shift = result.rank - (operand.rank - 2);
  for (int i = result.rank - 1; i >= 0; --i) {
    const int64_t here = index % result[i];
    index /= result[i];
    if (i < shift) continue;
    const int64_t extent = operand[i - shift];
    if (extent != 1) at += here * stride;
    stride *= extent;
  }
  return at;
}

bool RunMatmul(Call* call) {
  Matmul m;
  if (!ReadMatmul(call, &m)) return false;
  const float alpha = call->Float(0);
  call->threads()->For(Elements(m.result), [&](int64_t begin, int64_t end,
                                               int thread) {
    float* panels = call->Scratch(thread);
    float* memory = panels + RowPanels(m.rows) * kPanelRows * m.depth;
    for (int64_t i = begin; i < end; ++i) {
      const float* a = call->In(0).as<float>() +
                       MatrixAt(m.result, m.a, i) * m.rows * m.depth;
      const float* b = call->In(1).as<float>() +
                       MatrixAt(m.result, m.b, i) * m.depth * m.columns;
      PackLines(a, m.rows, m.depth, m.transpose_a ? 1 : m.depth,
                m.transpose_a ? m.rows : 1, kPanelRows, panels);
      const StridedColumns columns(b, m.columns, m.transpose_b ? 1 : m.columns,
                                   m.transpose_b ? m.depth : 1);
      Gemm gemm;
      gemm.a = panels;
      gemm.b = &columns;
      gemm.c = call->Out(0).as<float>() + i * m.rows * m.columns;
      gemm.rows = m.rows;
      gemm.columns = gemm.c_stride = m.columns;
      gemm.depth = m.depth;
      if (alpha != 1.0f) gemm.activation = {Function::kScale, alpha, 0, 0};
      gemm.Run(0, ColumnPanels(m.columns), 0, RowPanels(m.rows), memory);
    }
  });
  return true;
}

}  // namespace

const Kernel kLinear = {"linear",
                        {2, 3},
                        {1, 1},
                        {LinearInts::kAll, LinearInts::kAll},
                        {kFunctionFloats, kFunctionFloats},
                        PrepareLinear,
                        RunLinear};

const Kernel kMatmul = {
    "matmul", {2, 2},        {1, 1},   {MatmulInts::kAll, MatmulInts::kAll},
    {1, 1},   PrepareMatmul, RunMatmul};

}  // namespace pd_run
