// SPDX-License-Identifier: Apache-2.0
// Transports over MPI's communicators. Every operation is started, then asked
// for until it is done, so that the watch over processes is never starved and
// a thread that waits leaves its core to those that compute.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/engines/rendezvous.h"

namespace pd {
namespace {

// MPI counts with int: longer messages go in pieces.
constexpr size_t kPiece = size_t{1} << 30;
constexpr int kTag = 7;
constexpr int kDiscard = 9;  // a port that stands for any

absl::Status Check(int code, const char* what) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Unavailable("%s: %s", what, text);
}

// Waits for all requests: busily for a moment, then with naps.
absl::Status WaitFor(double seconds, std::vector<MPI_Request>* requests,
                     const char* what) {
  constexpr int kBusyRounds = 2000;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0;; ++round) {
    int done = 0;
    PD_RETURN_IF_ERROR(
        Check(MPI_Testall(static_cast<int>(requests->size()), requests->data(),
                          &done, MPI_STATUSES_IGNORE),
              what));
    if (done != 0) return absl::OkStatus();
    if (round <= kBusyRounds) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    const std::chrono::duration<double> waited =
        std::chrono::steady_clock::now() - begin;
    if (waited.count() > seconds)
      return Unavailable("%s: timed out after %g s", what, seconds);
  }
}

class MpiTransport : public Transport {
 public:
  MpiTransport(MPI_Comm comm, double seconds) : comm_(comm), seconds_(seconds) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  // Communicators are given back when MPI ends: freeing one is collective.

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::Status Broadcast(int root, void* data, size_t bytes) override {
    return InPieces(bytes, [&](size_t at, int count) {
      return Run("broadcast", [&](MPI_Request* request) {
        return MPI_Ibcast(static_cast<char*>(data) + at, count, MPI_BYTE, root,
                          comm_, request);
      });
    });
  }

  absl::Status AllGather(const void* in, size_t bytes, void* out) override {
    const std::vector<size_t> each(static_cast<size_t>(size_), bytes);
    if (bytes * static_cast<size_t>(size_) > INT_MAX) {
      const std::vector<size_t> none(each.size(), 0);
      return Exchange(in, each, none, out, each);
    }
    return Run("all-gather", [&](MPI_Request* request) {
      const int count = static_cast<int>(bytes);
      return MPI_Iallgather(in, count, MPI_BYTE, out, count, MPI_BYTE, comm_,
                            request);
    });
  }

  absl::Status AllToAll(const void* in, const std::vector<size_t>& sends,
                        void* out,
                        const std::vector<size_t>& receives) override {
    return Exchange(in, sends, Offsets(sends), out, receives);
  }

  absl::Status Send(int to, const void* data, size_t bytes) override {
    std::vector<MPI_Request> requests;
    PD_RETURN_IF_ERROR(StartSend(to, data, bytes, &requests));
    return Wait(&requests, "send");
  }

  absl::Status Receive(int from, void* data, size_t bytes) override {
    std::vector<MPI_Request> requests;
    PD_RETURN_IF_ERROR(StartReceive(from, data, bytes, &requests));
    return Wait(&requests, "receive");
  }

  absl::Status Barrier() override {
    return Run("barrier", [&](MPI_Request* request) {
      return MPI_Ibarrier(comm_, request);
    });
  }

  absl::StatusOr<std::unique_ptr<Transport>> Group(
      const std::vector<int>& ranks, const std::string& name) override {
    MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    PD_RETURN_IF_ERROR(Check(MPI_Comm_group(comm_, &all), "new group"));
    PD_RETURN_IF_ERROR(Check(MPI_Group_incl(all, static_cast<int>(ranks.size()),
                                            ranks.data(), &members),
                             "new group"));
    // Groups that are made at the same time differ by the tag.
    const int tag = static_cast<int>(std::hash<std::string>()(name) % 16384);
    MPI_Comm comm = MPI_COMM_NULL;
    const int made = MPI_Comm_create_group(comm_, members, tag, &comm);
    MPI_Group_free(&members);
    MPI_Group_free(&all);
    PD_RETURN_IF_ERROR(Check(made, "new group"));
    return std::make_unique<MpiTransport>(comm, seconds_);
  }

 private:
  static std::vector<size_t> Offsets(const std::vector<size_t>& sizes) {
    std::vector<size_t> offsets(sizes.size(), 0);
    std::partial_sum(sizes.begin(), sizes.end() - 1, offsets.begin() + 1);
    return offsets;
  }

  absl::Status Wait(std::vector<MPI_Request>* requests,
                    const char* what) const {
    return WaitFor(seconds_, requests, what);
  }

  template <typename F>
  absl::Status Run(const char* what, const F& start) const {
    std::vector<MPI_Request> request(1);
    PD_RETURN_IF_ERROR(Check(start(request.data()), what));
    return Wait(&request, what);
  }

  template <typename F>
  static absl::Status InPieces(size_t bytes, const F& move) {
    for (size_t at = 0; at < bytes; at += kPiece)
      PD_RETURN_IF_ERROR(
          move(at, static_cast<int>(std::min(kPiece, bytes - at))));
    return absl::OkStatus();
  }

  absl::Status StartSend(int to, const void* data, size_t bytes,
                         std::vector<MPI_Request>* requests) {
    return InPieces(bytes, [&](size_t at, int count) {
      requests->push_back(MPI_REQUEST_NULL);
      return Check(MPI_Isend(static_cast<const char*>(data) + at, count,
                             MPI_BYTE, to, kTag, comm_, &requests->back()),
                   "send");
    });
  }

