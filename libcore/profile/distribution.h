// SPDX-License-Identifier: Apache-2.0
// The trace of several processes, and how their communication and computation
// lie over each other. The rows of a process bear its rank in their names:
// "rank 1: main", "rank 1: communication".
#ifndef PD_LIBCORE_PROFILE_DISTRIBUTION_H_
#define PD_LIBCORE_PROFILE_DISTRIBUTION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/profile_trace.h"
#include "libcore/dist/world.h"

namespace pd {

/// Times of one process within its steps, in ns: what is covered twice counts
/// once, and communication + computation - overlap is the time of either.
struct Distribution {
  int rank = 0;
  std::string host;  ///< "" where the trace is one process's
  int64_t steps = 0;
  int64_t communication = 0;
  /// Time of the work of a GPU; where there is none, of operators.
  int64_t computation = 0;
  int64_t overlap = 0;
};

/// Time that at least one of the ranges [begin, end) covers.
int64_t CoveredTime(std::vector<std::pair<int64_t, int64_t>> ranges);

/// By kind or, as PaddlePaddle tells it, by the name of an operator.
bool IsCommunication(const TraceSite& site);

/// By rank; one for the trace of one process.
std::vector<Distribution> DistributionsOf(const ProfileTrace& trace);

/// How many processes the trace is of.
int RanksOf(const ProfileTrace& trace);

/// The part of one process. The trace itself where it is one process's.
ProfileTrace TraceOfRank(const ProfileTrace& trace, int rank);

/// One trace of those of all ranks, in their order, set against each other by
/// the clocks of their machines. Facts and counters are rank 0's.
ProfileTrace MergeRanks(std::vector<ProfileTrace> traces,
                        const std::vector<std::string>& hosts);

/// The merged trace in rank 0, an empty one in the others; all ask together.
absl::StatusOr<ProfileTrace> GatherTraces(const World& world, ProfileTrace own);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_DISTRIBUTION_H_
