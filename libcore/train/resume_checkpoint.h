// SPDX-License-Identifier: Apache-2.0
// Going on from a checkpoint of a run.
#ifndef PD_LIBCORE_TRAIN_RESUME_CHECKPOINT_H_
#define PD_LIBCORE_TRAIN_RESUME_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/data/experience.h"
#include "libcore/exec/session.h"
#include "libcore/model/checkpoint.h"
#include "libcore/train/train_program.h"

namespace pd {

/// How a checkpoint is gone on with.
struct ResumeOptions {
  uint64_t seed = 0;  ///< the job's; must be the checkpoint's
  int threads = 1;    ///< a word in the log where the checkpoint had others
  /// Takes only what the network has without its optimizer: parameters, and
  /// statistics such as those of batch norm.
  bool weights_only = false;
  /// Takes what environments have given; null where the network acts in none.
  Experience* experience = nullptr;
};

/// Puts the values of the checkpoint in `folder`, which must be the program's,
/// into the session, and gives its state.
absl::StatusOr<TrainState> ResumeFrom(const TrainProgram& program,
                                      const std::string& folder,
                                      const ResumeOptions& options,
                                      Session* session);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_RESUME_CHECKPOINT_H_
