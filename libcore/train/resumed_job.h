// SPDX-License-Identifier: Apache-2.0
// A run keeps the job that it was begun with: what --resume may bring with it
// is how long to train, when to evaluate, log and save, and the learning rate.
// Everything else would make the checkpoints those of one job and job.pbtxt
// that of another.
#ifndef PD_LIBCORE_TRAIN_RESUMED_JOB_H_
#define PD_LIBCORE_TRAIN_RESUMED_JOB_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job_changes.h"

namespace pd {

/// Differences from the run's job, as far as a run may go on with them.
struct ResumedChanges {
  std::vector<JobChange> free;   ///< nothing that training computes with
  std::vector<JobChange> rates;  ///< the learning rate and its schedule
  /// Of `--weights-only`: another optimizer, another precision.
  std::vector<JobChange> fresh;

  /// A learning rate to begin with that is not the run's.
  bool new_rate = false;
  /// Results of evaluation cannot be compared with those of before.
  bool new_results = false;

  /// Something that training would compute otherwise with.
  bool ChangeTraining() const { return !rates.empty() || !fresh.empty(); }
};

/// Compares `job` with RUN/job.pbtxt. AlreadyExists lists the differences that
/// the run cannot go on with, and the ways out.
absl::StatusOr<ResumedChanges> ChangesSince(const std::string& run,
                                            const LoadedJob& job,
                                            bool weights_only);

/// Says in the log of messages what has changed.
void ReportChanges(const ResumedChanges& changes);

/// Has what follows results or the learning rate forget what has no meaning
/// any more: the best result where another one is followed, the rate of
/// reduce_on_plateau where the job begins with another.
void ForgetChanged(const ResumedChanges& changes, TrainState* state);

/// Of `run`, which is finished and ended at `step`: AlreadyExists where the job
/// would train otherwise; else says that the run keeps its job.
absl::Status KeepJobAtEnd(const std::string& run, int64_t step,
                          const ResumedChanges& changes);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_RESUMED_JOB_H_
