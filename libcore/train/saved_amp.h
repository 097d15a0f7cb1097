// SPDX-License-Identifier: Apache-2.0
// Mixed precision of a saved training program.
#ifndef PD_LIBCORE_TRAIN_SAVED_AMP_H_
#define PD_LIBCORE_TRAIN_SAVED_AMP_H_

#include "absl/status/status.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/train/train_program.h"

namespace pd {

/// Has `program->main`, a saved program whose updates have been found, compute
/// in the job's mixed precision, where it asks for one: the forward operators
/// are rewritten, differentiated anew and followed by the program's own
/// updates, in float32. That is right where the program's gradients are those
/// of its loss and nothing else; Unimplemented, at the job's `amp`, where they
/// are not, and for programs with blocks.
absl::Status ApplySavedAmp(const OpRegistry& registry, const LoadedJob& job,
                           TrainProgram* program);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_SAVED_AMP_H_
