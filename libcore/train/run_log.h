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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/train/evaluator.h"

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

/// {"step": 100, "epoch": 1, "loss": 0.25, "lr": 0.001}
std::string StepLine(int64_t step, int64_t epoch, float loss, double rate);
/// {"step": 938, "epoch": 1, "train": {"records": 60000, "loss": 0.31}}
std::string EpochLine(int64_t step, int64_t epoch, int64_t records,
                      double mean_loss);
/// {"step": 938, "epoch": 1, "eval": {"records": 10000, "loss": ..., ...}}
std::string EvaluationLine(int64_t step, int64_t epoch,
                           const EvaluationResult& result);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_RUN_LOG_H_
