// SPDX-License-Identifier: Apache-2.0
// The processes that a collective op works with.
#ifndef PD_LIBCORE_OPS_COLLECTIVE_RING_H_
#define PD_LIBCORE_OPS_COLLECTIVE_RING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/dist/world.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/op_def.h"

namespace pd {

/// The group of ring `id`. FailedPrecondition where this is the only process.
absl::StatusOr<const Communicator*> RingOf(const RunContext& run, int32_t id);

/// The same for an op whose attributes say that the ring has `nranks`
/// processes, of which this is number `rank` (-1: not said).
absl::StatusOr<const Communicator*> RingOf(const RunContext& run, int32_t id,
                                           int32_t nranks, int32_t rank = -1);

/// InvalidArgument unless `extent`, an axis of `slot`, is a multiple of
/// `nranks`, which is 1 or more.
absl::Status ExpectMultiple(const char* slot, int64_t extent, int32_t nranks);

/// The gradient of an op from X to Out that is an op `type` from Out@GRAD to
/// X@GRAD, with the forward op's ring, and its rank and nranks where it has
/// them.
absl::StatusOr<std::vector<OpDesc>> GradOnRing(const GradRequest& request,
                                               const char* type);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COLLECTIVE_RING_H_
