// SPDX-License-Identifier: Apache-2.0
// A few threads that share the work of one kernel at a time.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_THREADS_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_THREADS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pd_run {

class Threads {
 public:
  /// The caller's own thread is one of them.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  /// body(begin, end, thread) for equal parts of [0, size). It does not throw.
  void For(int64_t size,
           const std::function<void(int64_t, int64_t, int)>& body);

 private:
  void Work(int thread);
  void Part(int thread) const;

  std::mutex mutex_;
  std::condition_variable start_, done_;
  uint64_t round_ = 0;
  int busy_ = 0;
  bool ends_ = false;
  int64_t size_ = 0;
  const std::function<void(int64_t, int64_t, int)>* body_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_THREADS_H_
