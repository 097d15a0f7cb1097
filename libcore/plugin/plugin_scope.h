// SPDX-License-Identifier: Apache-2.0
// The border between the library and a plug-in's functions: what they throw
// becomes a Status that names the plug-in and its part, and a crash in them
// is told before the process ends.
#ifndef PD_LIBCORE_PLUGIN_PLUGIN_SCOPE_H_
#define PD_LIBCORE_PLUGIN_PLUGIN_SCOPE_H_

#include <exception>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace pd {

/// A thing that a plug-in has, as messages name it.
struct PluginPart {
  const char* kind = "op";  ///< or "kernel", "device"
  std::string type;         ///< "custom_relu_grad"
  std::string file;         ///< of the plug-in; "" where the program has it

  /// "plug-in 'librelu.so', op 'custom_relu'".
  std::string Describe() const;
};

/// Runs a function of that plug-in.
absl::Status CallPlugin(const PluginPart& part,
                        const std::function<void()>& call);

/// The text of an exception in one line.
std::string OneLine(const std::exception& error);

/// From now on a signal that ends the process (SIGSEGV, SIGABRT, ...) while a
/// plug-in's function runs writes a line that names the plug-in to standard
/// error first. A handler that somebody else has set stays.
void TellCrashes();

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_PLUGIN_SCOPE_H_
