// SPDX-License-Identifier: Apache-2.0
// A small tool for the tests of cmd/common: it takes steps, prints one line of
// result for each, and can be told to fail in every way that there is.
#ifndef PD_TESTS_CMD_DEMO_TOOL_H_
#define PD_TESTS_CMD_DEMO_TOOL_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cmd/common/tool.h"

namespace pd {

struct DemoOptions {
  CommonOptions common;
  std::string config, ending = "done";
  std::vector<std::string> overrides, files;
  int64_t steps = 3;
  double step_ms = 0;
  std::optional<double> threshold;
  bool log = false;
};

Tool DemoTool(DemoOptions* options);

absl::Status RunDemo(const DemoOptions& options, std::ostream& out);

}  // namespace pd

#endif  // PD_TESTS_CMD_DEMO_TOOL_H_
