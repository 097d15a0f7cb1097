// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/shard_team.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <numeric>
#include <thread>
#include <utility>

#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/thread_count.h"

namespace pd {
namespace {

// An exception would leave the other shards' threads where they wait, and other
// processes in their exchange: as an error it ends all of them.
template <typename F>
absl::Status WithoutExceptions(const F& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory");
  } catch (const std::exception& error) {
    return Internal("a shard's computation has thrown: %s", error.what());
  }
}

}  // namespace

// A shard of this process, as a process among shards: its operations stop its
// thread until the caller of Run has made the exchange.
class ShardTeam::Member : public Transport {
 public:
  Member(ShardTeam* team, int64_t shard)
      : shard(shard),
        world(this, static_cast<int>(team->shards_)),
        team_(team) {
    thread_ = std::thread([this] { team_->WorkOf(this); });
  }
  ~Member() override { thread_.join(); }

  int rank() const override { return number; }
  int size() const override { return static_cast<int>(team_->owners_.size()); }

  absl::Status AllGather(const void* given, size_t bytes, void* into) override {
    sends.assign(1, bytes);
    receives.assign(1, bytes);
    return Meet(Kind::kAllGather, given, into);
  }
  absl::Status AllToAll(const void* given, const std::vector<size_t>& sent,
                        void* into,
                        const std::vector<size_t>& received) override {
    sends = sent;
    receives = received;
    return Meet(Kind::kAllToAll, given, into);
  }
  absl::Status Barrier() override {
    char own = 0;
    std::vector<char> all(static_cast<size_t>(size()));
    return AllGather(&own, 1, all.data());
  }
  absl::Status Broadcast(int root, void* data, size_t bytes) override {
    std::vector<std::byte> all(bytes * static_cast<size_t>(size()));
    PD_RETURN_IF_ERROR(AllGather(data, bytes, all.data()));
    std::memcpy(data, all.data() + static_cast<size_t>(root) * bytes, bytes);
    return absl::OkStatus();
  }
  absl::Status Send(int, const void*, size_t) override { return NotOfAll(); }
  absl::Status Receive(int, void*, size_t) override { return NotOfAll(); }
  absl::StatusOr<std::unique_ptr<Transport>> Group(
      const std::vector<int>&, const std::string&) override {
    return NotOfAll();
  }

  const int64_t shard;
  World world;
  int number = -1;     // among shards with records
  bool done = true;    // with the run
  absl::Status ended;  // how
  // The exchange that it waits for.
  Kind kind = Kind::kNone;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::vector<size_t> sends, receives;
  absl::Status exchanged;

 private:
  static absl::Status NotOfAll() {
    return Unimplemented("shards exchange numbers all together alone");
  }
  absl::Status Meet(Kind wanted, const void* given, void* into) {
    PD_RETURN_IF_ERROR(exchanged);  // the run has failed
    kind = wanted;
    in = static_cast<const std::byte*>(given);
    out = static_cast<std::byte*>(into);
    std::unique_lock<std::mutex> lock(team_->mutex_);
    team_->turn_ = nullptr;
    team_->changed_.notify_all();
    team_->changed_.wait(lock, [this] { return team_->turn_ == this; });
    return exchanged;
  }

  ShardTeam* const team_;
  std::thread thread_;
};

struct ShardTeam::State {
  int64_t failed = 0;
  int64_t waiting = 0;  // whether shards of it wait for an exchange
  int64_t ended = 0;    // whether shards of it have ended
  Kind kind = Kind::kNone;
  int64_t bytes = 0;
};

ShardTeam::ShardTeam(int64_t shards, const Communicator* processes)
    : shards_(shards),
      processes_(*processes),
      own_(ShardRange::Of(shards, processes->rank(), processes->size())),
      threads_(Threads()) {
  try {
    for (int64_t shard = own_.begin; shard < own_.end; ++shard)
      members_.push_back(std::make_unique<Member>(this, shard));
  } catch (...) {  // the system starts no further thread
    Stop();
    throw;
  }
}

ShardTeam::~ShardTeam() { Stop(); }

void ShardTeam::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  members_.clear();
}

// The thread of a shard.
void ShardTeam::WorkOf(Member* member) {
  const ThreadCount threads(threads_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || turn_ == member; });
    if (stop_) return;
    lock.unlock();
    absl::Status ended = WithoutExceptions(
        [&] { return turns_->run(member->shard, member->world); });
    lock.lock();
    member->ended = std::move(ended);
    member->done = true;
    turn_ = nullptr;
    changed_.notify_all();
  }
}

// Until the shard comes to an exchange or its end.
void ShardTeam::GiveTurn(Member* member) {
  turns_->enter(member->shard);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    member->kind = Kind::kNone;
    turn_ = member;
    changed_.notify_all();
    changed_.wait(lock, [this] { return turn_ == nullptr; });
  }
  turns_->leave(member->shard);
}

// A mean over the batch is one over records, so that a shard counts by its
// records: 1 where all have equally many.
absl::Status ShardTeam::LearnMembers(const std::vector<int64_t>& records) {
  PD_INVARIANT(records.size() == members_.size());
  const auto size = static_cast<size_t>(processes_.size());
  const size_t most = (static_cast<size_t>(shards_) + size - 1) / size;
  std::vector<int64_t> own = records, all(most * size);
  own.resize(most);
  PD_RETURN_IF_ERROR(
      processes_.AllGather(own.data(), most * sizeof(int64_t), all.data()));
  owners_.clear();
  present_.clear();
  const auto total =
      static_cast<double>(std::accumulate(all.begin(), all.end(), int64_t{0}));
  const auto with_records = static_cast<double>(
      static_cast<int64_t>(all.size()) - std::count(all.begin(), all.end(), 0));
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == 0) continue;
    const auto owner = static_cast<int>(i / most);
    if (owner == processes_.rank()) {
      Member* member = members_[i % most].get();
      member->number = static_cast<int>(owners_.size());
      member->world.SetWeight(static_cast<double>(all[i]) * with_records /
                              total);
      member->done = false;
      member->ended = member->exchanged = absl::OkStatus();
      present_.push_back(member);
    }
    owners_.push_back(owner);
  }
  return absl::OkStatus();
}

