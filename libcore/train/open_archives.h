// SPDX-License-Identifier: Apache-2.0
// Data sets of paddle.vision.datasets and paddle.text.datasets.
#ifndef PD_LIBCORE_TRAIN_OPEN_ARCHIVES_H_
#define PD_LIBCORE_TRAIN_OPEN_ARCHIVES_H_

#include "absl/status/statusor.h"
#include "libcore/data/datasets.h"
#include "libcore/nn/job.h"

namespace pd {
namespace job {
class DataSet;
}

/// The dataset of `set`, which is of one of their kinds. What contradicts the
/// job carries its place.
absl::StatusOr<DatasetPtr> OpenArchiveOf(const LoadedJob& job,
                                         const job::DataSet& set,
                                         bool skip_bad);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_OPEN_ARCHIVES_H_
