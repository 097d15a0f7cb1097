// SPDX-License-Identifier: Apache-2.0
// The table of the operators that were declared in this process. Internal to
// libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_DECLARED_OPS_H_
#define PD_LIBCORE_PLUGIN_DECLARED_OPS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/plugin/custom_op.h"

namespace pd {

/// Declarations that come from now on are of this file.
void SetDeclaringFile(const std::string& file);
std::string DeclaringFile();
/// Checks the declarations that nobody has checked. Gives the names of their
/// operators, without gradients. Errors name plug-in and operator.
absl::StatusOr<std::vector<std::string>> CheckNewDeclarations();

/// A checked operator and its gradients, as a registry gets them.
std::vector<OpDef> CheckedOps();

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_DECLARED_OPS_H_
