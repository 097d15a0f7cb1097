// SPDX-License-Identifier: Apache-2.0
// The elements of an axis that start : end : stride picks in the slicing ops.
#ifndef PD_LIBCORE_OPS_MANIPULATION_SLICE_RANGE_H_
#define PD_LIBCORE_OPS_MANIPULATION_SLICE_RANGE_H_

#include <algorithm>
#include <cstdint>

namespace pd {

/// One axis of a slice: `count` elements from `start`.
struct SliceRange {
  int64_t start = 0, count = 0;
};

/// Negative starts and ends count from the end and are clamped to it. With a
/// negative stride an end of -1 is "to the first element, with it"; an end
/// before the first element is `first`: 0 (without it) or -1 (with it). The
/// stride is not 0.
inline SliceRange RangeOf(int64_t start, int64_t end, int64_t stride,
                          int64_t extent, int64_t first = 0) {
  const auto clamped = [extent](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at += extent;
    return std::min(std::max(at, low), high);
  };
  SliceRange r;
  if (stride > 0) {
    r.start = clamped(start, 0, extent);
    end = clamped(end, 0, extent);
    r.count = end > r.start ? (end - r.start - 1) / stride + 1 : 0;
  } else {
    r.start = clamped(start, -1, extent - 1);
    if (end != -1) end = clamped(end, first, extent - 1);
    const int64_t back = -std::max(stride, -INT64_MAX);
    r.count = r.start > end ? (r.start - end - 1) / back + 1 : 0;
  }
  return r;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_MANIPULATION_SLICE_RANGE_H_
