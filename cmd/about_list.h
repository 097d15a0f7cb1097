// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_ABOUT_LIST_H_
#define PD_CMD_ABOUT_LIST_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace pd {

/// Names and what each is about: two columns, or one JSON object.
void PrintAbout(const std::vector<std::pair<std::string, std::string>>& entries,
                bool json, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_ABOUT_LIST_H_
