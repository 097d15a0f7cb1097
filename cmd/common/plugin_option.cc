// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/plugin_option.h"

#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/plugin/plugins.h"

namespace pd {

void BindPluginOption(OptionTable* table, CommonOptions* options) {
  table->Group("Plug-ins");
  table->Texts({"--plugin", "FILE.so",
                "loads operators, kernels and devices of your own, written for "
                "PaddlePaddle's headers, from a shared library"},
               &options->plugins);
  table->Choice(
      {"--prefer-plugin", "WHETHER",
       "whether kernels of plug-ins are asked before pdkit's own (`yes`) "
       "or only where it has none (`no`)"},
      {"yes", "no"}, &options->prefer_plugin);
}

absl::Status LoadPlugins(const CommonOptions& options) {
  for (const std::string& file : options.plugins)
    PD_RETURN_IF_ERROR(LoadPlugin(file));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpRegistry>> RegistryFor(
    const CommonOptions& options) {
  PD_RETURN_IF_ERROR(LoadPlugins(options));
  PD_ASSIGN_OR_RETURN(auto registry, MakeRegistry(options.place));
  PD_RETURN_IF_ERROR(
      AddPluginOps(registry.get(), options.prefer_plugin == "yes"));
  return registry;
}

}  // namespace pd
