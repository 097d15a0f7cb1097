// SPDX-License-Identifier: Apache-2.0
// Collective operators as implementations on a plug-in's device.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/device_binding.h"
#include "libcore/plugin/plugin_collectives.h"

namespace pd {
namespace {

// The newer names have slots in small letters, and the reduction as a number.
struct CollectiveOp {
  const char* type;
  Collective kind;
  const char* root;  // its attribute; null: it has none
  const char *x = "X", *out = "Out";
};
constexpr CollectiveOp kCollectiveOps[] = {
    {"c_allreduce_sum", Collective::kAllReduce, nullptr},
    {"c_allreduce_max", Collective::kAllReduce, nullptr},
    {"c_allreduce_min", Collective::kAllReduce, nullptr},
    {"c_allreduce_prod", Collective::kAllReduce, nullptr},
    {"mp_allreduce_sum", Collective::kAllReduce, nullptr},
    {"c_reduce_sum", Collective::kReduce, "root_id"},
    {"c_reduce_max", Collective::kReduce, "root_id"},
    {"c_reduce_min", Collective::kReduce, "root_id"},
    {"c_reduce_prod", Collective::kReduce, "root_id"},
    {"c_broadcast", Collective::kBroadcast, "root"},
    {"c_allgather", Collective::kAllGather, nullptr},
    {"c_reducescatter", Collective::kReduceScatter, nullptr},
    {"alltoall", Collective::kAllToAll, nullptr},
    {"c_scatter", Collective::kScatter, "root"},
    {"all_reduce", Collective::kAllReduce, nullptr, "x", "out"},
    {"reduce", Collective::kReduce, "root_id", "x", "out"},
    {"broadcast", Collective::kBroadcast, "root", "x", "out"},
    {"all_gather", Collective::kAllGather, nullptr, "x", "out"},
    {"reduce_scatter", Collective::kReduceScatter, nullptr, "x", "out"},
    {"all_to_all", Collective::kAllToAll, nullptr, "x", "out"},
};

absl::StatusOr<Reduction> ReductionOfOp(const OpDesc& op) {
  const Reduction reductions[] = {Reduction::kSum, Reduction::kMax,
                                  Reduction::kMin, Reduction::kProd};
  const int32_t type = op.AttrOr<int32_t>("reduce_type", 0);
  if (type < 0 || type > 3)
    return InvalidArgument(
        "attr 'reduce_type' is %d; expected 0 (sum), 1 (max), 2 (min) or 3 "
        "(prod)",
        type);
  if (absl::EndsWith(op.type, "_max")) return Reduction::kMax;
  if (absl::EndsWith(op.type, "_min")) return Reduction::kMin;
  if (absl::EndsWith(op.type, "_prod")) return Reduction::kProd;
  return reductions[type];
}

PluginDevice* PluginDeviceOf(DeviceBinding* binding) {
  return static_cast<PluginDevice*>(binding->device());
}

absl::StatusOr<Step> BindCollective(BindContext* context,
                                    DeviceBinding* binding) {
  const OpDesc& op = context->op();
  const CollectiveOp* row = kCollectiveOps;
  while (op.type != row->type) ++row;
  Tensor* x = context->Input(row->x);
  Tensor* out = context->Output(row->out);
  CollectiveCall call;
  call.kind = row->kind;
  call.dtype = x->dtype();
  PD_ASSIGN_OR_RETURN(call.op, ReductionOfOp(op));
  if (row->root != nullptr) call.root = op.Attr<int32_t>(row->root);
  const bool in_parts = call.kind == Collective::kReduceScatter ||
                        call.kind == Collective::kScatter;
  const bool has_nranks = in_parts || call.kind == Collective::kAllGather;
  const int32_t nranks = has_nranks ? op.Attr<int32_t>("nranks") : 0;
  const int64_t rows = x->shape().empty() ? 1 : x->dim(0);
  call.count = in_parts ? out->size() : x->size();
  if (call.kind == Collective::kAllReduce ||
      call.kind == Collective::kBroadcast)
    context->MayShare(x, out);
  return Step([=, device = PluginDeviceOf(binding), root = row->root,
               id = op.Attr<int32_t>("ring_id")](
                  const RunContext& run) mutable -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring,
                        has_nranks ? RingOf(run, id, nranks) : RingOf(run, id));
    if (call.root < 0 || call.root >= ring->size())
      return InvalidArgument("%s is %d; ring %d has %d processes", root,
                             call.root, id, ring->size());
    if (call.count == 0) return absl::OkStatus();
    CollectiveCall now = call;
    if (call.kind == Collective::kAllToAll) {
      PD_RETURN_IF_ERROR(ExpectMultiple("axis 0 of X", rows, ring->size()));
      now.count = call.count / ring->size();
    }
    now.in = x->raw();
    now.out = out->raw();
    return device->collectives().Run(now, *ring);
  });
}

absl::StatusOr<Step> BindDeviceSend(BindContext* context,
                                    DeviceBinding* binding) {
  const Tensor* x = context->Input("X");
  PD_RETURN_IF_ERROR(MessageHeaderOf(x->dtype(), x->shape()).status());
  PD_ASSIGN_OR_RETURN(const MessagePart part,
                      MessagePartOf(context->op(), "X", *x));
  return Step([=, device = PluginDeviceOf(binding),
               id = context->Attr<int32_t>("ring_id"),
               peer = context->Attr<int32_t>("peer")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    return device->collectives().Send(*ring, peer, *x, part);
  });
}

absl::StatusOr<Step> BindDeviceReceive(BindContext* context,
                                       DeviceBinding* binding) {
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const MessagePart part,
                      MessagePartOf(context->op(), "Out", *out));
  return Step([=, device = PluginDeviceOf(binding),
               id = context->Attr<int32_t>("ring_id"),
               peer = context->Attr<int32_t>("peer")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    return device->collectives().Receive(*ring, peer, part, out);
  });
}

struct MessageOp {
  const char* type;
  DeviceBindFn bind;
};
constexpr MessageOp kMessageOps[] = {{"send_v2", BindDeviceSend},
                                     {"partial_send", BindDeviceSend},
                                     {"recv_v2", BindDeviceReceive},
                                     {"partial_recv", BindDeviceReceive}};

}  // namespace

absl::Status AttachCollectives(PluginDevice* device, OpRegistry* registry) {
  const auto attach = [registry](const char* type, DeviceBindFn bind) {
    return registry->Find(type) == nullptr
               ? absl::OkStatus()
               : registry->AddImplementation(
                     type, Implementation("xccl", bind).AskedFirst());
  };
  for (const CollectiveOp& op : kCollectiveOps)
    if (device->collectives().Has(op.kind))
      PD_RETURN_IF_ERROR(attach(op.type, BindCollective));
  if (!device->collectives().HasMessages()) return absl::OkStatus();
  for (const MessageOp& op : kMessageOps)
    PD_RETURN_IF_ERROR(attach(op.type, op.bind));
  return absl::OkStatus();
}

}  // namespace pd
