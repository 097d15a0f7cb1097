// SPDX-License-Identifier: Apache-2.0
// Shows where a training is, and lets signals end it.
#ifndef PD_CMD_COMMON_TRAINING_PROGRESS_H_
#define PD_CMD_COMMON_TRAINING_PROGRESS_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cmd/common/progress.h"
#include "cmd/common/stop_signals.h"
#include "libcore/data/experience.h"
#include "libcore/train/trainer.h"

namespace pd {

/// A bar for each epoch, with the last loss and, in environments, the mean
/// return of the last episodes.
class TrainingProgress : public TrainObserver {
 public:
  void OnEpoch(int64_t epoch, int64_t epochs, int64_t batches,
               int64_t done) override {
    progress_.Begin(absl::StrCat("epoch ", epoch + 1, "/", epochs), batches,
                    done);
    records_ = 0;
  }
  void OnStep(const StepReport& report) override {
    records_ += report.records;
    ProgressValue values[] = {{"loss", report.loss}, {"return", 0}};
    size_t count = 1;
    if (report.experience != nullptr)
      if (const auto mean = report.experience->returns.Mean())
        values[count++].value = *mean;
    progress_.Update(report.batch, records_, {values, count});
  }
  int StopSignal() override { return StopRequested(); }
  /// Takes the bar away, for other lines; the next step shows it again.
  void Clear() { progress_.Clear(); }
  void End() { progress_.End(); }

 private:
  Progress progress_{Progress::Standard()};
  int64_t records_ = 0;
};

}  // namespace pd

#endif  // PD_CMD_COMMON_TRAINING_PROGRESS_H_
