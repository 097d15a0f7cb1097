// SPDX-License-Identifier: Apache-2.0
// Products of one to four rows with a row-major matrix of weights, which take
// as long as the weights take to come from memory: several rows of them are
// read at a time, each from its begin to its end as the processor fetches
// ahead, and added to results that stay in the first-level cache. Constant
// weights are left to oneDNN, which brings them into blocks of its own.
#include <algorithm>
#include <string>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/targets.h"
#include "libcore/ops/common/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/few_rows.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"

#ifndef PD_LIBCORE_KERNELS_CPU_FEW_ROWS_ONCE
#define PD_LIBCORE_KERNELS_CPU_FEW_ROWS_ONCE
namespace pd {
namespace cpu {
namespace {

// out[rows, n] = x[rows, k] w[k, n] + bias
struct FewRows {
  int64_t rows, k, n;
  const float *x, *w, *bias;  // bias: null for none
  float* out;
  bool relu;
};

}  // namespace
}  // namespace cpu
}  // namespace pd
#endif  // PD_LIBCORE_KERNELS_CPU_FEW_ROWS_ONCE

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kLanes = HWY_LANES(float);
const hn::CappedTag<float, kLanes> kTag;
using V = hn::Vec<decltype(kTag)>;

// One vector of columns at `j`, of all lanes or of the first `some`.
template <bool kAll>
struct Columns {
  size_t some;
  HWY_INLINE V Load(const float* from) const {
    if (kAll) return hn::LoadU(kTag, from);
    return hn::MaskedLoad(hn::FirstN(kTag, some), kTag, from);
  }
  HWY_INLINE void Store(V v, float* to) const {
    if (kAll)
      hn::StoreU(v, kTag, to);
    else
      hn::BlendedStore(v, hn::FirstN(kTag, some), kTag, to);
  }
};

// Adds kDepth rows of weights, from row `at` on, to kRows rows of results.
template <int kRows, int kDepth, bool kAll>
HWY_INLINE void AddAt(const FewRows& p, int64_t row, int64_t at, int64_t j,
                      Columns<kAll> columns) {
  const float* x = p.x + row * p.k + at;
  const float* w = p.w + at * p.n + j;
  float* out = p.out + row * p.n + j;
  V sums[kRows];
  for (int i = 0; i < kRows; ++i) sums[i] = columns.Load(out + i * p.n);
#pragma GCC unroll 16
  for (int d = 0; d < kDepth; ++d) {
    const V weights = columns.Load(w + d * p.n);
    for (int i = 0; i < kRows; ++i)
      sums[i] = hn::MulAdd(hn::Set(kTag, x[i * p.k + d]), weights, sums[i]);
  }
  for (int i = 0; i < kRows; ++i) columns.Store(sums[i], out + i * p.n);
}

template <int kRows, int kDepth>
void AddDepth(const FewRows& p, int64_t row, int64_t at, int64_t begin,
              int64_t end) {
  int64_t j = begin;
  for (; j + kLanes <= end; j += kLanes)
    AddAt<kRows, kDepth, true>(p, row, at, j, {});
  if (j < end)
    AddAt<kRows, kDepth, false>(p, row, at, j, {static_cast<size_t>(end - j)});
}

// kRows rows, columns [begin, end).
template <int kRows>
void MultiplyFew(const FewRows& p, int64_t row, int64_t begin, int64_t end) {
  // As many streams of weights as the processor follows at once.
  constexpr int kDepth = kRows == 1 ? 16 : 8;
  int64_t at = 0;
  for (; at + kDepth <= p.k; at += kDepth)
    AddDepth<kRows, kDepth>(p, row, at, begin, end);
  for (; at < p.k; ++at) AddDepth<kRows, 1>(p, row, at, begin, end);
}

// All rows, columns [begin, end).
void MultiplyFewRows(const FewRows& p, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 2048;  // columns of results in the first cache
  for (int64_t j = begin; j < end; j += kBlock) {
    const int64_t last = std::min(end, j + kBlock);
    for (int64_t row = 0; row < p.rows; ++row) {
      float* out = p.out + row * p.n;
      if (p.bias != nullptr)
        std::copy(p.bias + j, p.bias + last, out + j);
      else
        std::fill(out + j, out + last, 0.0f);
    }
    int64_t row = 0;
    for (; row + 2 <= p.rows; row += 2) MultiplyFew<2>(p, row, j, last);
    if (row < p.rows) MultiplyFew<1>(p, row, j, last);
    if (!p.relu) continue;
    for (row = 0; row < p.rows; ++row)
      for (int64_t i = j; i < last; ++i) {
        float& v = p.out[row * p.n + i];
        v = v < 0 ? 0 : v;
      }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(MultiplyFewRows);

namespace {

constexpr int64_t kMostRows = 4;
constexpr int64_t kThreadWeights = 131072;  // of a thread at least

// The number of rows and of columns of X, seen as a matrix.
absl::StatusOr<FewRows> ReadFewRows(const BindContext& context) {
  const OpDesc& op = context.op();
  const Tensor *x = context.Input("X"), *y = context.Input("Y");
  if (x->dtype() != DType::kFloat32 || y->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (x->rank() < 2 || y->rank() != 2 || x->size() == 0 || y->size() == 0)
    return Unimplemented(
        "X has shape %s, Y has shape %s; it is for a matrix Y on the right",
        ToString(x->shape()), ToString(y->shape()));
  size_t cut = x->rank() - 1;
  if (op.type == "mul") {
    cut = static_cast<size_t>(op.Attr<int32_t>("x_num_col_dims"));
    if (op.Attr<int32_t>("y_num_col_dims") != 1)
      return Unimplemented("Y is not a matrix");
  } else if (op.Attr<bool>("trans_x") || op.Attr<bool>("trans_y")) {
    return Unimplemented("a factor is transposed");
  }
  FewRows p = {};
  p.rows = NumElements(x->shape(), 0, cut);
  p.k = NumElements(x->shape(), cut, x->rank());
  p.n = y->dim(1);
  if (y->dim(0) != p.k)
    return InvalidArgument(
        "X has shape %s, Y has shape %s: %d columns meet %d rows",
        ToString(x->shape()), ToString(y->shape()), p.k, y->dim(0));
  if (p.rows > kMostRows)
    return Unimplemented("X has %d rows; it is for %d at most", p.rows,
                         kMostRows);
  return p;
}

}  // namespace

absl::StatusOr<Step> BindFewRows(BindContext* context) {
  PD_ASSIGN_OR_RETURN(FewRows p, ReadFewRows(*context));
  Tensor* y = context->Input("Y");
  if (y->layout() != nullptr || context->IsConstant(y))
    return Unimplemented("Y is in blocks, or may be brought into them");
  Tensor* bias = context->Input("Bias");
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", DType::kFloat32, p.n));
  const std::string activation =
      context->op().AttrOr<std::string>("activation", "none");
  p.relu = activation == "relu";
  if (activation != "none" && !p.relu)
    return Unimplemented("it has no activation '%s'", activation);
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), nullptr));
  return Step([=](const RunContext&) {
    FewRows now = p;
    now.x = x->data<float>();
    now.w = y->data<float>();
    now.bias = bias == nullptr ? nullptr : bias->data<float>();
    now.out = out->data<float>();
    const auto run = HWY_DYNAMIC_DISPATCH(MultiplyFewRows);
    ParallelFor(now.n, std::max<int64_t>(256, kThreadWeights / now.k),
                [&](int64_t begin, int64_t end) { run(now, begin, end); });
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
