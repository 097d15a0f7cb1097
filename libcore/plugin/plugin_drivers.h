// SPDX-License-Identifier: Apache-2.0
// A driver that has been started. Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_PLUGIN_DRIVERS_H_
#define PD_LIBCORE_PLUGIN_PLUGIN_DRIVERS_H_

#include <string>

#include "absl/status/statusor.h"

namespace pd {

struct PluginDriver;

/// The driver of a type, with its list of devices; NotFound names those that
/// there are.
absl::StatusOr<PluginDriver*> StartedDriver(const std::string& type);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_PLUGIN_DRIVERS_H_
