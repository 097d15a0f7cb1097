// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_TRAIN_RUN_H_
#define PD_CMD_TRAIN_RUN_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/train_options.h"

namespace pd {

/// Trains or times as the options say; results go to `out`.
absl::Status RunTrain(const TrainOptions& options, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_TRAIN_RUN_H_
