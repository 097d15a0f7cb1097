// SPDX-License-Identifier: Apache-2.0
// Other names for a program's variables.
#ifndef PD_LIBCORE_PROGRAM_RENAME_VARIABLES_H_
#define PD_LIBCORE_PROGRAM_RENAME_VARIABLES_H_

#include <map>
#include <string>

#include "libcore/ir/program_desc.h"

namespace pd {

/// By the name that a variable has: the one that it gets.
using Renames = std::map<std::string, std::string>;

/// Renames in the slots of all ops, and no declarations.
void RenameInOps(const Renames& names, ProgramDesc* program);

/// Renames variables where they are declared and used, in all blocks. The new
/// names are the caller's to keep apart.
void RenameVariables(const Renames& names, ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_RENAME_VARIABLES_H_
