// SPDX-License-Identifier: Apache-2.0
// Ordering the elements of a line with their places, and the gradient that all
// such ops share: what came out goes back to the place that it was taken from.
// NaN counts as the largest number. Which of equal elements is picked follows
// from the standard algorithms: they are those that PaddlePaddle calls, so
// indices agree.
#ifndef PD_LIBCORE_OPS_REDUCE_RANKED_H_
#define PD_LIBCORE_OPS_REDUCE_RANKED_H_

#include <algorithm>
#include <cstdint>

#include "libcore/ops/bind_context.h"

namespace pd {

/// A bool of top_k_v2 that only imported ONNX models carry: of equal elements
/// those that stand first are picked, in order.
inline constexpr char kTiesByPlace[] = "ties_by_place";

/// An element and its place in its line.
template <typename T>
struct Ranked {
  T value;
  int64_t at;
};

/// Strict orders of values; equal ones are equivalent wherever they stand.
struct Ascending {
  template <typename T>
  bool operator()(const Ranked<T>& a, const Ranked<T>& b) const {
    return (a.value == a.value && b.value != b.value) || a.value < b.value;
  }
};
struct Descending {
  template <typename T>
  bool operator()(const Ranked<T>& a, const Ranked<T>& b) const {
    return (a.value != a.value && b.value == b.value) || a.value > b.value;
  }
};

/// The n elements of a line that lie `stride` apart.
template <typename T>
void FillRanked(const T* from, int64_t n, int64_t stride, Ranked<T>* line) {
  for (int64_t i = 0; i < n; ++i) line[i] = {from[i * stride], i};
}

/// Brings the first k in `order` of n elements to the front, the last of them
/// at k - 1; the others in order too when `sorted`. 1 <= k <= n.
template <typename T, typename Order>
void TopK(Ranked<T>* line, int64_t n, int64_t k, bool sorted,
          const Order& order) {
  if (k * 64 < n) {
    std::partial_sort(line, line + k, line + n, order);
    return;
  }
  std::nth_element(line, line + k - 1, line + n, order);
  if (sorted) std::sort(line, line + k - 1, order);
}

/// The gradient op of such an op: X, Indices and Out@GRAD to X@GRAD, along
/// attr `axis` (the last axis when there is no such attribute).
absl::StatusOr<Step> BindPickedGrad(BindContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_REDUCE_RANKED_H_
