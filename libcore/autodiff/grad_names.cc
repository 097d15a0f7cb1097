// SPDX-License-Identifier: Apache-2.0
#include "libcore/autodiff/grad_names.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace pd {
namespace {

// The replacement of "@GRAD" in hidden names: no program has it.
constexpr char kMark[] = "\x01GRAD";

template <typename Rename>
void RenameSlots(SlotList* slots, const Rename& rename) {
  for (auto& [slot, names] : *slots)
    for (std::string& name : names) name = rename(name);
}

// Every name of a variable in the program.
template <typename Rename>
void RenameAll(ProgramDesc* program, const Rename& rename) {
  for (BlockDesc& block : program->blocks) {
    for (VarDesc& var : block.vars) var.name = rename(var.name);
    for (OpDesc& op : block.ops) {
      RenameSlots(&op.inputs, rename);
      RenameSlots(&op.outputs, rename);
      // Lists of variables that an op names by attributes.
      for (const char* list : {"original_output_grad", "original_input_grad",
                               "original_output", "op_role_var"}) {
        const auto it = op.attrs.find(list);
        if (it == op.attrs.end()) continue;
        if (auto* names = std::get_if<std::vector<std::string>>(&it->second))
          for (std::string& name : *names) name = rename(name);
      }
    }
  }
}

}  // namespace

HiddenGradients::HiddenGradients(ProgramDesc* program) {
  bool found = false;
  prefix_ = "grad/grad/";
  for (const BlockDesc& block : program->blocks)
    for (const VarDesc& var : block.vars) {
      found = found || absl::StrContains(var.name, kGradSuffix);
      while (absl::StartsWith(var.name, prefix_)) prefix_ += "grad/";
    }
  if (!found) return;
  for (const BlockDesc& block : program->blocks)
    for (const VarDesc& var : block.vars) own_.insert(var.name);
  RenameAll(program, [this](const std::string& name) { return Hidden(name); });
}

std::string HiddenGradients::Hidden(const std::string& name) const {
  if (!any()) return name;
  return absl::StrReplaceAll(name, {{kGradSuffix, kMark}});
}

std::string HiddenGradients::Shown(const std::string& name) const {
  if (!any()) return name;
  std::string shown = absl::StrReplaceAll(name, {{kMark, kGradSuffix}});
  // A name with the suffix itself is of a new gradient.
  const bool made = absl::StrContains(name, kGradSuffix);
  if (made && own_.count(shown) > 0) return absl::StrCat(prefix_, shown);
  return shown;
}

void HiddenGradients::Show(ProgramDesc* program) const {
  if (any())
    RenameAll(program, [this](const std::string& name) { return Shown(name); });
}

}  // namespace pd
