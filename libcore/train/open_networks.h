// SPDX-License-Identifier: Apache-2.0
// Saved networks that layers `model` of a job go on from, and the saved
// programs of a job's `program`: opened where a job is read, kept by its run in
// RUN/networks, so that the run needs no other file.
#ifndef PD_LIBCORE_TRAIN_OPEN_NETWORKS_H_
#define PD_LIBCORE_TRAIN_OPEN_NETWORKS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/job.h"

namespace pd {

/// The job with the networks that its layers go on from, or its programs: those
/// that `run` keeps (a run that is gone on with or evaluated; "": the one whose
/// job this is, if any), else those of the files. InvalidArgument at the
/// layer's place for a network that cannot be cut as the layer says; errors of
/// files name them.
absl::StatusOr<LoadedJob> OpenNetworks(const LoadedJob& job,
                                       const std::string& run);

/// Writes the job's networks into the run's folder, each as a model of
/// PaddlePaddle's, and its programs; those that are there stay.
absl::Status KeepNetworks(const LoadedJob& job, const std::string& run);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_OPEN_NETWORKS_H_
