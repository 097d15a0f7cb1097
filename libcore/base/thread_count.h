// SPDX-License-Identifier: Apache-2.0
// Compute threads for the work of one thread of the caller's, beside others
// that have their own number: predictors of one process.
#ifndef PD_LIBCORE_BASE_THREAD_COUNT_H_
#define PD_LIBCORE_BASE_THREAD_COUNT_H_

namespace pd {

/// While it lives, loops that the calling thread starts have `threads` compute
/// threads, whatever SetThreads says; 0: AvailableCpus(). OpenMP's own number
/// for this thread, which oneDNN reads, is the same and comes back afterwards.
class ThreadCount {
 public:
  explicit ThreadCount(int threads);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  const int before_, omp_before_;
};

}  // namespace pd

#endif  // PD_LIBCORE_BASE_THREAD_COUNT_H_
