// SPDX-License-Identifier: Apache-2.0
// --plugin, and the registry of a tool.
#ifndef PD_CMD_COMMON_PLUGIN_OPTION_H_
#define PD_CMD_COMMON_PLUGIN_OPTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cmd/common/common_options.h"
#include "cmd/common/option_table.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Adds --plugin and --prefer-plugin under the title "Plug-ins".
void BindPluginOption(OptionTable* table, CommonOptions* options);

/// Loads the plug-ins of `options`. The errors are those of LoadPlugin.
absl::Status LoadPlugins(const CommonOptions& options);

/// Every operator, on the place of `options`, and those of its plug-ins, which
/// are loaded. The errors are those of LoadPlugins and AddPluginOps.
absl::StatusOr<std::unique_ptr<OpRegistry>> RegistryFor(
    const CommonOptions& options);

}  // namespace pd

#endif  // PD_CMD_COMMON_PLUGIN_OPTION_H_
