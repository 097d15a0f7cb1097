// SPDX-License-Identifier: Apache-2.0
// One set of compute threads: OpenMP's, which oneDNN uses too. A loop is split
// into equal contiguous parts by thread number, so a result depends on the
// thread count at most, never on timing.
#ifndef PD_LIBCORE_BASE_PARALLEL_H_
#define PD_LIBCORE_BASE_PARALLEL_H_

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

namespace pd {

/// The first exception of several threads. An exception (of a container that
/// finds no memory) must not leave a parallel region: the process would end.
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
  /// Throws it on, once the region has ended.
  void Rethrow() const {
    if (exception_ != nullptr) std::rethrow_exception(exception_);
  }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
  std::exception_ptr exception_;
};

/// CPUs that this process may use: affinity mask, lowered by the cgroup quota
/// (rounded up), at least 1.
int AvailableCpus();

/// Sets the number of compute threads; 0 means AvailableCpus().
void SetThreads(int threads);

/// The number of compute threads.
int Threads();

/// Calls `body(begin, end)` on parts of [0, n) from at most Threads() threads.
/// A part has at least `grain` items, so small work stays on the caller. The
/// first exception that a part throws is thrown here when all have ended.
template <typename Body>
void ParallelFor(int64_t n, int64_t grain, const Body& body) {
  const int64_t parts =
      std::min<int64_t>(Threads(), n / std::max<int64_t>(grain, 1));
  if (parts <= 1) {
    if (n > 0) body(int64_t{0}, n);
    return;
  }
  FirstException thrown;
#pragma omp parallel num_threads(static_cast <int>(parts))
  {
    const int64_t count = omp_get_num_threads();
    const int64_t me = omp_get_thread_num();
    const int64_t begin = n * me / count;
    const int64_t end = n * (me + 1) / count;
    if (begin < end) thrown.Keep([&] { body(begin, end); });
  }
  thrown.Rethrow();
}

/// Calls `body(part, parts)` once on each of Threads() threads.
template <typename Body>
void ParallelParts(const Body& body) {
  const int threads = Threads();
  if (threads <= 1) {
    body(0, 1);
    return;
  }
  FirstException thrown;
#pragma omp parallel num_threads(threads)
  thrown.Keep([&] { body(omp_get_thread_num(), omp_get_num_threads()); });
  thrown.Rethrow();
}

}  // namespace pd

#endif  // PD_LIBCORE_BASE_PARALLEL_H_
