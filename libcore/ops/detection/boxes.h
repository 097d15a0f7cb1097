// SPDX-License-Identifier: Apache-2.0
// Boxes [xmin, ymin, xmax, ymax] as detection ops compare them. Coordinates are
// either continuous (normalized) or name the first and the last pixel, which
// makes a box one longer.
#ifndef PD_LIBCORE_OPS_DETECTION_BOXES_H_
#define PD_LIBCORE_OPS_DETECTION_BOXES_H_

#include <algorithm>
#include <cstdint>

namespace pd {

/// 0 for a box whose corners are the wrong way round.
template <typename T>
T BoxArea(const T* box, bool normalized) {
  if (box[2] < box[0] || box[3] < box[1]) return T(0);
  const T extra = normalized ? T(0) : T(1);
  return (box[2] - box[0] + extra) * (box[3] - box[1] + extra);
}

/// Intersection over union; 0 for boxes that do not meet.
template <typename T>
T BoxOverlap(const T* a, const T* b, bool normalized) {
  if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return T(0);
  const T extra = normalized ? T(0) : T(1);
  const T width = std::min(a[2], b[2]) - std::max(a[0], b[0]) + extra;
  const T height = std::min(a[3], b[3]) - std::max(a[1], b[1]) + extra;
  const T common = width * height;
  return common / (BoxArea(a, normalized) + BoxArea(b, normalized) - common);
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_DETECTION_BOXES_H_
