// SPDX-License-Identifier: Apache-2.0
// Links between machines on a command line: rates as `10Gb`, bits a second, and
// times as `50us`.
#ifndef PD_CMD_COMMON_LINK_OPTION_H_
#define PD_CMD_COMMON_LINK_OPTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "libcore/dist/step_model.h"

namespace pd {

/// The value of `--link`: `RATE[,LATENCY[,OVERHEAD]]`, times 0 where they are
/// left out but for the overhead, which is that of TCP. A UsageError names the
/// option.
absl::StatusOr<LinkModel> ParseLink(const std::string& text);

struct Simulation {
  int nodes = 0;
  LinkModel link;
};

/// The value of `--simulate`:
/// `nodes=N,link=RATE[,latency=TIME][,overhead=TIME]` in any order. A
/// UsageError names the option.
absl::StatusOr<Simulation> ParseSimulation(const std::string& text);

}  // namespace pd

#endif  // PD_CMD_COMMON_LINK_OPTION_H_
