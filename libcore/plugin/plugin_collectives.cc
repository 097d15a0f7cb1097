// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/plugin_collectives.h"

#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
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
    case Collective::kReduce:
      return "xccl_reduce";
    case Collective::kAllToAll:
      return "xccl_all_to_all";
    case Collective::kScatter:
      return "xccl_send";
    default:
      return "xccl_all_reduce";
  }
}

// Elements of `in` and of `out`.
size_t CountIn(const CollectiveCall& call, size_t processes) {
  const auto count = static_cast<size_t>(call.count);
  const bool parts = call.kind == Collective::kReduceScatter ||
                     call.kind == Collective::kAllToAll ||
                     call.kind == Collective::kScatter;
  return parts ? count * processes : count;
}
size_t CountOut(const CollectiveCall& call, size_t processes) {
  const auto count = static_cast<size_t>(call.count);
  const bool parts =
      call.kind == Collective::kAllGather || call.kind == Collective::kAllToAll;
  return parts ? count * processes : count;
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
    case Collective::kReduce: {
      std::vector<char> sums(bytes);
      PD_RETURN_IF_ERROR(
          ring.AllReduce(call.op, call.dtype, call.count, in, sums.data()));
      std::memcpy(out, ring.rank() == call.root ? sums.data() : in, bytes);
      return absl::OkStatus();
    }
    case Collective::kAllToAll: {
      const std::vector<size_t> parts(static_cast<size_t>(ring.size()), bytes);
      return ring.AllToAll(in, parts, out, parts);
    }
    case Collective::kScatter: {
      std::vector<size_t> sends(static_cast<size_t>(ring.size()), 0);
      std::vector<size_t> receives = sends;
      if (ring.rank() == call.root) sends.assign(sends.size(), bytes);
      receives[static_cast<size_t>(call.root)] = bytes;
      return ring.AllToAll(in, sends, out, receives);
    }
    default:
      return ring.AllReduce(call.op, call.dtype, call.count, in, out);
  }
}

// first, first + 1, first, ... as elements.
absl::StatusOr<std::vector<char>> SmallNumbers(DType dtype, int first,
                                               size_t count) {
  return DispatchAll(dtype, [&](auto tag) -> absl::StatusOr<std::vector<char>> {
    using T = typename decltype(tag)::type;
    std::vector<char> bytes(count * sizeof(T));
    for (size_t i = 0; i < count; ++i) {
      const T number =
          static_cast<T>(static_cast<float>(first) + static_cast<float>(i % 2));
      std::memcpy(bytes.data() + i * sizeof(T), &number, sizeof(T));
    }
    return bytes;
  });
}

// Whether all processes say so.
absl::StatusOr<bool> AllSay(bool mine, const Communicator& ring) {
  int32_t all = mine ? 1 : 0;
  PD_RETURN_IF_ERROR(
      ring.AllReduce(Reduction::kMin, DType::kInt32, 1, &all, &all));
  return all == 1;
}

}  // namespace

absl::Status PluginCollectives::Close(Channel* channel) {
  if (!channel->open) return absl::OkStatus();
  channel->open = false;
  return device_->driver().Call("xccl_destroy_comm",
                                device_->driver().table.xccl_destroy_comm,
                                channel->comm);
}

PluginCollectives::~PluginCollectives() {
  const auto close = [this](Channel* channel) {
    const absl::Status status = Close(channel);
    if (!status.ok()) LogWarning("%s", std::string(status.message()));
  };
  for (auto& entry : pairs_) close(&entry.second.channel);
  for (auto& entry : channels_) close(&entry.second);
}

bool PluginCollectives::HasGroups() const {
  const C_DeviceInterface& table = device_->driver().table;
  return table.xccl_get_unique_id_size != nullptr &&
         table.xccl_get_unique_id != nullptr &&
         table.xccl_comm_init_rank != nullptr &&
         table.xccl_destroy_comm != nullptr;
}

bool PluginCollectives::HasMessages() const {
  const C_DeviceInterface& table = device_->driver().table;
  return HasGroups() && table.xccl_send != nullptr &&
         table.xccl_recv != nullptr;
}

