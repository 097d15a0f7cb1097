// SPDX-License-Identifier: Apache-2.0
// A tensor as [outer, extent, inner] around one axis.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_AXIS_VIEW_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_AXIS_VIEW_H_

#include "libcore/bundle/runtime/types.h"

namespace pd_run {

struct AxisView {
  AxisView(const Shape& shape, int axis)
      : outer(Elements(shape, 0, axis)),
        extent(shape[axis]),
        inner(Elements(shape, axis + 1, shape.rank)) {}

  int64_t outer, extent, inner;
};

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_AXIS_VIEW_H_
