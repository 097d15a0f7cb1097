// SPDX-License-Identifier: Apache-2.0
// A job's open ends, which its data close: sizes such as "@classes"
// (libcore/nn/job_sizes.h), and the means and standard deviations of fields
// with `standardize: true`.
#ifndef PD_LIBCORE_TRAIN_RESOLVE_JOB_H_
#define PD_LIBCORE_TRAIN_RESOLVE_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "libcore/nn/job.h"

namespace pd {

/// The job as it can be built and trained: what it leaves open is looked up in
/// data.train, which is read for it, and stands in the job like any number that
/// was written, in its EffectiveText too, and the saved networks that its
/// layers go on from are opened (OpenNetworks). A job that leaves nothing open
/// comes back as it is, and no data are read. `run` is a run that is gone on
/// with or evaluated, or "": what its training set had goes before what
/// data.train has now. InvalidArgument at the place of what the data do not
/// say; errors of files name them.
absl::StatusOr<LoadedJob> ResolveJob(const LoadedJob& job,
                                     const std::string& run = "");

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_RESOLVE_JOB_H_
