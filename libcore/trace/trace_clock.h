// SPDX-License-Identifier: Apache-2.0
// A clock that costs about ten nanoseconds to read: the processor's time stamp
// counter where the kernel itself trusts it, else CLOCK_MONOTONIC. What it
// counts becomes nanoseconds only when a trace is collected.
#ifndef PD_LIBCORE_TRACE_TRACE_CLOCK_H_
#define PD_LIBCORE_TRACE_TRACE_CLOCK_H_

#include <time.h>
#include <x86intrin.h>

#include <cstdint>

namespace pd {

class TraceClock {
 public:
  /// The counter now; it rises in the same way on every thread.
  static uint64_t Now() { return uses_tsc_ ? __rdtsc() : MonotonicNs(); }

  static uint64_t MonotonicNs() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
           static_cast<uint64_t>(now.tv_nsec);
  }

  /// The counter beside the nanoseconds of one moment.
  struct Anchor {
    uint64_t ticks = 0, ns = 0;
  };
  static Anchor Mark();

  /// Nanoseconds since `from`, given a second anchor that is later.
  static int64_t Nanoseconds(const Anchor& from, const Anchor& to,
                             uint64_t ticks);

 private:
  static const bool uses_tsc_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRACE_TRACE_CLOCK_H_
