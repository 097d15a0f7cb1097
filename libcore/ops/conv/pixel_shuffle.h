// SPDX-License-Identifier: Apache-2.0
// The split and order of the axes of X in pixel_shuffle and similar ops.
#ifndef PD_LIBCORE_OPS_CONV_PIXEL_SHUFFLE_H_
#define PD_LIBCORE_OPS_CONV_PIXEL_SHUFFLE_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// X in parts, the order of the parts in Out, and how many of them make up each
/// of Out's four axes.
struct Shuffle {
  Shape parts;
  std::vector<size_t> order;
  std::vector<size_t> joined;

  Shape Out() const;
};

/// InvalidArgument where the attribute does not fit X.
absl::StatusOr<Shuffle> ShuffleOf(const OpDesc& op, const Shape& x);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONV_PIXEL_SHUFFLE_H_
