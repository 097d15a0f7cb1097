// SPDX-License-Identifier: Apache-2.0
// How one job differs from another, field by field: --resume compares the job
// that it is given with the one that the run was trained by.
#ifndef PD_LIBCORE_NN_JOB_CHANGES_H_
#define PD_LIBCORE_NN_JOB_CHANGES_H_

#include <string>
#include <vector>

#include "libcore/nn/job.h"

namespace pd {

/// One field that differs.
struct JobChange {
  std::string field;  ///< names alone: "model.layer.linear.out_features"
  std::string path;  ///< as -o takes it: "model.layer[fc1].linear.out_features"
  std::string before, after;  ///< the values as text, shortened; "" without one
  std::string place;          ///< in the newer job: "job.pbtxt:31:3"
  std::string old_file;       ///< the whole path where the field names a file

  /// "'train.epochs' is 5, was 3 (job.pbtxt:31:3)".
  std::string ToString() const;
};

/// The differences of `after` from `before`, in the schema's order. Fields
/// that are not given have their defaults; paths are compared as absolute
/// ones. A list of another length is compared behind what both begin with and
/// before what both end with.
std::vector<JobChange> CompareJobs(const LoadedJob& before,
                                   const LoadedJob& after);

}  // namespace pd

#endif  // PD_LIBCORE_NN_JOB_CHANGES_H_
