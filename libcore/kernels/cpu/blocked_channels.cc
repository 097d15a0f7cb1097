// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/blocked_channels.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/kernels/cpu/vector_floats.h"

namespace pd {
namespace cpu {

namespace {

// [dimension 0, dimension 1, others..., blocks]; `blocks` are dimensions in
// whose places blocks of VectorFloats() lie, outermost first.
LayoutPtr InBlocks(const Shape& shape, const std::vector<int>& blocks) {
  const int64_t lanes = VectorFloats();
  Layout layout;
  layout.shape = layout.padded = shape;
  layout.strides.resize(shape.size());
  std::vector<int64_t> outer = shape;
  int64_t stride = 1;
  for (const int d : blocks) {
    const auto at = static_cast<size_t>(d);
    outer[at] = (shape[at] + lanes - 1) / lanes;
    layout.padded[at] = outer[at] * lanes;
    layout.blocks.push_back({d, lanes});
    stride *= lanes;
  }
  for (size_t d = shape.size(); d-- > 0; stride *= outer[d])
    layout.strides[d] = stride;
  return Canonical(std::move(layout));
}

}  // namespace

LayoutPtr BlockedChannels(const Shape& shape) { return InBlocks(shape, {1}); }

LayoutPtr BlockedWeights(const Shape& shape) { return InBlocks(shape, {1, 0}); }

}  // namespace cpu
}  // namespace pd
