// SPDX-License-Identifier: Apache-2.0
// Plug-ins: shared libraries with operators and kernels written for
// PaddlePaddle's headers (OPERATORS.md, KERNELS.md). A registry knows those of
// a process's plug-ins when AddPluginOps has been called.
#ifndef PD_LIBCORE_PLUGIN_PLUGINS_H_
#define PD_LIBCORE_PLUGIN_PLUGINS_H_

#include <string>

#include "absl/status/status.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Loads a shared library, which stays, and checks the operators and kernels
/// that it declares. A library that is loaded already is left alone. It is
/// loaded in a process of its own first, so that one that ends, throws or
/// crashes while it is loaded is an error: NotFound where there is no such
/// file, InvalidArgument with the reason where it cannot be loaded or declares
/// nothing, AlreadyExists for an operator that another plug-in has. Errors name
/// the file.
absl::Status LoadPlugin(const std::string& file);

/// Loads every shared library in the folder that the environment variable
/// CUSTOM_DEVICE_ROOT names, if it is set. The errors are LoadPlugin's.
absl::Status LoadDevicePlugins();

/// Adds the operators of all plug-ins that were loaded, and of the program
/// itself, and their kernels for operators that the registry has, which are
/// asked before pdkit's own, or, without `prefer_kernels`, after them.
/// AlreadyExists for an operator that the registry has.
absl::Status AddPluginOps(OpRegistry* registry, bool prefer_kernels = true);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_PLUGINS_H_
