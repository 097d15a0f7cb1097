// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/broadcast.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// `low` in `rank` dimensions from `axis` on.
absl::StatusOr<Shape> Aligned(Shape low, size_t rank, int64_t axis) {
  if (axis == -1) {
    axis = static_cast<int64_t>(rank - low.size());
  } else {
    while (!low.empty() && low.back() == 1) low.pop_back();
  }
  if (axis < 0 || axis + low.size() > rank)
    return InvalidArgument(
        "attr 'axis' is %d; the operands have ranks %d and %d, so it must be "
        "in [-1, %d]",
        axis, rank, low.size(), rank - low.size());
  Shape aligned(rank, 1);
  std::copy(low.begin(), low.end(), aligned.begin() + axis);
  return aligned;
}

}  // namespace

absl::StatusOr<Broadcast> BroadcastShapes(const Shape& x, const Shape& y,
                                          int64_t axis) {
  Broadcast b;
  b.x = x;
  b.y = y;
  if (x.size() > y.size()) {
    PD_ASSIGN_OR_RETURN(b.y, Aligned(y, x.size(), axis));
  } else if (x.size() < y.size()) {
    PD_ASSIGN_OR_RETURN(b.x, Aligned(x, y.size(), axis));
  }
  b.out.resize(b.x.size());
  for (size_t i = 0; i < b.out.size(); ++i) {
    const int64_t p = b.x[i], q = b.y[i];
    if (p == q || q == 1) {
      b.out[i] = p;
    } else if (p == 1) {
      b.out[i] = q;
    } else if (p < 0 || q < 0) {
      b.out[i] = std::max(p, q);
    } else {
      return InvalidArgument(
          "shapes %s and %s do not broadcast: extents %d and %d meet in "
          "dimension %d; expected equal ones, or 1",
          ToString(x), ToString(y), p, q, i);
    }
  }
  return b;
}

std::vector<int64_t> BroadcastStrides(const Shape& from, const Shape& to) {
  std::vector<int64_t> strides = RowMajorStrides(from);
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] == 1 && to[i] != 1) strides[i] = 0;
  return strides;
}

StridedLoop<3> BroadcastLoop(const Broadcast& b) {
  const auto x = BroadcastStrides(b.x, b.out);
  const auto y = BroadcastStrides(b.y, b.out);
  const auto out = RowMajorStrides(b.out);
  StridedLoop<3> loop;
  for (size_t i = 0; i < b.out.size(); ++i)
    loop.Add(b.out[i], {x[i], y[i], out[i]});
  return loop;
}

}  // namespace pd
