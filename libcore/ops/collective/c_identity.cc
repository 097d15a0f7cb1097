// SPDX-License-Identifier: Apache-2.0
// c_identity: Out = X. Its gradient, where the processes of the ring each go
//   on with a part of the work, is the sum of Out@GRAD over them.
// c_sync_calc_stream, c_sync_comm_stream, c_wait_comm, c_wait_compute, depend,
//   nop: Out = X; where PaddlePaddle orders streams, steps here follow each
//   other anyway.
// barrier: Out = X when all processes of the ring have come to it.
#include <algorithm>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindIdentity(BindContext* context) {
  return AliasOrCopy(context, context->Input("X"), context->Output("Out"));
}

// Pairs of X and Out. An op whose Out is another list than X, as `nop` has it,
// hands nothing on.
absl::Status InferPairs(InferContext* context) {
  const size_t count =
      std::min(context->InputCount("X"), context->OutputCount("Out"));
  for (size_t i = 0; i < count; ++i) context->Share("X", "Out", i);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindPairs(BindContext* context) {
  const size_t count = context->OutputCount("Out");
  if (context->InputCount("X") != count)
    return InvalidArgument("X has %d variables, Out has %d",
                           context->InputCount("X"), count);
  if (count == 1) return BindIdentity(context);
  std::vector<std::pair<Tensor*, Tensor*>> pairs;
  for (size_t i = 0; i < count; ++i)
    pairs.emplace_back(context->Input("X", i), context->Output("Out", i));
  return Step([pairs = std::move(pairs)](const RunContext&) {
    for (const auto& [x, out] : pairs) CopyUnlessSame(x, out);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindBarrier(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  return Step([=, id = context->Attr<int32_t>("ring_id")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    CopyUnlessSame(x, out);
    return ring->Barrier();
  });
}

absl::StatusOr<std::vector<OpDesc>> IdentityGrad(const GradRequest& request) {
  PD_ASSIGN_OR_RETURN(std::vector<OpDesc> ops,
                      GradOnRing(request, "c_allreduce_sum"));
  for (OpDesc& op : ops)
    op.attrs["use_calc_stream"] = op.attrs["use_model_parallel"] = true;
  return ops;
}

}  // namespace

absl::Status RegisterCIdentity(OpRegistry* registry) {
  OpDef identity("c_identity");
  identity.Input("X").Output("Out").Attr("ring_id", int32_t{0});
  identity.Attr("use_calc_stream", true).Attr("use_model_parallel", true);
  identity.Infer(InferUnary).Reference(BindIdentity);
  identity.Grad(GradMaker(IdentityGrad));
  PD_RETURN_IF_ERROR(registry->Add(std::move(identity)));

  OpDef calc("c_sync_calc_stream");
  calc.Input("X").Output("Out").Infer(InferUnary).NoGrad();
  PD_RETURN_IF_ERROR(registry->Add(std::move(calc.Reference(BindIdentity))));

  for (const char* type :
       {"c_sync_comm_stream", "c_wait_comm", "c_wait_compute"}) {
    OpDef op(type);
    op.Inputs("X").Outputs("Out").Attr("ring_id", int32_t{0});
    op.Infer(InferPairs).NoGrad().Reference(BindPairs);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  OpDef nop("nop");
  nop.OptionalInputs("X").OptionalOutputs("Out");
  nop.Infer(InferPairs).NoGrad().Reference(BindPairs);
  PD_RETURN_IF_ERROR(registry->Add(std::move(nop)));

  OpDef depend("depend");
  depend.Input("X").OptionalInputs("Dep").Output("Out");
  depend.Infer(InferUnary).NoGrad().Reference(BindIdentity);
  PD_RETURN_IF_ERROR(registry->Add(std::move(depend)));

  OpDef barrier("barrier");
  barrier.Input("X").Output("Out").Attr("ring_id", int32_t{0});
  barrier.Infer(InferUnary).NoGrad().With(Trait::kCommunicates);
  return registry->Add(std::move(barrier.Reference(BindBarrier)));
}

}  // namespace pd
