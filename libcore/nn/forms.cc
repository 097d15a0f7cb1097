// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/forms.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/op_chain.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

// A copy under a name that only counts results.
absl::StatusOr<std::string> Named(const std::string& variable,
                                  BlockBuilder* main) {
  OpDesc op;
  op.type = "assign";
  op.SetInput("X", {variable});
  const std::string name = main->UniqueTemporary("result");
  op.SetOutput("Out", {name});
  PD_RETURN_IF_ERROR(main->Append(std::move(op)));
  return name;
}

// Declares the labels of one form that the other lacks there.
void AddLabels(const std::vector<VarDesc>& labels, ProgramDesc* program) {
  for (const VarDesc& label : labels)
    if (program->global().FindVar(label.name) == nullptr)
      program->global().vars.push_back(label);
}

}  // namespace

absl::Status NameResults(BuiltModel* built, BlockBuilder* main) {
  for (std::string& output : built->outputs) {
    PD_ASSIGN_OR_RETURN(output, Named(output, main));
  }
  if (built->loss.empty()) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(built->loss, Named(built->loss, main));
  return absl::OkStatus();
}

absl::Status JoinForms(BuiltModel eval, BuiltModel* built) {
  for (const VarDesc& var : eval.main.global().vars) {
    if (!var.persistable) continue;
    const VarDesc* trained = built->main.global().FindVar(var.name);
    const auto owner = std::find_if(
        eval.parameters.begin(), eval.parameters.end(),
        [&](const ParameterSettings& p) { return p.name == var.name; });
    const std::string layer =
        owner == eval.parameters.end() ? "a layer" : "'" + owner->layer + "'";
    if (trained == nullptr || !trained->persistable)
      return InvalidArgument(
          "%s has '%s' in evaluation only, where nothing trains it; with "
          "weight_attr { name: ... }, or the name of a layer, it is one that "
          "training has",
          layer, var.name);
    if (trained->shape != var.shape)
      return InvalidArgument(
          "'%s' has shape %s in training and %s in "
          "evaluation",
          var.name, ToString(trained->shape), ToString(var.shape));
  }
  for (const VarDesc& label : eval.labels) {
    const auto same = std::find_if(
        built->labels.begin(), built->labels.end(),
        [&](const VarDesc& other) { return other.name == label.name; });
    if (same == built->labels.end()) built->labels.push_back(label);
  }
  AddLabels(built->labels, &built->main);
  built->test = CloneForTest(eval.main);
  AddLabels(built->labels, &built->test);
  built->metrics = std::move(eval.metrics);
  built->test_layers = std::move(eval.layers);
  return absl::OkStatus();
}

absl::Status InForm(const absl::Status& status, const char* form) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   " (in the network's form for ", form, ")"));
}

}  // namespace pd
