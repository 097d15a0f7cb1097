// SPDX-License-Identifier: Apache-2.0
// What a training takes over from elsewhere: a model's parameters, the values
// of a checkpoint.
#ifndef PD_LIBCORE_TRAIN_INITIAL_VALUES_H_
#define PD_LIBCORE_TRAIN_INITIAL_VALUES_H_

#include <string>

#include "absl/status/status.h"
#include "libcore/exec/session.h"
#include "libcore/train/checkpoint.h"
#include "libcore/train/train_program.h"

namespace pd {

/// The parameters and running statistics of the network `test` that the MODEL
/// `name` has. A word in the log says which it has not, and what nobody takes.
/// InvalidArgument where it has none, or one of another shape.
absl::Status TakeParameters(const ProgramDesc& test, const std::string& name,
                            Session* session);

/// All values of the checkpoint in `folder`, which must be the program's; or,
/// when only weights are wanted, what the network has without its optimizer:
/// parameters, and statistics such as those of batch norm.
absl::Status TakeValues(const TrainProgram& program, const std::string& folder,
                        Checkpoint checkpoint, bool weights_only,
                        Session* session);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_INITIAL_VALUES_H_
