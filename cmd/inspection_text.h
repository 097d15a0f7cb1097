// SPDX-License-Identifier: Apache-2.0
// An Inspection for people and for programs.
#ifndef PD_CMD_INSPECTION_TEXT_H_
#define PD_CMD_INSPECTION_TEXT_H_

#include <string>

#include "libcore/model/inspect.h"

namespace pd {

/// Headings and aligned columns; bytes that are no printable text are escaped.
std::string InspectionText(const Inspection& inspection);

/// One JSON object on one line, without a line break.
std::string InspectionJson(const Inspection& inspection);

}  // namespace pd

#endif  // PD_CMD_INSPECTION_TEXT_H_
