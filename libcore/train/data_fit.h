// SPDX-License-Identifier: Apache-2.0
// Whether a job's parts fit each other and its data, as far as can be known
// before the first step: what cannot work is an error with its place in the
// job, what works but can hardly be meant a warning.
#ifndef PD_LIBCORE_TRAIN_DATA_FIT_H_
#define PD_LIBCORE_TRAIN_DATA_FIT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/data/loader.h"
#include "libcore/nn/job.h"
#include "libcore/train/train_program.h"

namespace pd {

/// Checks `set` ("train", "eval") against the network: every input and label
/// has a field of its name, type and shape, and no label is a class that the
/// layer before a loss has no output for. InvalidArgument says the place of the
/// input, loss or layer.
absl::Status CheckDataFits(const LoadedJob& job, const TrainProgram& program,
                           const Loader& loader, absl::string_view set);

/// Warnings of legal but useless settings, a sentence each with its place:
/// a learning rate of 0, a schedule that does not end with the training or does
/// nothing in it, outputs that are no class, results that are followed in vain.
std::vector<std::string> WarningsOf(const LoadedJob& job,
                                    const TrainProgram& program,
                                    const Loader& train);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_DATA_FIT_H_
