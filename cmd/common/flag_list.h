// SPDX-License-Identifier: Apache-2.0
// --list-flags.
#ifndef PD_CMD_COMMON_FLAG_LIST_H_
#define PD_CMD_COMMON_FLAG_LIST_H_

#include <string>

namespace pd {

/// Every flag with its type, default, value and state, as a table for people or
/// as a JSON array.
std::string FlagsText(bool json);

}  // namespace pd

#endif  // PD_CMD_COMMON_FLAG_LIST_H_
