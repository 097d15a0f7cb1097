// SPDX-License-Identifier: Apache-2.0
// `--help`: the manual and the option table as plain text of 80 columns.
#ifndef PD_CMD_COMMON_HELP_H_
#define PD_CMD_COMMON_HELP_H_

#include <string>
#include <vector>

#include "cmd/common/manual.h"

namespace pd {

/// Usage, options by group, exit statuses, examples.
std::string HelpText(const Manual& manual,
                     const std::vector<OptionGroup>& groups);

/// The exit statuses that the tool can end with, with their meaning.
std::vector<Manual::Entry> ExitEntries(const Manual& manual);

}  // namespace pd

#endif  // PD_CMD_COMMON_HELP_H_
