// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/plugin_collectives.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/device_binding.h"
#include "libcore/plugin/kernel_objects.h"

namespace pd {
namespace {

// The most bytes by which a driver may name a group.
constexpr size_t kLargestRootId = 1 << 16;

C_CCLReduceOp COpOf(Reduction op) {
  switch (op) {
    case Reduction::kProd:
      return PRODUCT;
    case Reduction::kMax:
      return MAX;
    case Reduction::kMin:
      return MIN;
    default:
      return SUM;
  }
}

const char* CollectiveName(Collective kind) {
  switch (kind) {
    case Collective::kBroadcast:
      return "xccl_broadcast";
    case Collective::kAllGather:
      return "xccl_all_gather";
    case Collective::kReduceScatter:
      return "xccl_reduce_scatter";
    default:
      return "xccl_all_reduce";
  }
}

// Elements of `in` and of `out`.
size_t CountIn(const CollectiveCall& call, size_t processes) {
  const auto count = static_cast<size_t>(call.count);
  return call.kind == Collective::kReduceScatter ? count * processes : count;
}
size_t CountOut(const CollectiveCall& call, size_t processes) {
  const auto count = static_cast<size_t>(call.count);
  return call.kind == Collective::kAllGather ? count * processes : count;
}

// The same on addresses of the host.
absl::Status HostCollective(const CollectiveCall& call,
                            const Communicator& ring, const void* in,
                            void* out) {
  const size_t bytes = static_cast<size_t>(call.count) * SizeOf(call.dtype);
  switch (call.kind) {
    case Collective::kBroadcast:
      if (out != in && ring.rank() == call.root) std::memcpy(out, in, bytes);
      return ring.Broadcast(call.root, out, bytes);
    case Collective::kAllGather:
      return ring.AllGather(in, bytes, out);
    case Collective::kReduceScatter:
      return ring.ReduceScatter(call.op, call.dtype, call.count, in, out);
    default:
      return ring.AllReduce(call.op, call.dtype, call.count, in, out);
  }
}

// Whether all processes say so.
absl::StatusOr<bool> AllSay(bool mine, const Communicator& ring) {
  int32_t all = mine ? 1 : 0;
  PD_RETURN_IF_ERROR(
      ring.AllReduce(Reduction::kMin, DType::kInt32, 1, &all, &all));
  return all == 1;
}

}  // namespace

PluginCollectives::~PluginCollectives() {
  for (auto& entry : channels_) {
    if (!entry.second.open) continue;
    const absl::Status status = device_->driver().Call(
        "xccl_destroy_comm", device_->driver().table.xccl_destroy_comm,
        entry.second.comm);
    if (!status.ok()) LogWarning("%s", std::string(status.message()));
  }
}

bool PluginCollectives::Has(Collective kind) const {
  const C_DeviceInterface& table = device_->driver().table;
  if (table.xccl_get_unique_id_size == nullptr ||
      table.xccl_get_unique_id == nullptr ||
      table.xccl_comm_init_rank == nullptr ||
      table.xccl_destroy_comm == nullptr)
    return false;
  switch (kind) {
    case Collective::kBroadcast:
      return table.xccl_broadcast != nullptr;
    case Collective::kAllGather:
      return table.xccl_all_gather != nullptr;
    case Collective::kReduceScatter:
      return table.xccl_reduce_scatter != nullptr;
    default:
      return table.xccl_all_reduce != nullptr;
  }
}

absl::Status PluginCollectives::Open(const Communicator& ring,
                                     Channel* channel) {
  const PluginDriver& driver = device_->driver();
  const C_DeviceInterface& table = driver.table;
  PD_RETURN_IF_ERROR(device_->Enter());
  size_t size = 0;
  PD_RETURN_IF_ERROR(driver.Call("xccl_get_unique_id_size",
                                 table.xccl_get_unique_id_size, &size));
  if (size > kLargestRootId)
    return InvalidArgument("%s names a group by %d bytes; expected at most %d",
                           driver.part.Describe(), size, kLargestRootId);
  std::vector<char> bytes(size, '\0');
  C_CCLRootId id = {size, bytes.data()};
  absl::Status named;
  if (ring.rank() == 0)
    named = driver.Call("xccl_get_unique_id", table.xccl_get_unique_id, &id);
  // Every process learns the name, or that there is none.
  int32_t ok = named.ok() ? 1 : 0;
  PD_RETURN_IF_ERROR(ring.Broadcast(0, &ok, sizeof(ok)));
  if (ok != 1)
    return ring.rank() == 0 ? named
                            : Unavailable("%s gives no name to a group",
                                          driver.part.Describe());
  PD_RETURN_IF_ERROR(ring.Broadcast(0, bytes.data(), bytes.size()));
  const absl::Status joined =
      driver.Call("xccl_comm_init_rank", table.xccl_comm_init_rank,
                  static_cast<size_t>(ring.size()), &id,
                  static_cast<size_t>(ring.rank()), &channel->comm);
  channel->open = joined.ok();
  PD_ASSIGN_OR_RETURN(const bool all, AllSay(joined.ok(), ring));
  if (all) return absl::OkStatus();
  return joined.ok() ? Unavailable("%s: another process joins no group",
                                   driver.part.Describe())
                     : joined;
}

absl::StatusOr<PluginCollectives::Channel*> PluginCollectives::ChannelOf(
    const Communicator& ring) {
  const auto [at, fresh] = channels_.try_emplace(&ring);
  if (fresh) {
    const absl::Status opened = Open(ring, &at->second);
    if (!opened.ok()) {
      channels_.erase(at);
      return opened;
    }
  }
  return &at->second;
}

absl::Status PluginCollectives::Call(const CollectiveCall& call,
                                     C_CCLComm comm) {
  const PluginDriver& driver = device_->driver();
  const C_DeviceInterface& table = driver.table;
  PD_RETURN_IF_ERROR(device_->Enter());
  void* in = const_cast<void*>(call.in);
  const auto count = static_cast<size_t>(call.count);
  const C_DataType dtype = CTypeOf(call.dtype);
  const char* name = CollectiveName(call.kind);
  C_Stream stream = device_->stream();
  switch (call.kind) {
    case Collective::kBroadcast:
      if (call.out != in)
        PD_RETURN_IF_ERROR(
            device_->Copy(call.out, in, count * SizeOf(call.dtype)));
      return driver.Call(name, table.xccl_broadcast, call.out, count, dtype,
                         static_cast<size_t>(call.root), comm, stream);
    case Collective::kAllGather:
      return driver.Call(name, table.xccl_all_gather, in, call.out, count,
                         dtype, comm, stream);
    case Collective::kReduceScatter:
      return driver.Call(name, table.xccl_reduce_scatter, in, call.out, count,
                         dtype, COpOf(call.op), comm, stream);
    default:
      return driver.Call(name, table.xccl_all_reduce, in, call.out, count,
                         dtype, COpOf(call.op), comm, stream);
  }
}

absl::Status PluginCollectives::OnHost(const CollectiveCall& call,
                                       const Communicator& ring) {
  const auto size = static_cast<size_t>(ring.size());
  std::vector<char> in(CountIn(call, size) * SizeOf(call.dtype)),
      out(CountOut(call, size) * SizeOf(call.dtype));
  PD_RETURN_IF_ERROR(device_->ToHost(in.data(), call.in, in.size()));
  PD_RETURN_IF_ERROR(device_->Synchronize());
  PD_RETURN_IF_ERROR(HostCollective(call, ring, in.data(), out.data()));
  return device_->ToDevice(call.out, out.data(), out.size());
}

// A process's numbers differ from those of the others, and so do the sums.
absl::StatusOr<bool> PluginCollectives::Works(const CollectiveCall& call,
                                              const Communicator& ring,
                                              Channel* channel) {
  const auto size = static_cast<size_t>(ring.size());
  CollectiveCall trial = call;
  trial.dtype = DType::kFloat32;
  trial.op = Reduction::kSum;
  trial.count = 2;
  std::vector<float> in(CountIn(trial, size)), got(CountOut(trial, size), -1),
      expected = got;
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>((ring.rank() + 1) * 8) + static_cast<float>(i);
  PD_RETURN_IF_ERROR(HostCollective(trial, ring, in.data(), expected.data()));
  const size_t in_bytes = in.size() * sizeof(float),
               out_bytes = got.size() * sizeof(float);
  PD_ASSIGN_OR_RETURN(const auto there, device_->Allocate(in_bytes));
  PD_ASSIGN_OR_RETURN(const auto result, device_->Allocate(out_bytes));
  PD_RETURN_IF_ERROR(device_->ToDevice(there.get(), in.data(), in_bytes));
  PD_RETURN_IF_ERROR(device_->ToDevice(result.get(), got.data(), out_bytes));
  trial.in = there.get();
  trial.out = result.get();
  const absl::Status called = Call(trial, channel->comm);
  if (called.ok()) {
    PD_RETURN_IF_ERROR(device_->ToHost(got.data(), result.get(), out_bytes));
    PD_RETURN_IF_ERROR(device_->Synchronize());
  }
  PD_ASSIGN_OR_RETURN(const bool all,
                      AllSay(called.ok() && got == expected, ring));
  if (!all)
    LogWarning("%s: its %s %s; the host does it instead",
               device_->driver().part.Describe(), CollectiveName(call.kind),
               called.ok() ? std::string("gives other numbers than the host")
                           : std::string(called.message()));
  return all;
}

absl::Status PluginCollectives::Run(const CollectiveCall& call,
                                    const Communicator& ring) {
  const size_t bytes = static_cast<size_t>(call.count) * SizeOf(call.dtype);
  if (ring.size() == 1)
    return call.in == call.out ? absl::OkStatus()
                               : device_->Copy(call.out, call.in, bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  PD_ASSIGN_OR_RETURN(Channel * channel, ChannelOf(ring));
  auto works = channel->works.find(call.kind);
  if (works == channel->works.end()) {
    PD_ASSIGN_OR_RETURN(const bool tried, Works(call, ring, channel));
    works = channel->works.emplace(call.kind, tried).first;
  }
  return works->second ? Call(call, channel->comm) : OnHost(call, ring);
}

namespace {

Reduction ReductionByName(const std::string& type) {
  if (absl::EndsWith(type, "_max")) return Reduction::kMax;
  if (absl::EndsWith(type, "_min")) return Reduction::kMin;
  if (absl::EndsWith(type, "_prod")) return Reduction::kProd;
  return Reduction::kSum;
}

struct CollectiveOp {
  const char* type;
  Collective kind;
};
constexpr CollectiveOp kCollectiveOps[] = {
    {"c_allreduce_sum", Collective::kAllReduce},
    {"c_allreduce_max", Collective::kAllReduce},
    {"c_allreduce_min", Collective::kAllReduce},
    {"c_allreduce_prod", Collective::kAllReduce},
    {"mp_allreduce_sum", Collective::kAllReduce},
    {"c_broadcast", Collective::kBroadcast},
    {"c_allgather", Collective::kAllGather},
    {"c_reducescatter", Collective::kReduceScatter},
};

absl::StatusOr<Step> BindCollective(BindContext* context,
                                    DeviceBinding* binding) {
  CollectiveCall call;
  const std::string& type = context->op().type;
  for (const CollectiveOp& op : kCollectiveOps)
    if (type == op.type) call.kind = op.kind;
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  call.dtype = x->dtype();
  call.op = ReductionByName(type);
  int32_t nranks = 0;
  if (call.kind == Collective::kBroadcast) {
    call.root = context->Attr<int32_t>("root");
  } else if (call.kind != Collective::kAllReduce) {
    nranks = context->Attr<int32_t>("nranks");
  }
  const bool scatters = call.kind == Collective::kReduceScatter;
  call.count = scatters ? out->size() : x->size();
  if (nranks == 0) context->MayShare(x, out);
  auto* device = static_cast<PluginDevice*>(binding->device());
  return Step([=, id = context->Attr<int32_t>("ring_id")](
                  const RunContext& run) mutable -> absl::Status {
    PD_ASSIGN_OR_RETURN(
        const Communicator* ring,
        nranks == 0 ? RingOf(run, id) : RingOf(run, id, nranks));
    if (call.root < 0 || call.root >= ring->size())
      return InvalidArgument("root is %d; ring %d has %d processes", call.root,
                             id, ring->size());
    call.in = x->raw();
    call.out = out->raw();
    return call.count == 0 ? absl::OkStatus()
                           : device->collectives().Run(call, *ring);
  });
}

}  // namespace

absl::Status AttachCollectives(PluginDevice* device, OpRegistry* registry) {
  for (const CollectiveOp& op : kCollectiveOps)
    if (registry->Find(op.type) != nullptr &&
        device->collectives().Has(op.kind))
      PD_RETURN_IF_ERROR(registry->AddImplementation(
          op.type, Implementation("xccl", BindCollective).AskedFirst()));
  return absl::OkStatus();
}

}  // namespace pd