absl::Status ShardTeam::Run(const std::vector<int64_t>& records,
                            const ShardTurns& turns) {
  turns_ = &turns;
  PD_RETURN_IF_ERROR(LearnMembers(records));
  absl::Status status, own;
  for (bool more = true; more;) {
    for (Member* member : present_)
      if (!member->done) GiveTurn(member);
    if (!status.ok()) break;  // all have learned it and ended
    const double begin = SteadySeconds();
    const auto exchange = [&] {
      status = WithoutExceptions([&] { return Exchange(&more); });
    };
    if (turns.around != nullptr)
      turns.around(exchange);
    else
      exchange();
    exchange_seconds_ += SteadySeconds() - begin;
    for (Member* member : present_) {
      member->exchanged = status;
      if (member->done && !member->ended.ok() && own.ok()) own = member->ended;
    }
    more = more || !status.ok();
  }
  return own.ok() ? status : own;
}

// All shards of a process come to one exchange or to their end.
absl::StatusOr<ShardTeam::State> ShardTeam::OwnState() {
  State state;
  for (const Member* member : present_) {
    state.failed |= member->done && !member->ended.ok();
    (member->done ? state.ended : state.waiting) = 1;
    if (member->done) continue;
    const auto bytes =
        std::accumulate(member->sends.begin(), member->sends.end(), size_t{0});
    if (state.kind != Kind::kNone &&
        (state.kind != member->kind ||
         state.bytes != static_cast<int64_t>(bytes)))
      state.failed = 1;
    state.kind = member->kind;
    state.bytes = static_cast<int64_t>(bytes);
  }
  return state;
}

absl::Status ShardTeam::Exchange(bool* more) {
  PD_ASSIGN_OR_RETURN(const State own, OwnState());
  std::vector<State> all(static_cast<size_t>(processes_.size()));
  PD_RETURN_IF_ERROR(processes_.AllGather(&own, sizeof(own), all.data()));
  State met;
  for (const State& state : all) {
    if (state.failed) return Unavailable("another shard has failed");
    met.waiting |= state.waiting;
    met.ended |= state.ended;
    if (!state.waiting) continue;
    if (met.kind != Kind::kNone &&
        (met.kind != state.kind || met.bytes != state.bytes))
      met.failed = 1;
    met.kind = state.kind;
    met.bytes = state.bytes;
  }
  if (met.failed || (met.waiting && met.ended))
    return FailedPrecondition(
        "the shards of the batch do not come to the same exchanges");
  *more = met.waiting != 0;
  if (!*more) return absl::OkStatus();
  return met.kind == Kind::kAllGather
             ? AllGather(static_cast<size_t>(met.bytes))
             : AllToAll();
}

// As many bytes from each process; ranks follow each other as processes do.
absl::Status ShardTeam::AllGather(size_t bytes) {
  const auto size = static_cast<size_t>(processes_.size());
  const size_t most = (static_cast<size_t>(shards_) + size - 1) / size;
  std::vector<std::byte> own(most * bytes), all(own.size() * size);
  for (size_t i = 0; i < present_.size(); ++i)
    std::memcpy(own.data() + i * bytes, present_[i]->in, bytes);
  PD_RETURN_IF_ERROR(processes_.AllGather(own.data(), own.size(), all.data()));
  std::vector<size_t> taken(size, 0);
  for (size_t rank = 0; rank < owners_.size(); ++rank) {
    const auto owner = static_cast<size_t>(owners_[rank]);
    const std::byte* from =
        all.data() + owner * own.size() + taken[owner]++ * bytes;
    for (Member* member : present_)
      std::memcpy(member->out + rank * bytes, from, bytes);
  }
  return absl::OkStatus();
}

// From one process to another: the shards of the first in turn, each with its
// parts for those of the second.
absl::Status ShardTeam::AllToAll() {
  const auto size = static_cast<size_t>(processes_.size());
  std::vector<size_t> sends(size, 0), receives(size, 0);
  std::vector<std::byte> out;
  for (size_t process = 0; process < size; ++process)
    for (const Member* member : present_) {
      const std::byte* part = member->in;
      for (size_t rank = 0; rank < owners_.size(); ++rank) {
        const size_t bytes = member->sends[rank];
        if (static_cast<size_t>(owners_[rank]) == process) {
          out.insert(out.end(), part, part + bytes);
          sends[process] += bytes;
        }
        part += bytes;
      }
    }
  for (size_t rank = 0; rank < owners_.size(); ++rank)
    for (const Member* member : present_)
      receives[static_cast<size_t>(owners_[rank])] += member->receives[rank];
  std::vector<std::byte> in(
      std::accumulate(receives.begin(), receives.end(), size_t{0}));
  PD_RETURN_IF_ERROR(
      processes_.AllToAll(out.data(), sends, in.data(), receives));
  const std::byte* from = in.data();
  std::vector<std::byte*> into;
  for (Member* member : present_) into.push_back(member->out);
  for (size_t rank = 0; rank < owners_.size(); ++rank)
    for (size_t i = 0; i < present_.size(); ++i) {
      const size_t bytes = present_[i]->receives[rank];
      std::memcpy(into[i], from, bytes);
      into[i] += bytes;
      from += bytes;
    }
  return absl::OkStatus();
}

}  // namespace pd