  absl::Status StartReceive(int from, void* data, size_t bytes,
                            std::vector<MPI_Request>* requests) {
    return InPieces(bytes, [&](size_t at, int count) {
      requests->push_back(MPI_REQUEST_NULL);
      return Check(MPI_Irecv(static_cast<char*>(data) + at, count, MPI_BYTE,
                             from, kTag, comm_, &requests->back()),
                   "receive");
    });
  }

  absl::Status Exchange(const void* in, const std::vector<size_t>& sends,
                        const std::vector<size_t>& send_offsets, void* out,
                        const std::vector<size_t>& receives) {
    const std::vector<size_t> offsets = Offsets(receives);
    const char* from = static_cast<const char*>(in);
    char* to = static_cast<char*>(out);
    std::vector<MPI_Request> requests;
    for (int i = 1; i < size_; ++i) {
      const int peer = (rank_ + size_ - i) % size_;
      const size_t p = static_cast<size_t>(peer);
      PD_RETURN_IF_ERROR(
          StartReceive(peer, to + offsets[p], receives[p], &requests));
    }
    // Everybody sends to another one first.
    for (int i = 1; i < size_; ++i) {
      const int peer = (rank_ + i) % size_;
      const size_t p = static_cast<size_t>(peer);
      PD_RETURN_IF_ERROR(
          StartSend(peer, from + send_offsets[p], sends[p], &requests));
    }
    const size_t own = static_cast<size_t>(rank_);
    if (receives[own] > 0)
      std::memmove(to + offsets[own], from + send_offsets[own], receives[own]);
    return Wait(&requests, "exchange");
  }

  MPI_Comm comm_;
  const double seconds_;  // the longest that an operation waits
  int rank_ = 0, size_ = 1;
};

class MpiEngine : public EngineWithTable {
 public:
  ~MpiEngine() override {
    EndTable();
    table_.reset();
    all_.reset();
    // Without MPI_Finalize, which would wait for the others, mpirun sees the
    // process's exit status and ends them.
  }

  absl::Status Connect(Meeting meeting) {
    int given = 0;
    PD_RETURN_IF_ERROR(
        Check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given),
              "MPI_Init_thread"));
    if (given < MPI_THREAD_MULTIPLE)
      return Unavailable(
          "this MPI was built without MPI_THREAD_MULTIPLE, which is needed");
    MPI_Comm all = MPI_COMM_NULL;
    PD_RETURN_IF_ERROR(
        Check(MPI_Comm_dup(MPI_COMM_WORLD, &all), "MPI_Comm_dup"));
    all_ = std::make_unique<MpiTransport>(all, meeting.operation_seconds);
    if (all_->size() == 1)
      return Unavailable(
          "the environment says that this is one of several processes, and MPI "
          "knows of this one alone; start them by Open MPI's mpirun, or by "
          "srun "
          "--mpi=pmix");
    meeting.rank = all_->rank();
    meeting.size = all_->size();
    return OpenTable(meeting);
  }

  Transport& all() override { return *all_; }
  absl::Status Leave() override {
    table_->SayGoodbye(false);
    PD_RETURN_IF_ERROR(all_->Barrier());
    left_ = true;
    table_.reset();
    return Check(MPI_Finalize(), "MPI_Finalize");
  }

 private:
  // Rank 0 serves the table: on one machine only there, else on the address by
  // which it reaches the others.
  absl::Status OpenTable(Meeting meeting) {
    struct Address {
      char host[256] = "";
      int port = 0;
    };
    Address own;
    gethostname(own.host, sizeof(own.host) - 1);
    std::vector<Address> all(static_cast<size_t>(meeting.size));
    PD_RETURN_IF_ERROR(all_->AllGather(&own, sizeof(own), all.data()));
    const auto other =
        std::find_if(all.begin(), all.end(), [&](const Address& address) {
          return std::strcmp(address.host, all[0].host) != 0;
        });
    absl::Status opened;
    if (meeting.rank == 0) {
      absl::StatusOr<std::string> host = std::string("127.0.0.1");
      if (other != all.end()) host = AddressTowards(other->host, kDiscard);
      opened = host.status();
      if (host.ok()) meeting.host = *host;
      if (opened.ok()) opened = Take(Rendezvous::Open(meeting));
      own.port = opened.ok() ? table_->port() : -1;
      meeting.host.copy(own.host, sizeof(own.host) - 1);
      own.host[std::min(meeting.host.size(), sizeof(own.host) - 1)] = '\0';
    }
    PD_RETURN_IF_ERROR(all_->Broadcast(0, &own, sizeof(own)));
    PD_RETURN_IF_ERROR(opened);
    if (own.port < 0) return Unavailable("rank 0 has failed");
    meeting.port = own.port;
    meeting.host = own.host;
    if (meeting.rank > 0) PD_RETURN_IF_ERROR(Take(Rendezvous::Open(meeting)));
    return table_->Join();
  }

  absl::Status Take(absl::StatusOr<std::unique_ptr<Rendezvous>> table) {
    PD_RETURN_IF_ERROR(table.status());
    table_ = *std::move(table);
    return absl::OkStatus();
  }

  std::unique_ptr<MpiTransport> all_;
};

}  // namespace
}  // namespace pd

extern "C" pd::Engine* pd_make_engine(const pd::Meeting& meeting,
                                      absl::Status* error) {
  return pd::MakeEngine<pd::MpiEngine>(meeting, error);
}
