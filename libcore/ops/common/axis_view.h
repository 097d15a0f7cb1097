// SPDX-License-Identifier: Apache-2.0
// A tensor seen as [outer, n, inner] around one axis.
#ifndef PD_LIBCORE_OPS_COMMON_AXIS_VIEW_H_
#define PD_LIBCORE_OPS_COMMON_AXIS_VIEW_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/base/parallel.h"
#include "libcore/base/shape.h"
#include "libcore/base/status_macros.h"

namespace pd {

struct AxisView {
  int64_t outer = 1, n = 1, inner = 1;

  int64_t lines() const { return n > 0 ? outer * inner : 0; }
  /// The first element of line `i`; the next ones are `inner` apart.
  int64_t Start(int64_t i) const { return i / inner * n * inner + i % inner; }
};

/// `axis` in [-rank, rank); a scalar is one line of one element.
inline absl::StatusOr<AxisView> ViewAxis(const Shape& shape, int64_t axis) {
  AxisView view;
  if (shape.empty()) return view;
  PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, shape.size()));
  const size_t at = static_cast<size_t>(a);
  view.outer = NumElements(shape, 0, at);
  view.n = shape[at];
  view.inner = NumElements(shape, at + 1, shape.size());
  return view;
}

/// Calls `body(line, start)` for every line, from several threads.
template <typename Body>
void ForEachLine(const AxisView& view, const Body& body) {
  const int64_t grain = 8192 / std::max<int64_t>(view.n, 1) + 1;
  ParallelFor(view.lines(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i, view.Start(i));
  });
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_AXIS_VIEW_H_
