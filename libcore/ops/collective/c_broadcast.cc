// SPDX-License-Identifier: Apache-2.0
// c_broadcast: Out = the X of process `root` of the ring.
// c_scatter: Out = this process's part of the X of process `root`, cut in
//   nranks along axis 0. The other processes' X gives the shape alone.
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindBroadcast(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  return Step([=, id = context->Attr<int32_t>("ring_id"),
               root = context->Attr<int32_t>("root")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    if (ring->rank() == root) CopyUnlessSame(x, out);
    return ring->Broadcast(root, out->raw(), out->bytes());
  });
}

absl::Status InferScatter(InferContext* context) {
  TensorMeta x = context->Input("X");
  const auto nranks = context->Attr<int32_t>("nranks");
  if (x.shape.empty()) return InvalidArgument("X has shape []");
  PD_RETURN_IF_ERROR(ExpectMultiple("axis 0 of X", x.shape[0], nranks));
  if (x.shape[0] >= 0) x.shape[0] /= nranks;
  context->SetOutput("Out", x.shape, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindScatter(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return Step([=, id = context->Attr<int32_t>("ring_id"),
               root = context->Attr<int32_t>("root"),
               nranks = context->Attr<int32_t>("nranks")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id, nranks));
    if (root < 0 || root >= nranks)
      return InvalidArgument("root is %d; ring %d has %d processes", root, id,
                             nranks);
    std::vector<size_t> sends(static_cast<size_t>(nranks), 0), receives = sends;
    if (ring->rank() == root) sends.assign(sends.size(), out->bytes());
    receives[static_cast<size_t>(root)] = out->bytes();
    return ring->AllToAll(x->raw(), sends, out->raw(), receives);
  });
}

}  // namespace

absl::Status RegisterCBroadcast(OpRegistry* registry) {
  OpDef broadcast("c_broadcast");
  broadcast.Input("X").Output("Out").Attr("ring_id", int32_t{0});
  broadcast.Attr("root", int32_t{0}).Attr("use_calc_stream", false);
  broadcast.Infer(InferUnary).NoGrad().With(Trait::kCommunicates);
  PD_RETURN_IF_ERROR(
      registry->Add(std::move(broadcast.Reference(BindBroadcast))));

  OpDef scatter("c_scatter");
  scatter.Input("X").Output("Out").Attr("ring_id", int32_t{0});
  scatter.Attr("root", int32_t{0}).Attr("nranks", int32_t{0});
  scatter.Attr("use_calc_stream", false).Infer(InferScatter).NoGrad();
  scatter.With(Trait::kCommunicates).Reference(BindScatter);
  return registry->Add(std::move(scatter));
}

}  // namespace pd
