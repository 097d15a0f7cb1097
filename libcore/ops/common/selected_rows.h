// SPDX-License-Identifier: Apache-2.0
// Selected rows: some rows of a tall tensor, as the gradient of an embedding
// is. A row may be there several times; its value is the sum, taken in the
// order in which the rows lie there.
#ifndef PD_LIBCORE_OPS_COMMON_SELECTED_ROWS_H_
#define PD_LIBCORE_OPS_COMMON_SELECTED_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/base/parallel.h"
#include "libcore/ops/bind_context.h"

namespace pd {

inline bool IsSelectedRows(const Tensor* tensor) {
  return tensor != nullptr && tensor->kind() == VarKind::kSelectedRows;
}

/// Elements of one row.
int64_t RowWidth(const Tensor& tensor);

/// InvalidArgument unless there are as many row numbers as rows, each in
/// [0, height). `name` is the slot.
absl::Status CheckRows(absl::string_view name, const Tensor& selected,
                       int64_t height);

/// The rows that are there, each once, in ascending order.
class RowOrder {
 public:
  /// Allocates only when there are more rows than ever before.
  void Sort(const std::vector<int64_t>& rows);

  size_t size() const { return rows_.size(); }
  int64_t row(size_t k) const { return rows_[k]; }
  const std::vector<int64_t>& rows() const { return rows_; }
  /// True: some row is there several times.
  bool repeats() const { return rows_.size() < places_.size(); }
  /// Where row(k) lies, in ascending order.
  const int64_t* begin(size_t k) const { return places_.data() + starts_[k]; }
  const int64_t* end(size_t k) const { return places_.data() + starts_[k + 1]; }

 private:
  std::vector<int64_t> places_;  // ordered by row, then by place
  std::vector<int64_t> moved_;   // while sorting
  std::vector<int64_t> rows_;
  std::vector<size_t> starts_;
};

/// sums[k, :] = the value of row order.row(k).
template <typename From, typename To>
void SumRows(const Tensor& selected, const RowOrder& order, To* sums) {
  const int64_t width = RowWidth(selected);
  const From* x = selected.data<From>();
  const int64_t grain = 8192 / std::max<int64_t>(width, 1) + 1;
  ParallelFor(static_cast<int64_t>(order.size()), grain,
              [&](int64_t first, int64_t last) {
                for (int64_t k = first; k < last; ++k) {
                  To* sum = sums + k * width;
                  std::fill(sum, sum + width, To(0));
                  const auto at = static_cast<size_t>(k);
                  for (const int64_t* p = order.begin(at); p != order.end(at);
                       ++p)
                    for (int64_t j = 0; j < width; ++j)
                      sum[j] = To(sum[j] + To(x[*p * width + j]));
                }
              });
}

/// dense[r, :] += every row r, for all rows. The row numbers have been checked.
template <typename From, typename To>
void AddRows(const Tensor& selected, To* dense) {
  const int64_t width = RowWidth(selected);
  const From* x = selected.data<From>();
  const std::vector<int64_t>& rows = selected.rows();
  // Each thread owns columns, so none writes into another's sums.
  ParallelFor(width, 16, [&](int64_t begin, int64_t end) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const From* from = x + static_cast<int64_t>(i) * width;
      To* to = dense + rows[i] * width;
      for (int64_t j = begin; j < end; ++j) to[j] = To(to[j] + To(from[j]));
    }
  });
}

/// For ops that compute on each element: `step`, after which `out` also has
/// the row numbers of `x`. Tensors that are not selected rows: just `step`.
Step KeepingRows(const Tensor* x, Tensor* out, Step step);

/// The same for what `kBind` makes of inputs X and outputs Out.
template <absl::StatusOr<Step> (*kBind)(BindContext*)>
absl::StatusOr<Step> BindKeepingRows(BindContext* context) {
  absl::StatusOr<Step> step = kBind(context);
  if (!step.ok()) return step;
  return KeepingRows(context->Input("X"), context->Output("Out"),
                     *std::move(step));
}

/// For ops that need the value of each row (a norm, a bound): a step that puts
/// the rows of `x` into `out`, which has as many, each row's value at the place
/// where it comes first and zeros at the others. Null when `x` is dense.
absl::StatusOr<Step> MergeDuplicates(BindContext* context, Tensor* x,
                                     Tensor* out);

/// Out is X: an alias, or a copy of selected rows.
Step AliasOrCopy(BindContext* context, Tensor* x, Tensor* out);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_SELECTED_ROWS_H_
