// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/quantize/quantize.h"

#include "libcore/base/error.h"

namespace pd {

absl::StatusOr<QuantAttrs> ReadQuantAttrs(const OpDesc& op) {
  // moving_average_abs_max_scale, which quantizes nothing, has neither.
  const int32_t bits = op.AttrOr<int32_t>("bit_length", 8);
  if (bits < 1 || bits > 16)
    return InvalidArgument("attr 'bit_length' is %d; expected 1 to 16", bits);
  const int32_t type = op.AttrOr<int32_t>("round_type", 1);
  if (type != 0 && type != 1)
    return InvalidArgument("attr 'round_type' is %d; expected 0 or 1", type);
  QuantAttrs attrs;
  attrs.levels = QuantLevels(bits);
  attrs.to_even = type == 0;
  return attrs;
}

absl::StatusOr<ChannelView> ViewChannels(const Shape& shape, int64_t axis) {
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return InvalidArgument("attr 'quant_axis' is %d; 'X' has shape %s", axis,
                           ToString(shape));
  ChannelView view;
  const auto at = static_cast<size_t>(axis);
  for (size_t i = 0; i < at; ++i) view.outer *= shape[i];
  view.channels = shape[at];
  for (size_t i = at + 1; i < shape.size(); ++i) view.inner *= shape[i];
  return view;
}

}  // namespace pd
