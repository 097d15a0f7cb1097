// SPDX-License-Identifier: Apache-2.0
// The parts of WriteContent, for its own files only.
#ifndef PD_LIBCORE_CONVERT_WRITE_INTERNAL_H_
#define PD_LIBCORE_CONVERT_WRITE_INTERNAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/file_set.h"
#include "libcore/convert/write.h"
#include "libcore/model/tree.h"

namespace pd {

/// One call of WriteContent.
struct WriteJob {
  const Content& content;
  const WriteOptions& options;
  std::string path;    ///< "-" for standard output
  PickleValue object;  ///< of the content; rows as {value, rows, height}
  Written* written;
  FileSet* files;  ///< the files of a target of several
};

/// Notes what the target cannot hold: an error, unless it may be left out.
absl::Status LeaveOut(const WriteJob& job, absl::string_view target,
                      const std::vector<std::string>& what);

/// The arrays by name. Errors of Flatten; what is no array goes to LeaveOut,
/// and so do LoD levels unless the target has them.
absl::StatusOr<NamedArrays> ArraysOf(const WriteJob& job,
                                     absl::string_view target, bool holds_lod);

/// Counts what was written.
void Count(const NamedArrays& arrays, Written* written);

/// A file of the job's set for each array, under its name. InvalidArgument for
/// a name that would lead out of the folder.
absl::Status WriteTensorFolder(const WriteJob& job, const std::string& folder,
                               const NamedArrays& arrays);

/// Forms with a program.
absl::Status WriteModel(const WriteJob& job, Target target);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_WRITE_INTERNAL_H_
