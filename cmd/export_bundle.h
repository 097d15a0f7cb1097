// SPDX-License-Identifier: Apache-2.0
// Answers of a written bundle, for pd-export --verify.
#ifndef PD_CMD_EXPORT_BUNDLE_H_
#define PD_CMD_EXPORT_BUNDLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "libcore/ir/array.h"

namespace pd {

/// Runs a bundle by libpd_run on `feeds`, by the names of its inputs. The
/// results are "output_0", "output_1", ... NotFound for an input without a
/// feed, InvalidArgument for one of another dtype; errors of the runtime.
absl::StatusOr<NamedArrays> RunBundle(const std::string& path,
                                      const NamedArrays& feeds);

}  // namespace pd

#endif  // PD_CMD_EXPORT_BUNDLE_H_
