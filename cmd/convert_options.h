// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_CONVERT_OPTIONS_H_
#define PD_CMD_CONVERT_OPTIONS_H_

#include <string>

#include "cmd/common/tool.h"

namespace pd {

struct ConvertOptions {
  CommonOptions common;
  std::string inspect;  ///< a file, a folder, or a prefix of a .pdmodel
};

Tool ConvertTool(ConvertOptions* options);

}  // namespace pd

#endif  // PD_CMD_CONVERT_OPTIONS_H_
