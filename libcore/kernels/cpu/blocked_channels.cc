// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/blocked_channels.h"

#include <utility>

#include "libcore/kernels/cpu/vector_floats.h"

namespace pd {
namespace cpu {

LayoutPtr BlockedChannels(const Shape& shape) {
  const int64_t lanes = VectorFloats();
  Layout layout;
  layout.shape = layout.padded = shape;
  layout.padded[1] = (shape[1] + lanes - 1) / lanes * lanes;
  layout.blocks = {{1, lanes}};
  layout.strides.resize(shape.size());
  int64_t stride = lanes;
  for (size_t d = shape.size(); d-- > 2; stride *= shape[d])
    layout.strides[d] = stride;
  layout.strides[1] = stride;
  layout.strides[0] = stride * (layout.padded[1] / lanes);
  return Canonical(std::move(layout));
}

}  // namespace cpu
}  // namespace pd