bool PluginCollectives::Has(Collective kind) const {
  const C_DeviceInterface& table = device_->driver().table;
  if (!HasGroups()) return false;
  const bool grouped_messages = HasMessages() &&
                                table.xccl_group_start != nullptr &&
                                table.xccl_group_end != nullptr;
  switch (kind) {
    case Collective::kBroadcast:
      return table.xccl_broadcast != nullptr;
    case Collective::kAllGather:
      return table.xccl_all_gather != nullptr;
    case Collective::kReduceScatter:
      return table.xccl_reduce_scatter != nullptr;
    case Collective::kReduce:
      return table.xccl_reduce != nullptr;
    case Collective::kAllToAll:
      return table.xccl_all_to_all != nullptr || grouped_messages;
    case Collective::kScatter:
      return grouped_messages;
    default:
      return table.xccl_all_reduce != nullptr;
  }
}

PluginCollectives::Party PluginCollectives::RingParty(
    const Communicator& ring) {
  Party party;
  party.size = static_cast<size_t>(ring.size());
  party.rank = static_cast<size_t>(ring.rank());
  party.share = [&ring](void* data, size_t bytes) {
    return ring.Broadcast(0, data, bytes);
  };
  party.all_say = [&ring](bool mine) { return AllSay(mine, ring); };
  return party;
}

// The lower rank is rank 0. It speaks first and the other listens first, so
// that engines whose messages wait for a receiver do not stand still.
PluginCollectives::Party PluginCollectives::PairParty(const Communicator& ring,
                                                      int peer) {
  Party party;
  party.size = 2;
  party.rank = ring.rank() < peer ? 0 : 1;
  const bool first = party.rank == 0;
  party.share = [&ring, peer, first](void* data, size_t bytes) {
    return first ? ring.Send(peer, data, bytes)
                 : ring.Receive(peer, data, bytes);
  };
  party.all_say = [&ring, peer, first](bool mine) -> absl::StatusOr<bool> {
    int32_t said = mine ? 1 : 0, heard = 0;
    if (first) PD_RETURN_IF_ERROR(ring.Send(peer, &said, sizeof(said)));
    PD_RETURN_IF_ERROR(ring.Receive(peer, &heard, sizeof(heard)));
    if (!first) PD_RETURN_IF_ERROR(ring.Send(peer, &said, sizeof(said)));
    return said == 1 && heard == 1;
  };
  return party;
}

absl::Status PluginCollectives::Open(const Party& party, Channel* channel) {
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
  if (party.rank == 0)
    named = driver.Call("xccl_get_unique_id", table.xccl_get_unique_id, &id);
  // Every process learns the name, or that there is none.
  int32_t ok = named.ok() ? 1 : 0;
  PD_RETURN_IF_ERROR(party.share(&ok, sizeof(ok)));
  if (ok != 1)
    return party.rank == 0 ? named
                           : Unavailable("%s gives no name to a group",
                                         driver.part.Describe());
  PD_RETURN_IF_ERROR(party.share(bytes.data(), bytes.size()));
  const absl::Status joined =
      driver.Call("xccl_comm_init_rank", table.xccl_comm_init_rank, party.size,
                  &id, party.rank, &channel->comm);
  channel->open = joined.ok();
  PD_ASSIGN_OR_RETURN(const bool all, party.all_say(joined.ok()));
  if (all) return absl::OkStatus();
  const absl::Status closed = Close(channel);
  if (!closed.ok()) LogWarning("%s", std::string(closed.message()));
  return joined.ok() ? Unavailable("%s: another process joins no group",
                                   driver.part.Describe())
                     : joined;
}

absl::StatusOr<PluginCollectives::Channel*> PluginCollectives::ChannelOf(
    const Communicator& ring) {
  const auto [at, fresh] = channels_.try_emplace(&ring);
  if (fresh) {
    const absl::Status opened = Open(RingParty(ring), &at->second);
    if (!opened.ok()) {
      channels_.erase(at);
      return opened;
    }
  }
  return &at->second;
}

absl::Status PluginCollectives::Grouped(
    const std::function<absl::Status()>& calls) {
  const PluginDriver& driver = device_->driver();
  PD_RETURN_IF_ERROR(
      driver.Call("xccl_group_start", driver.table.xccl_group_start));
  const absl::Status called = calls();
  // The group is ended in any case: what follows is not of it.
  const absl::Status ended =
      driver.Call("xccl_group_end", driver.table.xccl_group_end);
  return called.ok() ? ended : called;
}

