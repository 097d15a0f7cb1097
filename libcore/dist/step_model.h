// SPDX-License-Identifier: Apache-2.0
// The time of a training step in several processes, computed from what one
// process has measured and from a link's figures, without running it.
//
// A link has LogGP's figures: latency L, the time o that a processor spends on
// each message at either end, and G seconds for each byte. To add up a bucket
// of B bytes, P processes exchange parts of m = ceil(B / P) bytes twice
// (ShardSum). Each sends n parts, n being its subtrees of shards, to each other
// process, all at once, and then hands on P - 1 parts in a ring, one by one:
//
//   all-to-all   L + (P - 1) (2 o + n m G)
//   all-gather   (P - 1) (L + 2 o + m G)
//
// The first bucket of a step brings a further all-gather, of a byte a shard.
//
// A process computes k = ceil(S / P) shards one after the other, and bucket b
// is full r(b) after the last one has begun. Buckets travel one after the other
// while the rest is computed; when all shards are, buckets that have arrived
// are updated in their order, each in u(b):
//
//   arrived(b) = max(full(b), arrived(b - 1)) + exchange(b)
//   updated(b) = max(arrived(b), updated(b - 1)) + u(b)
//   updated(-1) = k shards;  step = updated(last) + rest
#ifndef PD_LIBCORE_DIST_STEP_MODEL_H_
#define PD_LIBCORE_DIST_STEP_MODEL_H_

#include <cstdint>
#include <vector>

namespace pd {

/// LogGP's figures, in seconds.
struct LinkModel {
  double latency = 0;   ///< L
  double overhead = 0;  ///< o
  double per_byte = 0;  ///< G
};

/// A step over shards as one process has measured it, in seconds.
struct StepTimeline {
  struct Bucket {
    int64_t numbers = 0;  ///< of float32
    double full = 0;      ///< from the beginning of the last shard on
    double update = 0;    ///< of its parameters
  };
  int64_t shards = 0;  ///< of a batch
  double shard = 0;    ///< forward and backward of one
  std::vector<Bucket> buckets;
  double rest = 0;  ///< what is neither shards nor updates
};

struct StepPrediction {
  int processes = 1;
  int64_t shards = 1;        ///< of a batch; more than measured where P > S
  double step = 0;           ///< seconds
  double communication = 0;  ///< during which a bucket travels
  double waiting = 0;        ///< of it, while nothing is computed
  /// Shards a second, divided by P times those of one process.
  double efficiency = 1;
};

/// One bucket's sums over `shards`; `first` says that it is a step's first.
double ExchangeSeconds(const LinkModel& link, int64_t shards, int64_t numbers,
                       int processes, bool first);

/// The step in so many processes, each on a machine of its own. With more of
/// them than shards, each computes one and batches grow: S = P.
StepPrediction PredictStep(const StepTimeline& measured, int processes,
                           const LinkModel& link);

}  // namespace pd

#endif  // PD_LIBCORE_DIST_STEP_MODEL_H_
