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
                "loads operators of your own, written for PaddlePaddle's "
                "`paddle/extension.h`, from a shared library; may be given "
                "several times"},
               &options->plugins);
}

absl::StatusOr<std::unique_ptr<OpRegistry>> RegistryFor(
    const CommonOptions& options) {
  for (const std::string& file : options.plugins)
    PD_RETURN_IF_ERROR(LoadPlugin(file));
  PD_ASSIGN_OR_RETURN(auto registry, MakeRegistry(options.place));
  PD_RETURN_IF_ERROR(AddPluginOps(registry.get()));
  return registry;
}

}  // namespace pd
