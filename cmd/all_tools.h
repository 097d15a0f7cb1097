// SPDX-License-Identifier: Apache-2.0
// Every tool of the tree; the function is generated from cmd/CMakeLists.txt.
#ifndef PD_CMD_ALL_TOOLS_H_
#define PD_CMD_ALL_TOOLS_H_

#include <vector>

#include "cmd/common/tool.h"

namespace pd {

/// Manuals and option tables, with options of their own to bind to.
std::vector<Tool> AllTools();

}  // namespace pd

#endif  // PD_CMD_ALL_TOOLS_H_
