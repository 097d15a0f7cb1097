// SPDX-License-Identifier: Apache-2.0
// Records that a program writes to its standard output as .npy files, one for
// each field, one after the other.
#ifndef PD_LIBCORE_DATA_PIPE_DATASET_H_
#define PD_LIBCORE_DATA_PIPE_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/data/datasets.h"

namespace pd {

struct PipeField {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape = {1};    ///< of a record; -1 where records differ
  int64_t classes = 0;  ///< a label's range check; 0: none
};
struct PipeDatasetOptions {
  std::string command, folder;  ///< for /bin/sh -c, in that folder
  std::string set;              ///< PD_SET of its environment
  std::vector<PipeField> fields;
  int64_t records = 0;   ///< of a pass; 0: as many as come
  double timeout = 300;  ///< seconds without a byte
};
/// A stream: the program runs from Dataset::Start on, not before.
/// InvalidArgument when fields contradict.
absl::StatusOr<DatasetPtr> OpenPipe(const PipeDatasetOptions& options);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_PIPE_DATASET_H_
