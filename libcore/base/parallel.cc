// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/parallel.h"

#include <omp.h>
#include <sched.h>
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <fstream>
#include <string>

#include "libcore/base/thread_count.h"

namespace pd {
namespace {

std::atomic<int> g_threads{0};
thread_local int t_threads = 0;  // of the calling thread alone; 0: g_threads

// Cores that cgroup v2 or v1 grants, or 0 when there is no limit.
int CgroupCpus() {
  std::string quota;
  double period = 0;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  if (v2 >> quota >> period && quota != "max" && period > 0)
    return static_cast<int>(std::ceil(std::atof(quota.c_str()) / period));
  double quota_us = 0, period_us = 0;
  std::ifstream quota_v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_v1("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quota_v1 >> quota_us && period_v1 >> period_us && quota_us > 0 &&
      period_us > 0)
    return static_cast<int>(std::ceil(quota_us / period_us));
  return 0;
}

// The first exception of several threads. An exception (of a container that
// finds no memory) must not leave a parallel region: the process would end.
class FirstException {
 public:
  template <typename Work>
  void Keep(const Work& work) noexcept {
    try {
      work();
    } catch (...) {
      if (!taken_.test_and_set()) exception_ = std::current_exception();
    }
  }
  // Throws it on, once the region has ended.
  void Rethrow() const {
    if (exception_ != nullptr) std::rethrow_exception(exception_);
  }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
  std::exception_ptr exception_;
};

// ThreadSanitizer does not see the order that libgomp's forks and barriers make
// and has to be told: what the caller did comes before each thread's part, and
// each thread's part before what the caller does next.
class Order {
 public:
#if defined(__SANITIZE_THREAD__)
  Order() { __tsan_release(this); }
  void ThreadBegins() { __tsan_acquire(this); }
  void ThreadEnds() { __tsan_release(this); }
  void AllEnded() { __tsan_acquire(this); }
#else
  void ThreadBegins() {}
  void ThreadEnds() {}
  void AllEnded() {}
#endif
};

}  // namespace

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cpus = CPU_COUNT(&set);
  const int granted = CgroupCpus();
  if (granted > 0) cpus = std::min(cpus, granted);
  return std::max(cpus, 1);
}

void SetThreads(int threads) {
  const int count = threads > 0 ? threads : AvailableCpus();
  g_threads.store(count, std::memory_order_relaxed);
  omp_set_num_threads(count);
  omp_set_dynamic(0);
}

int Threads() {
  if (t_threads > 0) return t_threads;
  if (g_threads.load(std::memory_order_relaxed) == 0) SetThreads(0);
  return g_threads.load(std::memory_order_relaxed);
}

ThreadCount::ThreadCount(int threads)
    : before_(t_threads), omp_before_(omp_get_max_threads()) {
  t_threads = threads > 0 ? threads : AvailableCpus();
  if (t_threads != omp_before_) omp_set_num_threads(t_threads);
}

ThreadCount::~ThreadCount() {
  if (t_threads != omp_before_) omp_set_num_threads(omp_before_);
  t_threads = before_;
}

void ParallelFor(int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t parts =
      std::min<int64_t>(Threads(), n / std::max<int64_t>(grain, 1));
  if (parts <= 1) {
    if (n > 0) body(0, n);
    return;
  }
  FirstException thrown;
  Order order;
#pragma omp parallel num_threads(static_cast <int>(parts))
  {
    order.ThreadBegins();
    const int64_t count = omp_get_num_threads();
    const int64_t me = omp_get_thread_num();
    const int64_t begin = n * me / count;
    const int64_t end = n * (me + 1) / count;
    if (begin < end) thrown.Keep([&] { body(begin, end); });
    order.ThreadEnds();
  }
  order.AllEnded();
  thrown.Rethrow();
}

void ParallelParts(absl::FunctionRef<void(int, int)> body) {
  const int threads = Threads();
  if (threads <= 1) {
    body(0, 1);
    return;
  }
  FirstException thrown;
  Order order;
#pragma omp parallel num_threads(threads)
  {
    order.ThreadBegins();
    thrown.Keep([&] { body(omp_get_thread_num(), omp_get_num_threads()); });
    order.ThreadEnds();
  }
  order.AllEnded();
  thrown.Rethrow();
}

}  // namespace pd
