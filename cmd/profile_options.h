// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_PROFILE_OPTIONS_H_
#define PD_CMD_PROFILE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common/pass_options.h"
#include "cmd/common/tool.h"

namespace pd {

struct ProfileOptions {
  CommonOptions common;
  std::string config;
  std::vector<std::string> overrides;
  std::string model, params_file;
  std::string feed;                ///< npz
  std::string lod;                 ///< JSON: sequence lengths of the feed
  std::optional<int64_t> steps;    ///< as many as the scheduler needs
  std::string scheduler = "3,14";  ///< see Scheduler::Parse
  bool timer_only = false;
  std::string trace;  ///< a file to write
  std::string html;   ///< a file to write
  int64_t buffer = 1 << 16;
  std::string counters;   ///< names of libpfm4, separated by commas
  double roofline = 0.4;  ///< seconds
  std::string sorted_by = "CPUTotal";
  bool op_detail = false, thread_sep = false, explain = false;
  std::string time_unit = "ms";
  std::vector<std::string> load;  ///< one trace, or two to compare
  std::string fail_if_slower;     ///< "5%"
  std::string simulate;           ///< "nodes=1024,link=100Gb,latency=5us"
  ProcessOptions processes;
  PassFlags passes;
};

Tool ProfileTool(ProfileOptions* options);

}  // namespace pd

#endif  // PD_CMD_PROFILE_OPTIONS_H_
