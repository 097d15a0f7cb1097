// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/http/connection_threads.h"

#include <system_error>
#include <utility>

namespace pd {
namespace serve {

void ConnectionThreads::enqueue(std::function<void()> work) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (idle_ == 0 && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { Work(); });
      ++idle_;
    } catch (const std::system_error&) {
      // The system has no more threads: those that are there have to do.
    }
  }
  state_->crowded = idle_ == 0;
  wake_.wait(lock, [&] { return idle_ > 0 && !next_; });
  state_->crowded = false;
  --idle_;
  next_ = std::move(work);
  lock.unlock();
  wake_.notify_all();
}

void ConnectionThreads::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || next_; });
    if (!next_) return;
    const std::function<void()> work = std::exchange(next_, nullptr);
    lock.unlock();
    wake_.notify_all();
    work();
    lock.lock();
    ++idle_;
    wake_.notify_all();
  }
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace serve
}  // namespace pd