absl::Status PluginCollectives::SendTo(size_t rank, const void* data,
                                       int64_t count, DType dtype,
                                       C_CCLComm comm) {
  const PluginDriver& driver = device_->driver();
  PD_RETURN_IF_ERROR(device_->Enter());
  return driver.Call("xccl_send", driver.table.xccl_send,
                     const_cast<void*>(data), static_cast<size_t>(count),
                     CTypeOf(dtype), rank, comm, device_->stream());
}
absl::Status PluginCollectives::ReceiveFrom(size_t rank, void* data,
                                            int64_t count, DType dtype,
                                            C_CCLComm comm) {
  const PluginDriver& driver = device_->driver();
  PD_RETURN_IF_ERROR(device_->Enter());
  return driver.Call("xccl_recv", driver.table.xccl_recv, data,
                     static_cast<size_t>(count), CTypeOf(dtype), rank, comm,
                     device_->stream());
}

absl::Status PluginCollectives::CallAllToAll(const CollectiveCall& call,
                                             const Communicator& ring,
                                             C_CCLComm comm) {
  const PluginDriver& driver = device_->driver();
  const auto size = static_cast<size_t>(ring.size()),
             mine = static_cast<size_t>(ring.rank());
  const size_t bytes = static_cast<size_t>(call.count) * SizeOf(call.dtype);
  const char* in = static_cast<const char*>(call.in);
  char* out = static_cast<char*>(call.out);
  if (driver.table.xccl_all_to_all != nullptr) {
    std::vector<const void*> from(size);
    std::vector<void*> to(size);
    for (size_t r = 0; r < size; ++r) {
      from[r] = in + r * bytes;
      to[r] = out + r * bytes;
    }
    const std::vector<size_t> counts(size, static_cast<size_t>(call.count));
    const std::vector<C_DataType> dtypes(size, CTypeOf(call.dtype));
    return driver.Call("xccl_all_to_all", driver.table.xccl_all_to_all,
                       from.data(), counts.data(), dtypes.data(), to.data(),
                       counts.data(), dtypes.data(), mine, size, comm,
                       device_->stream());
  }
  PD_RETURN_IF_ERROR(
      device_->Copy(out + mine * bytes, in + mine * bytes, bytes));
  return Grouped([&]() -> absl::Status {
    for (size_t r = 0; r < size; ++r) {
      if (r == mine) continue;
      PD_RETURN_IF_ERROR(
          SendTo(r, in + r * bytes, call.count, call.dtype, comm));
      PD_RETURN_IF_ERROR(
          ReceiveFrom(r, out + r * bytes, call.count, call.dtype, comm));
    }
    return absl::OkStatus();
  });
}

absl::Status PluginCollectives::CallScatter(const CollectiveCall& call,
                                            const Communicator& ring,
                                            C_CCLComm comm) {
  const auto root = static_cast<size_t>(call.root);
  if (ring.rank() != call.root)
    return ReceiveFrom(root, call.out, call.count, call.dtype, comm);
  const size_t bytes = static_cast<size_t>(call.count) * SizeOf(call.dtype);
  const char* in = static_cast<const char*>(call.in);
  PD_RETURN_IF_ERROR(device_->Copy(call.out, in + root * bytes, bytes));
  return Grouped([&]() -> absl::Status {
    for (size_t r = 0; r < static_cast<size_t>(ring.size()); ++r)
      if (r != root)
        PD_RETURN_IF_ERROR(
            SendTo(r, in + r * bytes, call.count, call.dtype, comm));
    return absl::OkStatus();
  });
}

