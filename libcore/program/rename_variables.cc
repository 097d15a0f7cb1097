// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/rename_variables.h"

namespace pd {

void RenameInOps(const Renames& names, ProgramDesc* program) {
  for (BlockDesc& block : program->blocks)
    for (OpDesc& op : block.ops)
      for (SlotList* slots : {&op.inputs, &op.outputs})
        for (auto& [slot, variables] : *slots)
          for (std::string& variable : variables) {
            const auto it = names.find(variable);
            if (it != names.end()) variable = it->second;
          }
}

void RenameVariables(const Renames& names, ProgramDesc* program) {
  RenameInOps(names, program);
  for (BlockDesc& block : program->blocks)
    for (VarDesc& var : block.vars) {
      const auto it = names.find(var.name);
      if (it != names.end()) var.name = it->second;
    }
}

}  // namespace pd
