// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/batcher.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"

namespace pd {
namespace serve {
namespace {

using Seconds = std::chrono::duration<double>;

std::chrono::steady_clock::duration ToDuration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      Seconds(seconds));
}

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// ResourceExhausted says that the queue is full, which a client cures by
// waiting; a run without memory is the server's trouble.
absl::Status OfRun(const absl::Status& status) {
  return absl::IsResourceExhausted(status)
             ? absl::UnavailableError(status.message())
             : status;
}

}  // namespace

Batcher::Batcher(std::shared_ptr<inference::SharedModel> model,
                 const BatchOptions& options,
                 std::shared_ptr<ModelMetrics> metrics,
                 const NamedArrays& example)
    : model_(std::move(model)),
      options_(options),
      metrics_(std::move(metrics)) {
  for (int i = 0; i < options_.workers; ++i) {
    runners_.push_back(std::make_unique<Runner>(model_));
    Runner* const runner = runners_.back().get();
    if (!example.empty()) {
      // Zeros may be no input that the model takes.
      const auto answer = runner->Run(example);
      if (!answer.ok())
        LogVerbose("a run on zeros: %s",
                   std::string(answer.status().message()));
    }
    threads_.emplace_back([this, runner] { Work(runner); });
  }
}

void Batcher::Close() {
  const std::lock_guard<std::mutex> one(closing_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

absl::StatusOr<Outputs> Batcher::Answer(const NamedArrays& inputs) {
  Request request;
  request.inputs = &inputs;
  if (options_.max_batch > 1) request.key = JoinKey(inputs);
  request.rows = request.key.empty() ? 1 : Rows(inputs);
  request.arrival = Clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  if (closed_) return absl::AbortedError("this version has been unloaded");
  if (static_cast<int64_t>(queue_.size()) >= options_.max_queue)
    return ResourceExhausted(
        "%d requests wait already, as many as may; try again later",
        queue_.size());
  queue_.push_back(&request);
  metrics_->waiting.fetch_add(1);
  // All workers: one of them may be waiting for more of another kind.
  arrived_.notify_all();
  request.wake.wait_until(
      lock, request.arrival + ToDuration(options_.max_wait_seconds),
      [&] { return request.taken || request.done; });
  if (!request.taken && !request.done) {
    queue_.erase(std::find(queue_.begin(), queue_.end(), &request));
    metrics_->waiting.fetch_sub(1);
    return DeadlineExceeded(
        "no run took the request in %g s, so it is given up; try again later",
        options_.max_wait_seconds);
  }
  request.wake.wait(lock, [&] { return request.done; });
  return std::move(request.answer);
}

// Until a batch is to be taken; false when there is nothing more to do.
bool Batcher::Wait(std::unique_lock<std::mutex>* lock) {
  for (;;) {
    arrived_.wait(*lock, [&] { return closed_ || !queue_.empty(); });
    if (queue_.empty()) return false;
    if (closed_ || options_.max_delay <= 0) return true;
    const Request* const first = queue_.front();
    if (first->key.empty() || proof_.Refuted(first->key)) return true;
    const auto due = first->arrival + ToDuration(options_.max_delay);
    const auto full = [&] {
      if (closed_ || queue_.empty() || queue_.front() != first) return true;
      int64_t rows = 0;
      for (const Request* one : queue_)
        if (one->key == first->key) rows += one->rows;
      return rows >= options_.max_batch;
    };
    const bool was_full = arrived_.wait_until(*lock, due, full);
    if (queue_.empty() || queue_.front() != first) continue;
    if (was_full || Clock::now() >= due) return true;
  }
}

// The first request and those that it is joined with. Each number of rows has
// a plan of its own, so sums that are powers of two are preferred.
Batcher::Batch Batcher::Take() {
  Batch batch = {queue_.front()};
  if (!queue_.front()->key.empty()) {
    int64_t rows = batch[0]->rows;
    const int64_t most =
        options_.max_delay > 0
            ? options_.max_batch
            : sizes_.Most(batch[0]->key, rows, options_.max_batch);
    size_t best = IsPowerOfTwo(rows) ? 1 : 0;
    for (size_t i = 1; i < queue_.size() && rows < most; ++i) {
      Request* const one = queue_[i];
      if (one->key != batch[0]->key || rows + one->rows > most) continue;
      rows += one->rows;
      batch.push_back(one);
      if (IsPowerOfTwo(rows) || rows == most) best = batch.size();
    }
    if (best > 0) batch.resize(best);
  }
  for (Request* one : batch) {
    queue_.erase(std::find(queue_.begin(), queue_.end(), one));
    one->taken = true;
  }
  metrics_->waiting.fetch_sub(static_cast<int64_t>(batch.size()));
  return batch;
}

void Batcher::Work(Runner* runner) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (Wait(&lock)) {
    const Batch batch = Take();
    lock.unlock();
    const auto now = Clock::now();
    for (const Request* one : batch)
      metrics_->queue_seconds.Observe(Seconds(now - one->arrival).count());
    Run(batch, runner);
    lock.lock();
    Finish(batch);
  }
}

void Batcher::Finish(const Batch& batch) {
  for (Request* one : batch) {
    one->done = true;
    // The request lives on the stack of a thread that waits for the mutex.
    one->wake.notify_one();
  }
}

void Batcher::Run(const Batch& batch, Runner* runner) {
  if (batch.size() > 1 &&
      proof_.MayJoin(batch[0]->key, *batch[0]->inputs, runner)) {
    std::vector<const NamedArrays*> requests;
    int64_t rows = 0;
    for (const Request* one : batch) {
      requests.push_back(one->inputs);
      rows += one->rows;
    }
    const auto begin = Clock::now();
    auto answers = runner->RunJoined(requests);
    if (answers.ok()) {
      sizes_.Note(batch[0]->key, rows, Seconds(Clock::now() - begin).count());
      metrics_->batch_rows.Observe(static_cast<double>(rows));
      metrics_->batch_requests.Observe(static_cast<double>(batch.size()));
      for (size_t i = 0; i < batch.size(); ++i)
        batch[i]->answer = std::move((*answers)[i]);
      return;
    }
    // One of them may be at fault, which must not fail the others.
  }
  for (Request* one : batch) {
    const auto begin = Clock::now();
    one->answer = runner->Run(*one->inputs);
    if (one->answer.ok())
      sizes_.Note(one->key, one->rows, Seconds(Clock::now() - begin).count());
    if (!one->answer.ok()) one->answer = OfRun(one->answer.status());
    metrics_->batch_rows.Observe(static_cast<double>(one->rows));
    metrics_->batch_requests.Observe(1);
  }
}

}  // namespace serve
}  // namespace pd
