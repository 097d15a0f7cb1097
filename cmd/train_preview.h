// SPDX-License-Identifier: Apache-2.0
// Output of pd-train on a job and a run besides training: --log, --report,
// --summary, --dry-run.
#ifndef PD_CMD_TRAIN_PREVIEW_H_
#define PD_CMD_TRAIN_PREVIEW_H_

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cmd/train_options.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/report/run_watcher.h"

namespace pd {

/// The kinds in "visualdl,tensorboard", given once or several times;
/// CommandLineError for another word.
absl::StatusOr<std::vector<LogKind>> LogKindsOf(
    const std::vector<std::string>& texts);

/// "INPUT=HERTZ"; "" is no input. CommandLineError for anything else.
absl::StatusOr<SoundInput> SoundInputOf(const std::string& text);

/// --summary: the table of layers.
absl::Status PrintSummary(const TrainOptions& options,
                          const OpRegistry& registry, const LoadedJob& job,
                          std::ostream& out);

/// --dry-run: what training would need.
absl::Status PrintDryRun(const TrainOptions& options,
                         const OpRegistry& registry, const LoadedJob& job,
                         std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_TRAIN_PREVIEW_H_
