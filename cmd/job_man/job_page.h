// SPDX-License-Identifier: Apache-2.0
// pd-job(5): the reference of the job file. It is made of the schema that the
// parser uses (names, defaults, bounds) and of the comments beside it.
#ifndef PD_CMD_JOB_MAN_JOB_PAGE_H_
#define PD_CMD_JOB_MAN_JOB_PAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// The page in mdoc. `descriptors` is a FileDescriptorSet with source
/// information; `example` is a job file. InvalidArgument when the set is not
/// the job schema's.
absl::StatusOr<std::string> JobPage(absl::string_view descriptors,
                                    absl::string_view example);

}  // namespace pd

#endif  // PD_CMD_JOB_MAN_JOB_PAGE_H_
