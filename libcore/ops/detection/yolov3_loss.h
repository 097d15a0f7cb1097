// SPDX-License-Identifier: Apache-2.0
// Settings of yolov3_loss and its gradient, read from their op. Shared by their
// implementations.
#ifndef PD_LIBCORE_OPS_DETECTION_YOLOV3_LOSS_H_
#define PD_LIBCORE_OPS_DETECTION_YOLOV3_LOSS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// 1 / (1 + exp(-x)).
template <typename T>
T YoloSigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

struct YoloLoss {
  std::vector<int32_t> anchors, mask;
  int64_t images = 0, side = 0, truths = 0, classes = 0, downsample = 32;
  float ignore = 0.7f, scale = 1;
  bool smooth = true;

  int64_t count() const { return static_cast<int64_t>(mask.size()); }
  int64_t cells() const { return side * side; }
  int64_t input_size() const { return downsample * side; }
  template <typename T>
  T Anchor(int64_t i, int64_t axis) const {
    return static_cast<T>(anchors[static_cast<size_t>(2 * i + axis)]);
  }
  /// Where the values of a cell begin in X; they lie cells() apart.
  int64_t Entry(int64_t image, int64_t m, int64_t cell) const {
    return (image * count() + m) * (classes + 5) * cells() + cell;
  }
  template <typename T>
  T Target(bool same) const {
    if (!smooth) return same ? T(1) : T(0);
    const T smoothing = std::min(T(1) / static_cast<T>(classes), T(1.0 / 40));
    return same ? T(1) - smoothing : smoothing;
  }
};

/// InvalidArgument on shapes and attributes that do not fit together.
absl::StatusOr<YoloLoss> ReadYoloLoss(const OpDesc& op, const Shape& x,
                                      const Shape& boxes);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_DETECTION_YOLOV3_LOSS_H_
