// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EXPORT_RUN_H_
#define PD_CMD_EXPORT_RUN_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/export_options.h"

namespace pd {

/// Exports as the options say; a line about what was written goes to `out`.
absl::Status RunExport(const ExportOptions& options, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_EXPORT_RUN_H_
