// SPDX-License-Identifier: Apache-2.0
// c_allreduce_sum, _max, _min, _prod, mp_allreduce_sum: Out = the reduction of
//   X over the processes of the ring, in all of them.
// c_reduce_sum, _max, _min, _prod: Out = the same in process root_id; in the
//   others, where PaddlePaddle leaves it undefined, X.
// Gradients: of c_allreduce_sum the sum of Out@GRAD over the ring; of
//   mp_allreduce_sum, whose Out@GRAD is the same everywhere, Out@GRAD.
// Sums are made in the order of a tree over processes (dist/communicator.h).
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

Reduction ReductionOf(const std::string& type) {
  if (absl::EndsWith(type, "_max")) return Reduction::kMax;
  if (absl::EndsWith(type, "_min")) return Reduction::kMin;
  if (absl::EndsWith(type, "_prod")) return Reduction::kProd;
  return Reduction::kSum;
}

absl::StatusOr<Step> BindAllReduce(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  return Step([=, op = ReductionOf(context->op().type),
               id = context->Attr<int32_t>("ring_id")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    return ring->AllReduce(op, x->dtype(), x->size(), x->raw(), out->raw());
  });
}

absl::StatusOr<Step> BindReduceToRoot(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const auto root = context->Attr<int32_t>("root_id");
  Tensor* sum = context->Scratch(x->bytes());
  return Step([=, op = ReductionOf(context->op().type),
               id = context->Attr<int32_t>("ring_id")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    if (root < 0 || root >= ring->size())
      return InvalidArgument("root_id is %d; ring %d has %d processes", root,
                             id, ring->size());
    PD_RETURN_IF_ERROR(
        ring->AllReduce(op, x->dtype(), x->size(), x->raw(), sum->raw()));
    const void* from = ring->rank() == root ? sum->raw() : x->raw();
    if (from != out->raw() && out->bytes() > 0)
      std::memcpy(out->raw(), from, out->bytes());
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<OpDesc>> AllReduceGrad(const GradRequest& request) {
  return GradOnRing(request, "c_allreduce_sum");
}
absl::StatusOr<std::vector<OpDesc>> MpAllReduceGrad(
    const GradRequest& request) {
  return GradOnRing(request, "c_identity");
}

}  // namespace

absl::Status RegisterCAllreduce(OpRegistry* registry) {
  for (const char* type : {"c_allreduce_sum", "c_allreduce_max",
                           "c_allreduce_min", "c_allreduce_prod"}) {
    OpDef op(type);
    const bool sum = absl::EndsWith(type, "_sum");
    op.Input("X").Output("Out").Attr("ring_id", int32_t{0});
    if (sum) op.OptionalInput("Cond");
    op.Attr("use_calc_stream", false).Attr("use_model_parallel", false);
    op.Infer(InferUnary).With(Trait::kCommunicates).Reference(BindAllReduce);
    if (sum)
      op.Grad(GradMaker(AllReduceGrad));
    else
      op.NoGrad();
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  for (const char* type :
       {"c_reduce_sum", "c_reduce_max", "c_reduce_min", "c_reduce_prod"}) {
    OpDef op(type);
    op.Input("X").Output("Out").Attr("ring_id", int32_t{0});
    op.Attr("root_id", int32_t{0}).Attr("use_calc_stream", false);
    op.Infer(InferUnary).NoGrad().With(Trait::kCommunicates);
    op.Reference(BindReduceToRoot);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  OpDef parallel("mp_allreduce_sum");
  parallel.Input("X").Output("Out").Attr("ring_id", int32_t{0});
  parallel.Attr("use_calc_stream", false).Attr("use_model_parallel", false);
  parallel.Infer(InferUnary).Grad(GradMaker(MpAllReduceGrad));
  parallel.With(Trait::kCommunicates).Reference(BindAllReduce);
  return registry->Add(std::move(parallel));
}

}  // namespace pd
