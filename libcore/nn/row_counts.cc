// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/row_counts.h"

#include <algorithm>

namespace pd {

std::string RowCountsOf(const ProgramDesc& program,
                        const std::string& variable) {
  const std::string name = PastCopies(program, variable);
  for (const OpDesc& op : program.global().ops) {
    if (op.type == "multiclass_nms3" && op.Out("Out") == name)
      return op.Out("NmsRoisNum");
    if (op.type == "matrix_nms" && op.Out("Out") == name)
      return op.Out("RoisNum");
  }
  return "";
}

size_t AppendRowCounts(const ProgramDesc& program,
                       std::vector<std::string>* outputs) {
  const size_t before = outputs->size();
  for (size_t i = 0; i < before; ++i) {
    const std::string counts = RowCountsOf(program, (*outputs)[i]);
    if (!counts.empty() &&
        std::count(outputs->begin(), outputs->end(), counts) == 0)
      outputs->push_back(counts);
  }
  return before;
}

std::string PastCopies(const ProgramDesc& program,
                       const std::string& variable) {
  const auto& ops = program.global().ops;
  std::string name = variable;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op)
    if (op->type == "assign" && op->Out("Out") == name) name = op->In("X");
  return name;
}

}  // namespace pd
