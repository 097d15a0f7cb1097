// SPDX-License-Identifier: Apache-2.0
// For X [n, a, b, c], an `axis` of 1, 2 or 3 and each of `indexes` on it: the
// slice there is a matrix; its elements are taken from the largest to the
// smallest, skipping rows and columns that were taken. Out is 1 along `axis` at
// every place taken, else 0.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The slices of one image: [rows, columns] with strides; `extent` along axis.
struct Slices {
  int64_t rows, columns, row_step, column_step, extent, step, image;
  std::vector<int64_t> indexes;
};

absl::StatusOr<Slices> ReadSlices(const OpDesc& op, const Shape& x) {
  const int64_t axis = op.Attr<int32_t>("axis");
  if (x.size() != 4 || axis < 1 || axis > 3)
    return InvalidArgument(
        "'X' has shape %s and attr 'axis' is %d; expected rank 4 and 1 to 3",
        ToString(x), axis);
  const auto strides = RowMajorStrides(x);
  const size_t row = axis == 1 ? 2 : 1, column = axis == 3 ? 2 : 3;
  Slices s{x[row],  x[column],     strides[row], strides[column],
           x[axis], strides[axis], strides[0],   IntsAttr(op, "indexes")};
  if (s.indexes.empty()) return InvalidArgument("attr 'indexes' is empty");
  for (int64_t i : s.indexes)
    if (i < 0 || i >= s.extent)
      return InvalidArgument("attr 'indexes' holds %d; axis %d has %d", i, axis,
                             s.extent);
  return s;
}

template <typename T>
void Focus(const Slices& s, const T* x, T* out) {
  std::vector<std::pair<T, int64_t>> order;
  for (int64_t i = 0; i < s.rows * s.columns; ++i) {
    const T v = x[i / s.columns * s.row_step + i % s.columns * s.column_step];
    order.push_back({v, i});
  }
  // NaNs last, so that this is an order.
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::isnan(b.first) ? !std::isnan(a.first) : a.first > b.first;
  });
  std::vector<bool> row_taken(s.rows), column_taken(s.columns);
  for (const auto& [v, i] : order) {
    const int64_t r = i / s.columns, c = i % s.columns;
    if (row_taken[r] || column_taken[c]) continue;
    row_taken[r] = column_taken[c] = true;
    for (int64_t k = 0; k < s.extent; ++k)
      out[r * s.row_step + c * s.column_step + k * s.step] = T(1);
  }
}

absl::StatusOr<Step> BindFocus(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Slices s, ReadSlices(context->op(), x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(out->data<T>(), out->size(), T(0));
      for (int64_t n = 0; n < x->dim(0); ++n)
        for (int64_t index : s.indexes)
          Focus<T>(s, x->data<T>() + n * s.image + index * s.step,
                   out->data<T>() + n * s.image);
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterSimilarityFocus(OpRegistry* registry) {
  OpDef op("similarity_focus");
  op.Input("X").Output("Out");
  op.RequiredAttr("axis", AttrType::kInt);
  op.RequiredAttr("indexes", AttrType::kInts);
  op.Infer(InferUnary).NoGrad().Reference(BindFocus);
  return registry->Add(std::move(op));
}

}  // namespace pd
