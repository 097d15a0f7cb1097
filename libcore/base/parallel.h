// SPDX-License-Identifier: Apache-2.0
// One set of compute threads: OpenMP's, which oneDNN uses too. A loop is split
// into equal contiguous parts by thread number, so a result depends on the
// thread count at most, never on timing.
#ifndef PD_LIBCORE_BASE_PARALLEL_H_
#define PD_LIBCORE_BASE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace pd {

/// CPUs that this process may use: affinity mask, lowered by the cgroup quota
/// (rounded up), at least 1.
int AvailableCpus();

/// Sets the number of compute threads; 0 means AvailableCpus().
void SetThreads(int threads);

/// The number of compute threads.
int Threads();

/// Calls `body(begin, end)` on parts of [0, n) from at most Threads() threads.
/// A part has at least `grain` items, so small work stays on the caller. The
/// first exception that a part throws is thrown here when all have ended. The
/// body is a whole loop, so a call through a reference costs nothing beside it,
/// and the parallel region is compiled once instead of at each of its callers.
void ParallelFor(int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

/// Calls `body(part, parts)` once on each of Threads() threads.
void ParallelParts(absl::FunctionRef<void(int part, int parts)> body);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_PARALLEL_H_
