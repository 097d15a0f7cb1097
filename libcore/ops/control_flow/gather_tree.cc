// SPDX-License-Identifier: Apache-2.0
// The sequences that a beam search found: Ids and Parents are [time, batch,
// beam]; going back from the last step, Out holds the ids of each beam's
// ancestors. No gradient.
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferGatherTree(InferContext* context) {
  const TensorMeta& ids = context->Input("Ids");
  PD_RETURN_IF_ERROR(CheckIndexType("Ids", ids.dtype));
  if (ids.shape.size() != 3)
    return InvalidArgument("Ids has shape %s; expected rank 3",
                           ToString(ids.shape));
  context->Share("Ids", "Out");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindGatherTree(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* parents = context->Input("Parents");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Parents", ids->dtype(), ids->shape()));
  return DispatchTypes<int32_t, int64_t>(
      ids->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const int64_t steps = ids->dim(0), batch = ids->dim(1),
                        beams = ids->dim(2);
          PD_RETURN_IF_ERROR(CheckIndices("Parents", *parents, 0, beams));
          for (int64_t b = 0; b < batch; ++b) {
            for (int64_t beam = 0; beam < beams; ++beam) {
              int64_t from = beam;
              for (int64_t t = steps; t-- > 0;) {
                const int64_t row = (t * batch + b) * beams;
                out->data<T>()[row + beam] = ids->data<T>()[row + from];
                from = parents->data<T>()[row + from];
              }
            }
          }
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterGatherTree(OpRegistry* registry) {
  OpDef op("gather_tree");
  op.Input("Ids").Input("Parents").Output("Out");
  op.Infer(InferGatherTree).NoGrad().Reference(BindGatherTree);
  return registry->Add(std::move(op));
}

}  // namespace pd
