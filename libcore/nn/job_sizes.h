// SPDX-License-Identifier: Apache-2.0
// Sizes that a job leaves to its data: `out_features: @classes`. Where a whole
// number stands, "@classes", "@columns" or "@vocabulary" may, with the field
// that is meant in parentheses behind it: "@classes(label)"; and so it may
// inside of a block's arguments: `set: "num_classes=@classes"`.
// libcore/train/resolve_job.h puts the numbers in.
#ifndef PD_LIBCORE_NN_JOB_SIZES_H_
#define PD_LIBCORE_NN_JOB_SIZES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/nn/job.h"

namespace pd {

/// A size that the data will say.
struct OpenSize {
  std::string path;   ///< the job's field: "model.layer[3].linear.out_features"
  std::string place;  ///< where it was written: "job.pbtxt:31:3"
  std::string text;   ///< as written: "@classes(label)"
  std::string kind;   ///< "classes", "columns" or "vocabulary"
  std::string field;  ///< of a record; "" where the text names none
};

/// The kind and field of "@classes(label)". InvalidArgument for other texts.
absl::StatusOr<OpenSize> ParseSize(absl::string_view text);

/// Every open size of the job, in the order of paths.
std::vector<OpenSize> OpenSizes(const LoadedJob& job);

/// The job with numbers for its open sizes. InvalidArgument, with the place,
/// where a number breaks a field's rule.
using SizeFn = std::function<absl::StatusOr<int64_t>(const OpenSize&)>;
absl::StatusOr<LoadedJob> FillSizes(const LoadedJob& job, const SizeFn& size);

/// Parts of the two functions, within libcore/nn. An open field holds a number
/// that its rule allows, and its text is noted among the places, by SizePath.
using Places = std::map<std::string, std::string>;
std::string SizePath(absl::string_view path);
std::vector<OpenSize> FindSizes(const job::Job& job, const Places& places);
absl::Status SetSizes(const SizeFn& size, job::Job* job, Places* places);

}  // namespace pd

#endif  // PD_LIBCORE_NN_JOB_SIZES_H_
