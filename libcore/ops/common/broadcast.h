// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's two rules of broadcasting. axis = -1: as numpy does, extents
// are aligned at the right. axis >= 0: the operand of lower rank, without its
// trailing ones, stands in the other's dimensions from `axis` on.
#ifndef PD_LIBCORE_OPS_COMMON_BROADCAST_H_
#define PD_LIBCORE_OPS_COMMON_BROADCAST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ops/common/strided_loop.h"

namespace pd {

/// Both operands' extents as they meet, with ones put where one has none, and
/// the extents of the result. -1 is an extent that is not known yet.
struct Broadcast {
  Shape x, y, out;
};

/// InvalidArgument with both shapes when they do not fit.
absl::StatusOr<Broadcast> BroadcastShapes(const Shape& x, const Shape& y,
                                          int64_t axis);

/// Strides of a contiguous tensor with extents `from` (ones where broadcast)
/// in a loop over `to`, which has the same rank.
std::vector<int64_t> BroadcastStrides(const Shape& from, const Shape& to);

/// A loop over contiguous x, y and out.
StridedLoop<3> BroadcastLoop(const Broadcast& broadcast);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_BROADCAST_H_
