// SPDX-License-Identifier: Apache-2.0
// c_reducescatter: Out = this process's part, of nranks along axis 0, of the
//   sum of X over the processes of the ring. Its gradient is c_allgather.
// alltoall: X is cut along axis 0 in as many parts as the ring has processes;
//   Out = the parts that the processes have for this one, in their order. Its
//   gradient is alltoall.
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferReduceScatter(InferContext* context) {
  TensorMeta x = context->Input("X");
  const auto nranks = context->Attr<int32_t>("nranks");
  if (x.shape.empty()) return InvalidArgument("X has shape []");
  PD_RETURN_IF_ERROR(ExpectMultiple("axis 0 of X", x.shape[0], nranks));
  if (x.shape[0] >= 0) x.shape[0] /= nranks;
  context->SetOutput("Out", x.shape, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReduceScatter(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return Step([=, id = context->Attr<int32_t>("ring_id"),
               nranks = context->Attr<int32_t>("nranks")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id, nranks));
    return ring->ReduceScatter(Reduction::kSum, x->dtype(), out->size(),
                               x->raw(), out->raw());
  });
}

absl::StatusOr<Step> BindAllToAll(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const int64_t rows = x->shape().empty() ? 1 : x->dim(0);
  return Step([=, id = context->Attr<int32_t>("ring_id")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    PD_RETURN_IF_ERROR(ExpectMultiple("axis 0 of X", rows, ring->size()));
    const std::vector<size_t> parts(
        static_cast<size_t>(ring->size()),
        x->bytes() / static_cast<size_t>(ring->size()));
    return ring->AllToAll(x->raw(), parts, out->raw(), parts);
  });
}

absl::StatusOr<std::vector<OpDesc>> ReduceScatterGrad(
    const GradRequest& request) {
  return GradOnRing(request, "c_allgather");
}
absl::StatusOr<std::vector<OpDesc>> AllToAllGrad(const GradRequest& request) {
  return GradOnRing(request, "alltoall");
}

}  // namespace

absl::Status RegisterCReducescatter(OpRegistry* registry) {
  OpDef scatter("c_reducescatter");
  scatter.Input("X").Output("Out").Attr("ring_id", int32_t{0});
  scatter.Attr("nranks", int32_t{1}).Attr("use_calc_stream", false);
  scatter.Infer(InferReduceScatter).Grad(GradMaker(ReduceScatterGrad));
  scatter.With(Trait::kCommunicates).Reference(BindReduceScatter);
  PD_RETURN_IF_ERROR(registry->Add(std::move(scatter)));

  OpDef alltoall("alltoall");
  alltoall.Input("X").Output("Out").Attr("ring_id", int32_t{0});
  alltoall.Attr("use_calc_stream", false).Infer(InferUnary);
  alltoall.Grad(GradMaker(AllToAllGrad)).With(Trait::kCommunicates);
  return registry->Add(std::move(alltoall.Reference(BindAllToAll)));
}

}  // namespace pd
