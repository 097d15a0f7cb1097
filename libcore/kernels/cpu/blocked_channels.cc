// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/blocked_channels.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/kernels/cpu/vector_floats.h"

namespace pd {
namespace cpu {

namespace {

// [dimension 0, dimension 1, others..., blocks]; one block a dimension.
LayoutPtr InBlocks(const Shape& shape,
                   const std::vector<Layout::Block>& blocks) {
  Layout layout;
  layout.shape = layout.padded = shape;
  layout.strides.resize(shape.size());
  std::vector<int64_t> outer = shape;
  int64_t stride = 1;
  for (const Layout::Block& block : blocks) {
    const auto at = static_cast<size_t>(block.dim);
    outer[at] = (shape[at] + block.size - 1) / block.size;
    layout.padded[at] = outer[at] * block.size;
    stride *= block.size;
  }
  layout.blocks = blocks;
  for (size_t d = shape.size(); d-- > 0; stride *= outer[d])
    layout.strides[d] = stride;
  return Canonical(std::move(layout));
}

}  // namespace

LayoutPtr BlockedChannels(const Shape& shape) {
  return InBlocks(shape, {{1, VectorFloats()}});
}

LayoutPtr BlockedWeights(const Shape& shape) {
  return InBlocks(shape, {{1, VectorFloats()}, {0, VectorFloats()}});
}

LayoutPtr PanelWeights(const Shape& shape) {
  return InBlocks(shape, {{1, VectorFloats()}, {0, 2 * VectorFloats()}});
}

}  // namespace cpu
}  // namespace pd
