// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/threads.h"

#include <system_error>

namespace pd_run {

Threads::Threads(int count) {
  // Where the system gives no more threads, there are fewer.
  try {
    for (int i = 1; i < count; ++i)
      workers_.emplace_back([this, i] { Work(i); });
  } catch (const std::system_error&) {
  }
}

Threads::~Threads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Threads::Part(int thread) const {
  const int64_t parts = count();
  const int64_t begin = size_ / parts * thread + size_ % parts * thread / parts;
  const int64_t next = thread + 1;
  const int64_t end = size_ / parts * next + size_ % parts * next / parts;
  if (begin < end) (*body_)(begin, end, thread);
}

void Threads::For(int64_t size,
                  const std::function<void(int64_t, int64_t, int)>& body) {
  if (workers_.empty() || size < 2) {
    if (size > 0) body(0, size, 0);
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_ = size;
    body_ = &body;
    busy_ = static_cast<int>(workers_.size());
    ++round_;
  }
  start_.notify_all();
  Part(0);
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
}

void Threads::Work(int thread) {
  for (uint64_t seen = 0;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return ends_ || round_ != seen; });
      if (ends_) return;
      seen = round_;
    }
    Part(thread);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace pd_run
