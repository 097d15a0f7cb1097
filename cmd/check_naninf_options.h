// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_CHECK_NANINF_OPTIONS_H_
#define PD_CMD_CHECK_NANINF_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common/tool.h"

namespace pd {

struct CheckNaninfOptions {
  CommonOptions common;
  std::vector<std::string> files;
  std::string config;                  ///< the job file
  std::vector<std::string> overrides;  ///< "path=value"
  std::optional<int64_t> steps;
  std::string init_from;  ///< a MODEL
  bool bisect = false;    ///< the one of `files` is a run
  std::string model, params_file;
  std::string feed;     ///< npz
  std::string lod;      ///< JSON: sequence lengths of the feed
  std::string startup;  ///< a startup program
  std::string fetch;    ///< names, separated by commas
  std::vector<std::string> watch;
  int64_t every = 1;
  // Lists, separated by commas.
  std::string skip_ops, skip_roles, skip_variables, allow_infinities;
  bool half = false;
  std::string dump;  ///< a folder
};

Tool CheckNaninfTool(CheckNaninfOptions* options);

}  // namespace pd

#endif  // PD_CMD_CHECK_NANINF_OPTIONS_H_