absl::Status PluginCollectives::Call(const CollectiveCall& call,
                                     const Communicator& ring, C_CCLComm comm) {
  const PluginDriver& driver = device_->driver();
  const C_DeviceInterface& table = driver.table;
  PD_RETURN_IF_ERROR(device_->Enter());
  void* in = const_cast<void*>(call.in);
  const auto count = static_cast<size_t>(call.count);
  const C_DataType dtype = CTypeOf(call.dtype);
  const auto root = static_cast<size_t>(call.root);
  const char* name = CollectiveName(call.kind);
  C_Stream stream = device_->stream();
  switch (call.kind) {
    case Collective::kBroadcast:
      if (call.out != in)
        PD_RETURN_IF_ERROR(
            device_->Copy(call.out, in, count * SizeOf(call.dtype)));
      return driver.Call(name, table.xccl_broadcast, call.out, count, dtype,
                         root, comm, stream);
    case Collective::kAllGather:
      return driver.Call(name, table.xccl_all_gather, in, call.out, count,
                         dtype, comm, stream);
    case Collective::kReduceScatter:
      return driver.Call(name, table.xccl_reduce_scatter, in, call.out, count,
                         dtype, COpOf(call.op), comm, stream);
    case Collective::kReduce:
      PD_RETURN_IF_ERROR(driver.Call(name, table.xccl_reduce, in, call.out,
                                     count, dtype, COpOf(call.op), root, comm,
                                     stream));
      // The driver may write anything where the sums do not go.
      return ring.rank() == call.root
                 ? absl::OkStatus()
                 : device_->Copy(call.out, in, count * SizeOf(call.dtype));
    case Collective::kAllToAll:
      return CallAllToAll(call, ring, comm);
    case Collective::kScatter:
      return CallScatter(call, ring, comm);
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

// A process's numbers differ from those of the others, and so do the sums. All
// of them are small enough for each type.
absl::StatusOr<bool> PluginCollectives::Works(const CollectiveCall& call,
                                              const Communicator& ring,
                                              Channel* channel) {
  const auto size = static_cast<size_t>(ring.size());
  CollectiveCall trial = call;
  trial.count = 2;
  PD_ASSIGN_OR_RETURN(
      const std::vector<char> in,
      SmallNumbers(call.dtype, ring.rank() % 4 + 1, CountIn(trial, size)));
  PD_ASSIGN_OR_RETURN(std::vector<char> got,
                      SmallNumbers(call.dtype, 0, CountOut(trial, size)));
  std::vector<char> expected = got;
  PD_RETURN_IF_ERROR(HostCollective(trial, ring, in.data(), expected.data()));
  PD_ASSIGN_OR_RETURN(const auto there, device_->Allocate(in.size()));
  PD_ASSIGN_OR_RETURN(const auto result, device_->Allocate(got.size()));
  PD_RETURN_IF_ERROR(device_->ToDevice(there.get(), in.data(), in.size()));
  PD_RETURN_IF_ERROR(device_->ToDevice(result.get(), got.data(), got.size()));
  trial.in = there.get();
  trial.out = result.get();
  const absl::Status called = Call(trial, ring, channel->comm);
  if (called.ok()) {
    PD_RETURN_IF_ERROR(device_->ToHost(got.data(), result.get(), got.size()));
    PD_RETURN_IF_ERROR(device_->Synchronize());
  }
  PD_ASSIGN_OR_RETURN(const bool all,
                      AllSay(called.ok() && got == expected, ring));
  if (!all) WarnOfHost(CollectiveName(call.kind), call.dtype, called);
  return all;
}

void PluginCollectives::WarnOfHost(const char* names, DType dtype,
                                   const absl::Status& called) const {
  const std::string reason = called.ok() ? "other numbers than the host's come"
                                         : std::string(called.message());
  LogWarning("%s: %s of %s: %s; the host does it instead",
             device_->driver().part.Describe(), names, Name(dtype), reason);
}

absl::Status PluginCollectives::Run(const CollectiveCall& call,
                                    const Communicator& ring) {
  const size_t bytes = static_cast<size_t>(call.count) * SizeOf(call.dtype);
  if (ring.size() == 1)
    return call.in == call.out ? absl::OkStatus()
                               : device_->Copy(call.out, call.in, bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  PD_ASSIGN_OR_RETURN(Channel * channel, ChannelOf(ring));
  const std::tuple<Collective, DType, Reduction> key(call.kind, call.dtype,
                                                     call.op);
  auto works = channel->works.find(key);
  if (works == channel->works.end()) {
    PD_ASSIGN_OR_RETURN(const bool tried, Works(call, ring, channel));
    works = channel->works.emplace(key, tried).first;
  }
  return works->second ? Call(call, ring, channel->comm) : OnHost(call, ring);
}

// Two numbers each way.
absl::StatusOr<bool> PluginCollectives::PairWorks(const Party& party,
                                                  DType dtype, C_CCLComm comm) {
  const size_t other = 1 - party.rank;
  PD_ASSIGN_OR_RETURN(const std::vector<char> mine,
                      SmallNumbers(dtype, static_cast<int>(party.rank) + 1, 2));
  PD_ASSIGN_OR_RETURN(const std::vector<char> expected,
                      SmallNumbers(dtype, static_cast<int>(other) + 1, 2));
  std::vector<char> got(mine.size(), 0);
  PD_ASSIGN_OR_RETURN(const auto out, device_->Allocate(mine.size()));
  PD_ASSIGN_OR_RETURN(const auto in, device_->Allocate(got.size()));
  PD_RETURN_IF_ERROR(device_->ToDevice(out.get(), mine.data(), mine.size()));
  PD_RETURN_IF_ERROR(device_->ToDevice(in.get(), got.data(), got.size()));
  const auto send = [&] { return SendTo(other, out.get(), 2, dtype, comm); };
  const auto receive = [&] {
    return ReceiveFrom(other, in.get(), 2, dtype, comm);
  };
  absl::Status called = party.rank == 0 ? send() : receive();
  if (called.ok()) called = party.rank == 0 ? receive() : send();
  if (called.ok()) {
    PD_RETURN_IF_ERROR(device_->ToHost(got.data(), in.get(), got.size()));
    PD_RETURN_IF_ERROR(device_->Synchronize());
  }
  PD_ASSIGN_OR_RETURN(const bool all,
                      party.all_say(called.ok() && got == expected));
  if (!all) WarnOfHost("xccl_send and xccl_recv", dtype, called);
  return all;
}

// The group of this process and `peer`; null where the host has to carry
// messages of the type.
absl::StatusOr<C_CCLComm> PluginCollectives::PairOf(const Communicator& ring,
                                                    int peer, DType dtype) {
  const Party party = PairParty(ring, peer);
  const std::pair<const Communicator*, int> key(&ring, peer);
  auto at = pairs_.find(key);
  if (at == pairs_.end()) {
    Pair pair;
    PD_RETURN_IF_ERROR(Open(party, &pair.channel));
    at = pairs_.emplace(key, std::move(pair)).first;
  }
  Pair& pair = at->second;
  auto works = pair.works.find(dtype);
  if (works == pair.works.end()) {
    PD_ASSIGN_OR_RETURN(const bool tried,
                        PairWorks(party, dtype, pair.channel.comm));
    works = pair.works.emplace(dtype, tried).first;
  }
  return works->second ? pair.channel.comm : nullptr;
}

absl::Status PluginCollectives::Send(const Communicator& ring, int peer,
                                     const Tensor& x, const MessagePart& part) {
  PD_ASSIGN_OR_RETURN(MessageHeader header,
                      MessageHeaderOf(x.dtype(), x.shape()));
  header.by_device = peer == ring.rank() ? 0 : static_cast<int64_t>(part.num);
  const char* data = static_cast<const char*>(x.raw()) + part.begin(x);
  const size_t bytes = part.bytes(x);
  const std::lock_guard<std::mutex> lock(mutex_);
  PD_RETURN_IF_ERROR(ring.Send(peer, &header, sizeof(header)));
  if (header.by_device != 0) {
    if (bytes == 0) return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(const C_CCLComm pair, PairOf(ring, peer, x.dtype()));
    if (pair != nullptr)
      return SendTo(ring.rank() < peer ? 1 : 0, data,
                    static_cast<int64_t>(bytes / SizeOf(x.dtype())), x.dtype(),
                    pair);
  }
  std::vector<char> here(bytes);
  PD_RETURN_IF_ERROR(device_->ToHost(here.data(), data, bytes));
  PD_RETURN_IF_ERROR(device_->Synchronize());
  return ring.Send(peer, here.data(), bytes);
}

absl::Status PluginCollectives::Receive(const Communicator& ring, int peer,
                                        const MessagePart& part, Tensor* out) {
  MessageHeader header;
  const std::lock_guard<std::mutex> lock(mutex_);
  PD_RETURN_IF_ERROR(ring.Receive(peer, &header, sizeof(header)));
  char* data = static_cast<char*>(out->raw()) + part.begin(*out);
  const size_t bytes = part.bytes(*out);
  PD_RETURN_IF_ERROR(ExpectMessage(header, *out));
  if (header.by_device != 0 &&
      header.by_device != static_cast<int64_t>(part.num))
    return InvalidArgument("one of %d parts was sent; one of %d is expected",
                           header.by_device, part.num);
  if (part.num > 1)
    PD_RETURN_IF_ERROR(device_->Clear(out->raw(), out->bytes()));
  C_CCLComm pair = nullptr;
  if (header.by_device != 0) {
    if (bytes == 0) return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(pair, PairOf(ring, peer, out->dtype()));
  }
  if (pair != nullptr)
    return ReceiveFrom(ring.rank() < peer ? 1 : 0, data,
                       static_cast<int64_t>(bytes / SizeOf(out->dtype())),
                       out->dtype(), pair);
  std::vector<char> here(bytes);
  PD_RETURN_IF_ERROR(ring.Receive(peer, here.data(), bytes));
  return device_->ToDevice(data, here.data(), bytes);
}

}  // namespace pd
