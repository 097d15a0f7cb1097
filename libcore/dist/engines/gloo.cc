// SPDX-License-Identifier: Apache-2.0
// Transports over Gloo's TCP connections, one between each two processes.
#include <gloo/allgather.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/engines/rendezvous.h"

namespace pd {
namespace {

constexpr uint64_t kPointToPoint = 1000;  // a slot that no collective uses

// The table in which Gloo's processes leave their addresses, for one group.
class KeyStore : public gloo::rendezvous::Store {
 public:
  KeyStore(Rendezvous* table, std::string group)
      : table_(table), group_(std::move(group)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const absl::Status set =
        table_->Set(Full(key), std::string(data.begin(), data.end()));
    if (!set.ok()) throw gloo::IoException(std::string(set.message()));
  }
  std::vector<char> get(const std::string& key) override {
    const auto value = table_->Get(Full(key));
    if (!value.ok())
      throw gloo::IoException(std::string(value.status().message()));
    return {value->begin(), value->end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) (void)get(key);
  }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds&) override {
    wait(keys);  // rendezvous_seconds is the limit
  }

 private:
  std::string Full(const std::string& key) const {
    return absl::StrCat(group_, "-", absl::BytesToHexString(key));
  }

  Rendezvous* table_;
  std::string group_;
};

class GlooTransport : public Transport {
 public:
  GlooTransport(Rendezvous* table,
                std::shared_ptr<gloo::transport::Device> device, int rank,
                int size, const std::string& group)
      : table_(table),
        device_(std::move(device)),
        context_(std::make_shared<gloo::rendezvous::Context>(rank, size)) {
    context_->setTimeout(std::chrono::milliseconds(
        static_cast<int64_t>(table->meeting().operation_seconds * 1000)));
    KeyStore store(table, group);
    context_->connectFullMesh(store, device_);
  }

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  absl::Status Broadcast(int root, void* data, size_t bytes) override {
    return Try("broadcast", [&] {
      gloo::BroadcastOptions options(context_);
      options.setRoot(root);
      options.setOutput(static_cast<char*>(data), bytes);
      gloo::broadcast(options);
    });
  }

  absl::Status AllGather(const void* in, size_t bytes, void* out) override {
    return Try("all-gather", [&] {
      gloo::AllgatherOptions options(context_);
      options.setInput(static_cast<char*>(const_cast<void*>(in)), bytes);
      options.setOutput(static_cast<char*>(out),
                        bytes * static_cast<size_t>(size()));
      gloo::allgather(options);
    });
  }

  absl::Status AllToAll(const void* in, const std::vector<size_t>& sends,
                        void* out,
                        const std::vector<size_t>& receives) override {
    return Try("all-to-all", [&] {
      gloo::AlltoallvOptions options(context_);
      options.setInput(static_cast<char*>(const_cast<void*>(in)),
                       std::vector<int64_t>(sends.begin(), sends.end()));
      options.setOutput(static_cast<char*>(out),
                        std::vector<int64_t>(receives.begin(), receives.end()));
      gloo::alltoallv(options);
    });
  }

  absl::Status Send(int to, const void* data, size_t bytes) override {
    return Try("send", [&] {
      const auto buffer =
          context_->createUnboundBuffer(const_cast<void*>(data), bytes);
      buffer->send(to, kPointToPoint);
      buffer->waitSend();
    });
  }

  absl::Status Receive(int from, void* data, size_t bytes) override {
    return Try("receive", [&] {
      const auto buffer = context_->createUnboundBuffer(data, bytes);
      buffer->recv(from, kPointToPoint);
      buffer->waitRecv();
    });
  }

  absl::Status Barrier() override {
    return Try("barrier", [&] {
      gloo::BarrierOptions options(context_);
      gloo::barrier(options);
    });
  }

  absl::StatusOr<std::unique_ptr<Transport>> Group(
      const std::vector<int>& ranks, const std::string& name) override {
    const auto own = std::find(ranks.begin(), ranks.end(), rank());
    PD_INVARIANT(own != ranks.end());
    std::unique_ptr<Transport> group;
    PD_RETURN_IF_ERROR(Try("new group", [&] {
      group = std::make_unique<GlooTransport>(
          table_, device_, static_cast<int>(own - ranks.begin()),
          static_cast<int>(ranks.size()), name);
    }));
    return group;
  }

  template <typename F>
  static absl::Status Try(const char* what, const F& f) {
    try {
      f();
      return absl::OkStatus();
    } catch (const gloo::Exception& error) {
      // Gloo puts the place in its sources first, in brackets.
      const std::string text = error.what();
      const size_t place = text.find("] ");
      return Unavailable(
          "%s: %s", what,
          place == std::string::npos ? text : text.substr(place + 2));
    } catch (const std::exception& error) {
      return Unavailable("%s: %s", what, error.what());
    }
  }

 private:
  Rendezvous* table_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

class GlooEngine : public EngineWithTable {
 public:
  ~GlooEngine() override {
    EndTable();
    all_.reset();
  }

  absl::Status Connect(const Meeting& meeting) {
    PD_ASSIGN_OR_RETURN(table_, Rendezvous::Open(meeting));
    PD_RETURN_IF_ERROR(table_->Join());
    return GlooTransport::Try("connecting the processes", [&] {
      gloo::transport::tcp::attr attr;
      attr.hostname = table_->own_address();
      all_ = std::make_unique<GlooTransport>(
          table_.get(), gloo::transport::tcp::CreateDevice(attr), meeting.rank,
          meeting.size, "all");
    });
  }

  Transport& all() override { return *all_; }
  absl::Status Leave() override {
    table_->SayGoodbye(false);
    // Rank 0 serves the table: it stays until the others have said goodbye.
    PD_RETURN_IF_ERROR(all_->Barrier());
    left_ = true;
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<GlooTransport> all_;
};

}  // namespace
}  // namespace pd

extern "C" pd::Engine* pd_make_engine(const pd::Meeting& meeting,
                                      absl::Status* error) {
  return pd::MakeEngine<pd::GlooEngine>(meeting, error);
}
