// SPDX-License-Identifier: Apache-2.0
// Plug-ins: shared libraries with operators written for PaddlePaddle's
// <paddle/extension.h> (OPERATORS.md). A registry knows the operators of a
// process's plug-ins when AddPluginOps has been called.
#ifndef PD_LIBCORE_PLUGIN_PLUGINS_H_
#define PD_LIBCORE_PLUGIN_PLUGINS_H_

#include <string>

#include "absl/status/status.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Loads a shared library, which stays, and checks the operators that it
/// declares. A library that is loaded already is left alone. It is loaded in a
/// process of its own first, so that one that ends, throws or crashes while it
/// is loaded is an error: NotFound where there is no such file, InvalidArgument
/// with the reason where it cannot be loaded or declares nothing, AlreadyExists
/// for an operator that another plug-in has. Errors name the file.
absl::Status LoadPlugin(const std::string& file);

/// Adds the operators of all plug-ins that were loaded, and of the program
/// itself. AlreadyExists for one that the registry has.
absl::Status AddPluginOps(OpRegistry* registry);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_PLUGINS_H_
