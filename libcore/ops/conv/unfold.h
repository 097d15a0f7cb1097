// SPDX-License-Identifier: Apache-2.0
// Windows of images as columns: what the attributes of unfold and fold mean.
#ifndef PD_LIBCORE_OPS_CONV_UNFOLD_H_
#define PD_LIBCORE_OPS_CONV_UNFOLD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// One direction, down or across.
struct Direction {
  int64_t extent = 0, kernel = 1, stride = 1, dilation = 1, before = 0,
          after = 0;

  /// The number of windows; -1 when the extent is not known.
  int64_t Windows() const {
    if (extent < 0) return -1;
    const int64_t room =
        extent + before + after - (dilation * (kernel - 1) + 1);
    return room < 0 ? 0 : room / stride + 1;
  }
};

/// The windows of a plane.
struct Columns {
  Direction down, across;
  int64_t kernel() const { return down.kernel * across.kernel; }
  int64_t windows() const {
    const int64_t a = down.Windows(), b = across.Windows();
    return a < 0 || b < 0 ? -1 : a * b;
  }
};

/// Of X of unfold, and of X of fold. InvalidArgument where they do not fit.
absl::StatusOr<Columns> ColumnsOfImage(const OpDesc& op, const Shape& x);
absl::StatusOr<Columns> ColumnsOfFold(const OpDesc& op, const Shape& x);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONV_UNFOLD_H_
