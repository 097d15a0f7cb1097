// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_CONVERT_OPTIONS_H_
#define PD_CMD_CONVERT_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/common/tool.h"
#include "libcore/convert/edit.h"

namespace pd {

struct ConvertOptions {
  CommonOptions common;
  std::vector<std::string> in, out;  ///< at most one each
  std::string from, to;              ///< "": the content and the name decide
  std::string program;               ///< names and places for parameters
  std::string names;                 ///< "", "structured" or "parameter"
  int64_t protocol = 4;
  bool arrays_only = false;
  TensorEdits edits;
  bool upgrade = false;  ///< 1.x becomes 2.x
  std::string inspect;   ///< a file, a folder, or a prefix of a .pdmodel
  bool no_stats = false;
};

Tool ConvertTool(ConvertOptions* options);

}  // namespace pd

#endif  // PD_CMD_CONVERT_OPTIONS_H_
