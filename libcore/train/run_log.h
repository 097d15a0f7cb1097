// SPDX-License-Identifier: Apache-2.0
// RUN/log.jsonl: one JSON object a line, holding nothing that a second run of
// the same job would not give again (no times). A resumed run cuts the file
// back to its checkpoint and goes on.
#ifndef PD_LIBCORE_TRAIN_RUN_LOG_H_
#define PD_LIBCORE_TRAIN_RUN_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/data/experience.h"
#include "libcore/data/loader.h"
#include "libcore/nn/job_changes.h"
#include "libcore/train/evaluator.h"
#include "libcore/train/step_runner.h"

namespace pd {

class RunLog {
 public:
  /// Opens RUN/log.jsonl and keeps its first `bytes` bytes. DataLoss when it is
  /// shorter.
  static absl::StatusOr<std::unique_ptr<RunLog>> Open(const std::string& run,
                                                      int64_t bytes);
  ~RunLog();

  absl::Status Append(const std::string& line);
  /// Everything so far is on disk; gives its size.
  absl::StatusOr<int64_t> Sync();

 private:
  RunLog() = default;
  std::string path_;
  std::FILE* file_ = nullptr;
};

/// {"step": 100, "epoch": 1, "loss": 0.25, "lr": 0.001}, or with phases
/// {"step": 100, "epoch": 1, "loss": 1.5, "phases": {"d": {"loss": 0.5,
/// "lr": 0.001}, "g": {"loss": 1, "lr": 0.001}}}; "episodes": 31,
/// "episode_return": 21.5 too, where the network acts and episodes have ended
std::string StepLine(const StepReport& report);
/// {"step": 938, "epoch": 1, "train": {"records": 60000, "loss": 0.31}}, with
/// episodes as StepLine
std::string EpochLine(int64_t step, int64_t epoch, int64_t records,
                      double mean_loss, const Experience* experience);
/// {"step": 938, "epoch": 1, "eval": {"records": 10000, "loss": ..., ...}}
std::string EvaluationLine(int64_t step, int64_t epoch,
                           const EvaluationResult& result);

/// {"step": 938, "epoch": 2, "changed": {"optimizer.sgd.learning_rate":
/// {"from": "0.1", "to": "0.01"}}}: what a resumed run trains with from here on
std::string ChangesLine(int64_t step, int64_t epoch,
                        const std::vector<JobChange>& changes);

/// Why training stops at a loss that is no number.
std::string BadLossText(int64_t step, float loss);

/// Records left out by loaders in an epoch, and by their data set before.
BadRecords AllSkipped(const Dataset& dataset, const BadRecords& by_loaders);
/// {"step": 938, "epoch": 1, "skipped": {"set": "train", "records": 3,
/// "first": ["'a.csv':17:3: ..."]}}
std::string SkippedLine(int64_t step, int64_t epoch, const BadRecords& bad,
                        absl::string_view set);
/// The same for people.
std::string SkippedText(const BadRecords& bad, absl::string_view set);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_RUN_LOG_H_
