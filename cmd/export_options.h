// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_EXPORT_OPTIONS_H_
#define PD_CMD_EXPORT_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/common/pass_options.h"
#include "cmd/common/tool.h"

namespace pd {

struct ExportOptions {
  CommonOptions common;
  std::string model, params_file;
  std::string config;  ///< "": the run's own job
  std::string to = "paddle";
  std::string out;
  int64_t opset = 13;
  std::vector<std::string> inputs;   ///< "x", "x=-1,3,224,224:uint8"
  std::vector<std::string> methods;  ///< "NAME=OUTPUTS[ from INPUTS]"
  std::string fetch;                 ///< names, separated by commas
  std::string output_name;           ///< names, separated by commas
  bool with_transforms = false;
  bool with_softmax = false;
  bool optimize = false;
  std::string verify;  ///< npz
  PassFlags passes;    ///< of `optimize`
};

Tool ExportTool(ExportOptions* options);

}  // namespace pd

#endif  // PD_CMD_EXPORT_OPTIONS_H_
