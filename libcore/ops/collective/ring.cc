// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/collective/ring.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<const Communicator*> RingOf(const RunContext& run, int32_t id) {
  if (run.world == nullptr)
    return FailedPrecondition(
        "the operator works with other processes, and this is the only one; "
        "start as many as the program was made for: mpirun -n N, or "
        "--processes N");
  return run.world->Ring(id);
}

absl::StatusOr<const Communicator*> RingOf(const RunContext& run, int32_t id,
                                           int32_t nranks, int32_t rank) {
  PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
  if (ring->size() != nranks)
    return InvalidArgument("nranks is %d; ring %d has %d processes", nranks, id,
                           ring->size());
  if (rank >= 0 && ring->rank() != rank)
    return InvalidArgument("rank is %d; this is process %d of ring %d", rank,
                           ring->rank(), id);
  return ring;
}

absl::Status ExpectMultiple(const char* slot, int64_t extent, int32_t nranks) {
  if (nranks < 1) return InvalidArgument("nranks is %d", nranks);
  if (extent >= 0 && extent % nranks != 0)
    return InvalidArgument("%s cannot be divided: %d elements among %d", slot,
                           extent, nranks);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OpDesc>> GradOnRing(const GradRequest& request,
                                               const char* type) {
  std::vector<OpDesc> ops;
  const OpDesc& forward = request.op;
  if (!request.needs_grad(forward.In("X"))) return ops;
  OpDesc op;
  op.type = type;
  op.SetInput("X", {GradName(forward.Out("Out"))});
  op.SetOutput("Out", {GradName(forward.In("X"))});
  for (const char* name : {"ring_id", "nranks", "rank"})
    if (const Attribute* value = forward.FindAttr(name))
      op.attrs[name] = *value;
  ops.push_back(std::move(op));
  return ops;
}

}  // namespace pd
