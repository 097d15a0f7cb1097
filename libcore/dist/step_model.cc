// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/step_model.h"

#include <algorithm>

#include "libcore/dist/shard_sum.h"

namespace pd {
namespace {

double AllGatherSeconds(const LinkModel& link, double bytes, double others) {
  return others * (link.latency + 2 * link.overhead + bytes * link.per_byte);
}

}  // namespace

double ExchangeSeconds(const LinkModel& link, int64_t shards, int64_t numbers,
                       int processes, bool first) {
  if (processes <= 1) return 0;
  const double others = processes - 1;
  const auto part =
      static_cast<double>((numbers + processes - 1) / processes * 4);
  // BytesSent has the parts of the subtrees and of the sums.
  const double sent =
      static_cast<double>(ShardSum::BytesSent(shards, numbers, processes));
  const double subtrees = sent - others * part;
  double seconds = link.latency + others * 2 * link.overhead +
                   subtrees * link.per_byte +
                   AllGatherSeconds(link, part, others);
  if (first) {
    const auto most = static_cast<double>((shards + processes - 1) / processes);
    seconds += AllGatherSeconds(link, most, others);
  }
  return seconds;
}

StepPrediction PredictStep(const StepTimeline& measured, int processes,
                           const LinkModel& link) {
  StepPrediction step;
  step.processes = processes;
  step.shards = std::max<int64_t>(measured.shards, processes);
  const int64_t own = (step.shards + processes - 1) / processes;
  const double before = static_cast<double>(own - 1) * measured.shard;
  double alone = static_cast<double>(measured.shards) * measured.shard;
  double updated = before + measured.shard, arrived = 0, computing = updated;
  for (size_t b = 0; b < measured.buckets.size(); ++b) {
    const StepTimeline::Bucket& bucket = measured.buckets[b];
    const double travels =
        ExchangeSeconds(link, step.shards, bucket.numbers, processes, b == 0);
    step.communication += travels;
    arrived = std::max(before + bucket.full, arrived) + travels;
    updated = std::max(processes > 1 ? arrived : 0, updated) + bucket.update;
    computing += bucket.update;
    alone += bucket.update;
  }
  step.waiting = updated - computing;
  step.step = updated + measured.rest;
  alone += measured.rest;
  if (step.step > 0)
    step.efficiency = static_cast<double>(step.shards) / step.step /
                      (static_cast<double>(processes) *
                       static_cast<double>(measured.shards) / alone);
  return step;
}

}  // namespace pd
