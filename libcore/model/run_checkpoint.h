// SPDX-License-Identifier: Apache-2.0
// A checkpoint of a run as a command line names it: RUN (the newest), RUN@best,
// RUN@step-N, or the checkpoint's own folder.
#ifndef PD_LIBCORE_MODEL_RUN_CHECKPOINT_H_
#define PD_LIBCORE_MODEL_RUN_CHECKPOINT_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/model/checkpoint.h"

namespace pd {

struct RunCheckpoint {
  std::string folder;   ///< of the checkpoint
  std::string run;      ///< of the run; "" where the folder lies in none
  bool newest = false;  ///< chosen because it is the newest
};

/// The checkpoint that `model` names; nothing where it names a file, another
/// folder, or nothing that is there. NotFound says which checkpoints the run
/// has; InvalidArgument is for another word behind '@', and for a run that
/// follows no best result.
absl::StatusOr<std::optional<RunCheckpoint>> FindRunCheckpoint(
    const std::string& model);

/// ReadCheckpoint. Where the newest one cannot be read, the error names the one
/// before that can.
absl::StatusOr<Checkpoint> ReadRunCheckpoint(const RunCheckpoint& chosen);

/// The newest whole checkpoint of `run` before the one in `folder`; -1 when
/// there is none.
int64_t WholeCheckpointBefore(const std::string& run,
                              const std::string& folder);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_RUN_CHECKPOINT_H_
