// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/initial_values.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/match_params.h"
#include "libcore/train/load_model.h"

namespace pd {

absl::Status TakeParameters(const ProgramDesc& test, const std::string& name,
                            Session* session) {
  PD_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(name));
  FitNames(test, &model);
  // The network's parameters and running statistics, not the optimizer's.
  const std::vector<std::string> kept = PersistableTensors(test);
  const std::set<std::string> parameters(kept.begin(), kept.end());
  // What stays as initialised and what nobody takes is said; a shape that does
  // not fit is an error.
  const ParamMatch match = MatchParams(test, model.params);
  std::vector<std::string> untouched;
  for (const std::string& missing : match.missing)
    if (parameters.count(missing) > 0) untouched.push_back(missing);
  if (untouched.size() == parameters.size())
    return InvalidArgument("'%s' holds no parameter of this network",
                           model.path);
  for (const ParamMatch::Misshapen& wrong : match.misshapen)
    if (parameters.count(wrong.name) > 0)
      return InvalidArgument(
          "'%s': parameter '%s' has shape %s; the network's has %s", model.path,
          wrong.name, ToString(wrong.value), ToString(wrong.declared));
  if (!untouched.empty())
    LogWarning("'%s' has no %s: initial values are kept", model.path,
               QuotedList(untouched));
  if (!match.surplus.empty())
    LogWarning("'%s': nothing takes the values of %s", model.path,
               match.SurplusText());
  for (const auto& [variable, value] : model.params)
    if (parameters.count(variable) > 0)
      PD_RETURN_IF_ERROR(
          Annotate(session->scope().Set(variable, value), model.path));
  return absl::OkStatus();
}

absl::Status TakeValues(const TrainProgram& program, const std::string& folder,
                        Checkpoint checkpoint, bool weights_only,
                        Session* session) {
  const std::string place = absl::StrCat("checkpoint '", folder, "'");
  NamedArrays& values = checkpoint.params;
  values.merge(checkpoint.opt);
  ParamMatch match = MatchParams(program.main, values);
  if (weights_only) {
    const std::vector<std::string> weights = PersistableTensors(program.test);
    const auto fresh = [&weights](const std::string& name) {
      return !std::binary_search(weights.begin(), weights.end(), name);
    };
    match.Forget(fresh);
    for (auto it = values.begin(); it != values.end();)
      it = fresh(it->first) ? values.erase(it) : std::next(it);
  }
  PD_RETURN_IF_ERROR(
      Annotate(match.Error(),
               absl::StrCat(place, " is of another network or optimizer")));
  for (const VarDesc& var : program.main.global().vars) {
    const auto value = values.find(var.name);
    if (!var.persistable || value == values.end()) continue;
    PD_RETURN_IF_ERROR(
        Annotate(session->scope().Set(var.name, value->second), place));
  }
  return absl::OkStatus();
}

}  // namespace pd
