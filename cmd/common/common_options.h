// SPDX-License-Identifier: Apache-2.0
// The options that every tool has, and what they do to the process.
#ifndef PD_CMD_COMMON_COMMON_OPTIONS_H_
#define PD_CMD_COMMON_COMMON_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cmd/common/manual.h"
#include "cmd/common/option_table.h"

namespace pd {

struct DevicePlace;
class World;

struct CommonOptions {
  bool help = false;
  bool version = false;
  bool devices = false;
  bool list_flags = false;
  std::string device = "auto";
  std::optional<int64_t> threads;  ///< CPUs that may be used when not set
  std::optional<int64_t> seed;     ///< the job's when not set
  std::string memory_limit;        ///< the machine's when empty
  std::string format = "text";
  int quiet = 0;    ///< times -q was given
  int verbose = 0;  ///< times -v was given
  std::vector<std::string> flags;
  std::vector<std::string> plugins;   ///< shared libraries of users
  std::string prefer_plugin = "yes";  ///< "no": their kernels are asked last
  /// The place that `device` names, once RunTool has opened it; null: the CPU.
  std::shared_ptr<const DevicePlace> place;
  /// The processes that work together, once RunTool has joined them; null: this
  /// one works alone.
  std::shared_ptr<World> world;

  bool json() const { return format == "json"; }
};

/// Adds the common options, under the title "Common".
void BindCommonOptions(OptionTable* table, CommonOptions* options);

/// The environment variables that the process reads, for the manual.
std::vector<Manual::Entry> CommonEnvironment();

/// Sets log level, flags (environment first, then --flags) and threads.
/// CommandLineError for bad values.
absl::Status ApplyCommonOptions(const OptionTable& table,
                                const CommonOptions& options);

}  // namespace pd

#endif  // PD_CMD_COMMON_COMMON_OPTIONS_H_
