// SPDX-License-Identifier: Apache-2.0
// What pixel_shuffle and its like do to the axes of X.
#ifndef PD_LIBCORE_OPS_PIXEL_SHUFFLE_H_
#define PD_LIBCORE_OPS_PIXEL_SHUFFLE_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/program_desc.h"
#include "libcore/base/shape.h"

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

#endif  // PD_LIBCORE_OPS_PIXEL_SHUFFLE_H_
