// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/initial_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/load_model.h"
#include "libcore/program/match_params.h"
#include "libcore/train/name_patterns.h"

namespace pd {
namespace {

// Whether one of the patterns matches; those that do are noted.
bool AnyMatches(const std::vector<std::string>& patterns,
                const std::string& name, std::set<std::string>* used) {
  bool any = false;
  for (const std::string& pattern : patterns) {
    if (!MatchStars(pattern, name).has_value()) continue;
    used->insert(pattern);
    any = true;
  }
  return any;
}

std::vector<std::string> NamesOf(const NamedArrays& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return names;
}

// Gives the model's parameters their other names; `before` gets, by the new
// name, the old one.
absl::Status Rename(const std::vector<std::string>& texts, LoadedModel* model,
                    std::map<std::string, std::string>* before) {
  std::vector<NameChange> changes;
  for (const std::string& text : texts) {
    PD_ASSIGN_OR_RETURN(changes.emplace_back(), NameChange::Parse(text));
  }
  std::set<std::string> used;
  const auto changed = [&](const std::string& name) {
    for (const NameChange& change : changes) {
      const auto other = change.Apply(name);
      if (!other.has_value()) continue;
      used.insert(change.text);
      return *other;
    }
    return name;
  };
  NamedArrays renamed;
  std::map<std::string, std::string> old;
  for (auto& [name, value] : model->params) {
    const std::string other = changed(name);
    const auto [it, is_new] = old.emplace(other, name);
    if (!is_new)
      return InvalidArgument(
          "--init-rename gives '%s' and '%s' of '%s' the same name, '%s'",
          it->second, name, model->path, other);
    if (other != name) (*before)[other] = name;
    renamed[other] = std::move(value);
  }
  for (auto& [name, of_program] : model->parameter_names) name = changed(name);
  model->params = std::move(renamed);
  for (const std::string& text : texts)
    if (used.count(text) == 0)
      return InvalidArgument("--init-rename '%s' matches nothing: '%s' has %s",
                             text, model->path,
                             QuotedList(NamesOf(model->params)));
  return absl::OkStatus();
}

// The parameters whose shapes differ, and what to do about them.
absl::Status ShapeError(const std::string& path,
                        const std::vector<ParamMatch::Misshapen>& wrong) {
  std::vector<std::string> texts;
  std::set<std::string> options;
  for (const ParamMatch::Misshapen& one : wrong) {
    texts.push_back(absl::StrCat("'", one.name, "' has shape ",
                                 ToString(one.value), ", the network's has ",
                                 ToString(one.declared)));
    // "fc.weight" and "fc.bias" go together.
    const size_t dot = one.name.rfind('.');
    options.insert(absl::StrCat(
        "--init-skip '",
        dot == std::string::npos ? one.name : one.name.substr(0, dot) + ".*",
        "'"));
  }
  constexpr size_t kMostTexts = 6;
  const size_t more = texts.size() - std::min(texts.size(), kMostTexts);
  texts.resize(texts.size() - more);
  return InvalidArgument("'%s': %s%s; %s keeps initial values there", path,
                         absl::StrJoin(texts, "; "),
                         more > 0 ? absl::StrCat("; and ", more, " more") : "",
                         absl::StrJoin(options, " "));
}

// Checkpoints hold the optimizer's values too, which no network takes.
bool IsOfNetwork(const LoadedModel& model, const std::string& name) {
  if (model.kind != LoadedModel::Kind::kRun) return true;
  const VarDesc* var = model.program.global().FindVar(name);
  return var != nullptr && var->is_parameter;
}

void Report(const LoadedModel& model, const TakenParameters& taken,
            size_t wanted) {
  std::string text = absl::StrCat("initial values from '", model.path,
                                  "': ", taken.taken.size(), " of ", wanted,
                                  " parameters taken");
  if (!taken.skipped.empty())
    absl::StrAppend(&text, "; skipped: ", QuotedList(taken.skipped));
  LogInfo("%s", text);
  if (!taken.initial.empty())
    LogWarning("'%s' has no %s: initial values are kept", model.path,
               QuotedList(taken.initial));
  if (!taken.left.empty())
    LogWarning("'%s': nothing takes the values of %s", model.path,
               QuotedList(taken.left));
  for (const auto& [name, old] : taken.taken)
    LogVerbose("  taken: %s%s", name,
               old.empty() ? "" : absl::StrCat(", there '", old, "'"));
}

}  // namespace

absl::StatusOr<TakenParameters> TakeParameters(const ProgramDesc& test,
                                               const InitialParameters& from,
                                               Session* session) {
  PD_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(from.model));
  std::map<std::string, std::string> before;
  PD_RETURN_IF_ERROR(Rename(from.rename, &model, &before));
  FitNames(test, &model);
  // The network's parameters and running statistics, not the optimizer's.
  const std::vector<std::string> wanted = PersistableTensors(test);
  const std::vector<std::string> had = NamesOf(model.params);
  TakenParameters result;
  std::set<std::string> used;
  for (const std::string& name : wanted)
    if (AnyMatches(from.skip, name, &used)) result.skipped.push_back(name);
  for (const std::string& name : had)
    if (AnyMatches(from.skip, name, &used)) model.params.erase(name);
  for (const std::string& pattern : from.skip)
    if (used.count(pattern) == 0)
      return InvalidArgument(
          "--init-skip '%s' matches nothing: the network has %s", pattern,
          QuotedList(wanted));
  ParamMatch match = MatchParams(test, model.params);
  const auto skipped = [&](const std::string& name) {
    return std::binary_search(result.skipped.begin(), result.skipped.end(),
                              name);
  };
  match.Forget([&](const std::string& name) {
    return skipped(name) ||
           (!std::binary_search(wanted.begin(), wanted.end(), name) &&
            !IsOfNetwork(model, before.count(name) > 0 ? before[name] : name));
  });
  if (!match.misshapen.empty()) return ShapeError(model.path, match.misshapen);
  result.initial = match.missing;
  result.left = match.surplus;
  for (const std::string& name : wanted) {
    const auto value = model.params.find(name);
    if (value == model.params.end()) continue;
    PD_RETURN_IF_ERROR(
        Annotate(session->scope().Set(name, value->second), model.path));
    const auto old = before.find(name);
    result.taken.emplace_back(name, old == before.end() ? "" : old->second);
  }
  if (result.taken.empty())
    return InvalidArgument(
        "'%s' holds no parameter of this network: it has %s, the network %s; "
        "--init-rename 'A=>B' gives its parameters other names",
        model.path, QuotedList(had), QuotedList(wanted));
  Report(model, result, wanted.size());
  return result;
}

}  // namespace pd
