// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/bucket_sums.h"

#include <utility>

#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/thread_count.h"

namespace pd {

BucketSums::BucketSums(int64_t shards, const std::vector<int64_t>& counts,
                       const Communicator* processes)
    : BucketSums(shards, counts,
                 std::vector<std::vector<int64_t>>(counts.size()), processes) {}

BucketSums::BucketSums(int64_t shards, const std::vector<int64_t>& counts,
                       const std::vector<std::vector<int64_t>>& parts,
                       const Communicator* processes)
    : results_(counts.size(), nullptr), full_(counts.size(), 0) {
  for (size_t b = 0; b < counts.size(); ++b)
    sums_.push_back(
        parts[b].empty()
            ? std::make_unique<ShardSum>(shards, counts[b], processes)
            : std::make_unique<ShardSum>(shards, parts[b], processes));
  if (processes->size() > 1) thread_ = std::thread([this] { Work(); });
}

BucketSums::~BucketSums() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BucketSums::Add(size_t bucket, bool present) {
  sums_[bucket]->Add(present);
  if (!sums_[bucket]->complete()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    full_[bucket] = 1;
  }
  changed_.notify_all();
}

absl::StatusOr<const float*> BucketSums::Sum(size_t bucket) {
  if (bucket == 0) {
    PD_ASSIGN_OR_RETURN(present_, sums_[0]->GatherPresent());
  }
  return sums_[bucket]->Finish(present_);
}

absl::StatusOr<const float*> BucketSums::Finish(size_t bucket) {
  if (!thread_.joinable()) return Sum(bucket);
  std::unique_lock<std::mutex> lock(mutex_);
  PD_INVARIANT(full_[bucket] != 0);
  changed_.wait(lock, [&] { return done_ > bucket; });
  const absl::StatusOr<const float*> result = results_[bucket];
  if (bucket + 1 == sums_.size()) {
    done_ = 0;
    full_.assign(full_.size(), 0);
  }
  return result;
}

void BucketSums::set_around(Around around) {
  std::lock_guard<std::mutex> lock(mutex_);
  around_ = std::move(around);
}

double BucketSums::exchange_seconds() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return exchange_seconds_;
}

int64_t BucketSums::held_bytes() const {
  int64_t bytes = 0;
  for (const auto& sum : sums_) bytes += sum->held_bytes();
  return bytes;
}

// All processes send the buckets in one order. After an error the rest of the
// batch's buckets have it too: the others may have left this exchange.
void BucketSums::Work() {
  const ThreadCount one(1);  // the others compute
  absl::Status status;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      return stop_ || (done_ < full_.size() && full_[done_] != 0);
    });
    if (stop_) return;
    const size_t bucket = done_;
    const Around around = around_;
    lock.unlock();
    const double begin = SteadySeconds();
    absl::StatusOr<const float*> result = nullptr;
    if (status.ok()) {
      const auto travel = [&] { result = Sum(bucket); };
      if (around != nullptr)
        around(bucket, travel);
      else
        travel();
      status = result.status();
    } else {
      result = status;
    }
    const double seconds = SteadySeconds() - begin;
    lock.lock();
    results_[bucket] = std::move(result);
    exchange_seconds_ += seconds;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace pd
