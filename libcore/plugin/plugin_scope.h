// SPDX-License-Identifier: Apache-2.0
// The border between the library and a plug-in's functions: what they throw
// becomes a Status that names the plug-in and the operator, and a crash in them
// is told before the process ends.
#ifndef PD_LIBCORE_PLUGIN_PLUGIN_SCOPE_H_
#define PD_LIBCORE_PLUGIN_PLUGIN_SCOPE_H_

#include <exception>
#include <functional>

#include "absl/status/status.h"
#include "libcore/plugin/custom_op.h"

namespace pd {

/// Runs a function of `op`'s plug-in.
absl::Status CallPlugin(const CustomOp& op, const std::function<void()>& call);

/// The text of an exception in one line.
std::string OneLine(const std::exception& error);

/// From now on a signal that ends the process (SIGSEGV, SIGABRT, ...) while a
/// plug-in's function runs writes a line that names the plug-in to standard
/// error first. A handler that somebody else has set stays.
void TellCrashes();

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_PLUGIN_SCOPE_H_
