// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/initial_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/nan_check.h"
#include "libcore/model/edit_arrays.h"
#include "libcore/model/load_model.h"
#include "libcore/model/name_patterns.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/match_params.h"
#include "libcore/train/initial_words.h"
#include "libcore/train/shape_remedies.h"

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

// The first of `patterns` that is not in `used`; null when all are.
const std::string* Unused(const std::vector<std::string>& patterns,
                          const std::set<std::string>& used) {
  for (const std::string& pattern : patterns)
    if (used.count(pattern) == 0) return &pattern;
  return nullptr;
}

std::vector<std::string> NamesOf(const NamedArrays& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return names;
}

// Gives the model's parameters their other names; `before` gets, by the new
// name, the old one.
absl::Status Rename(const InitialParameters& from, LoadedModel* model,
                    std::map<std::string, std::string>* before) {
  std::vector<NameChange> changes;
  for (const std::string& text : from.rename) {
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
          "%s gives '%s' and '%s' of '%s' the same name, '%s'",
          InitOption(from, "rename"), it->second, name, model->path, other);
    if (other != name) (*before)[other] = name;
    renamed[other] = std::move(value);
  }
  for (auto& [name, of_program] : model->parameter_names) name = changed(name);
  model->params = std::move(renamed);
  if (const std::string* text = Unused(from.rename, used))
    return InvalidArgument("%s '%s' matches nothing: '%s' has %s",
                           InitOption(from, "rename"), *text, model->path,
                           QuotedList(NamesOf(model->params)));
  return absl::OkStatus();
}

// Leaves out what `skip` names.
absl::Status Skip(const InitialParameters& from,
                  const std::vector<std::string>& wanted, LoadedModel* model,
                  std::vector<std::string>* skipped) {
  std::set<std::string> used;
  for (const std::string& name : wanted)
    if (AnyMatches(from.skip, name, &used)) skipped->push_back(name);
  for (const std::string& name : NamesOf(model->params))
    if (AnyMatches(from.skip, name, &used)) model->params.erase(name);
  if (const std::string* pattern = Unused(from.skip, used))
    return InvalidArgument("%s '%s' matches nothing: the network has %s",
                           InitOption(from, "skip"), *pattern,
                           QuotedList(wanted));
  return absl::OkStatus();
}

// Transposes the matrices that `transpose` names; `turned` gets their names.
absl::Status Transpose(const InitialParameters& from, LoadedModel* model,
                       std::set<std::string>* turned) {
  std::set<std::string> used;
  std::vector<std::string> matrices;
  for (auto& [name, value] : model->params) {
    if (value.shape.size() != 2) continue;
    matrices.push_back(name);
    if (!AnyMatches(from.transpose, name, &used)) continue;
    PD_ASSIGN_OR_RETURN(value, Transposed(value));
    turned->insert(name);
  }
  if (const std::string* pattern = Unused(from.transpose, used))
    return InvalidArgument("%s '%s' matches no matrix: those of '%s' are %s",
                           InitOption(from, "transpose"), *pattern, model->path,
                           matrices.empty() ? "none" : QuotedList(matrices));
  return absl::OkStatus();
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
  if (!taken.left.empty())
    LogWarning("'%s': nothing takes the values of %s", model.path,
               QuotedList(taken.left));
  for (const auto& [name, old] : taken.taken)
    LogVerbose("  taken: %s%s", name,
               old.empty() ? "" : absl::StrCat(", there '", old, "'"));
}

// PyTorch's linear layers keep [out, in]. Where both are as large, no shape
// says that the matrix lies the wrong way round.
void WarnOfSquares(const ProgramDesc& test, const InitialParameters& from,
                   const LoadedModel& model, const TakenParameters& taken,
                   const std::set<std::string>& turned) {
  if (model.format != "torch") return;
  std::vector<std::string> squares;
  for (const auto& [name, old] : taken.taken) {
    const Shape& shape = model.params.at(name).shape;
    if (shape.size() == 2 && shape[0] == shape[1] && turned.count(name) == 0 &&
        IsLinearWeight(test, name))
      squares.push_back(name);
  }
  if (squares.empty()) return;
  LogWarning(
      "'%s' is of PyTorch, whose linear layers keep their weights as [out, "
      "in]; taken as they are: %s; %s '%s' transposes one",
      model.path, QuotedList(squares), InitOption(from, "transpose"),
      squares.front());
}

// A parameter of which values are not finite, in words.
struct Broken {
  std::string name;
  NonFiniteCounts counts;
  int64_t values = 0;
};
std::string InWords(const std::vector<Broken>& parameters,
                    int64_t NonFiniteCounts::*kind) {
  constexpr size_t kShown = 5;
  std::vector<std::string> texts;
  for (const Broken& one : parameters) {
    if (one.counts.*kind == 0) continue;
    texts.push_back(absl::StrCat("'", one.name, "' (", one.counts.*kind, " of ",
                                 one.values, " values)"));
  }
  const size_t all = texts.size();
  if (all > kShown) texts.resize(kShown);
  return absl::StrCat(
      absl::StrJoin(texts, ", "),
      all > kShown ? absl::StrCat(" and ", all - kShown, " more") : "");
}

// NaN in a parameter is NaN in every answer: whoever wrote the file lost its
// values. An infinity may be meant, as in a mask.
absl::Status CheckFinite(const InitialParameters& from, const std::string& path,
                         const std::vector<Broken>& broken) {
  const auto first =
      std::find_if(broken.begin(), broken.end(),
                   [](const Broken& one) { return one.counts.nan > 0; });
  if (first != broken.end())
    return InvalidArgument(
        "'%s' holds NaN, which every answer of the network would be: %s; %s "
        "'%s' keeps the initial values of one",
        path, InWords(broken, &NonFiniteCounts::nan), InitOption(from, "skip"),
        first->name);
  if (!broken.empty())
    LogWarning("'%s' holds infinities: %s", path,
               InWords(broken, &NonFiniteCounts::inf));
  return absl::OkStatus();
}

// In the shape and floating type in which the network declares it.
absl::StatusOr<Array> AsDeclared(const ProgramDesc& test,
                                 const std::string& name, Array value) {
  for (const BlockDesc& block : test.blocks) {
    const VarDesc* var = block.FindVar(name);
    if (var == nullptr) continue;
    if (!IsDynamic(var->shape)) value.shape = var->shape;
    if (IsFloating(var->dtype) && IsFloating(value.dtype))
      return InFloatingType(value, var->dtype);
  }
  return value;
}

absl::StatusOr<TakenParameters> Take(const ProgramDesc& test,
                                     const InitialParameters& from,
                                     Session* session) {
  PD_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(from.model));
  std::map<std::string, std::string> before;
  PD_RETURN_IF_ERROR(Rename(from, &model, &before));
  FitNames(test, &model);
  // The network's parameters and running statistics, not the optimizer's.
  const std::vector<std::string> wanted = PersistableTensors(test);
  const std::vector<std::string> had = NamesOf(model.params);
  TakenParameters result;
  PD_RETURN_IF_ERROR(Skip(from, wanted, &model, &result.skipped));
  std::set<std::string> turned;
  PD_RETURN_IF_ERROR(Transpose(from, &model, &turned));
  ParamMatch match = MatchParams(test, model.params);
  match.Forget([&](const std::string& name) {
    return std::binary_search(result.skipped.begin(), result.skipped.end(),
                              name) ||
           (!std::binary_search(wanted.begin(), wanted.end(), name) &&
            !IsOfNetwork(model, before.count(name) > 0 ? before[name] : name));
  });
  if (!match.misshapen.empty())
    return ShapeError(test, from, model.path, match.misshapen);
  result.initial = match.missing;
  result.left = match.surplus;
  std::vector<Broken> broken;
  for (const std::string& name : wanted) {
    const auto value = model.params.find(name);
    if (value == model.params.end()) continue;
    PD_ASSIGN_OR_RETURN(const Array declared,
                        AsDeclared(test, name, value->second));
    const NonFiniteCounts counts = CountNonFinite(declared);
    if (counts.all() > 0) broken.push_back({name, counts, declared.size()});
    PD_RETURN_IF_ERROR(
        Annotate(session->scope().Set(name, declared), model.path));
    const auto old = before.find(name);
    result.taken.emplace_back(name, old == before.end() ? "" : old->second);
  }
  PD_RETURN_IF_ERROR(CheckFinite(from, model.path, broken));
  if (result.taken.empty())
    return InvalidArgument(
        "'%s' holds no parameter of this network: it has %s, the network %s; "
        "%s gives its parameters other names",
        model.path, QuotedList(had), QuotedList(wanted),
        from.place.empty() ? "--init-rename 'A=>B'"
                           : "rename { from: \"A\" to: \"B\" }");
  Report(model, result, wanted.size());
  WarnOfSquares(test, from, model, result, turned);
  return result;
}

// The names that are in both, which are sorted.
std::vector<std::string> Common(const std::vector<std::string>& a,
                                const std::vector<std::string>& b) {
  std::vector<std::string> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::back_inserter(common));
  return common;
}

}  // namespace

std::vector<InitialParameters> InitialParametersOf(const LoadedJob& job) {
  std::vector<InitialParameters> sources;
  for (const job::Init& init : job.proto().init()) {
    InitialParameters& source = sources.emplace_back();
    source.model = init.from();
    for (const job::InitRename& rename : init.rename())
      source.rename.push_back(absl::StrCat(rename.from(), "=>", rename.to()));
    source.skip.assign(init.skip().begin(), init.skip().end());
    source.transpose.assign(init.transpose().begin(), init.transpose().end());
    source.missing = init.missing() == job::Init::fail
                         ? InitialParameters::Missing::kFail
                     : init.missing() == job::Init::ignore
                         ? InitialParameters::Missing::kIgnore
                         : InitialParameters::Missing::kWarn;
    source.place = job.Where(init);
    if (init.has_word_vectors())
      source.words = {init.word_vectors().parameter(),
                      init.word_vectors().field(), init.word_vectors().lower()};
  }
  return sources;
}

absl::StatusOr<TakenParameters> TakeParameters(const ProgramDesc& test,
                                               const InitialParameters& from,
                                               Session* session) {
  auto taken = Take(test, from, session);
  // A file that cannot be read is no mistake of the job.
  if (from.place.empty() || !absl::IsInvalidArgument(taken.status()))
    return taken;
  return Annotate(taken.status(), from.place);
}

absl::Status SetInitialParameters(const TrainProgram& program,
                                  const std::vector<InitialParameters>& sources,
                                  const FieldVocabularies& vocabularies,
                                  Session* session) {
  std::vector<std::string> missing;
  std::set<std::string> embeddings;
  const InitialParameters* strictest = nullptr;
  const InitialParameters* states = nullptr;
  int64_t models = 0;
  for (const InitialParameters& source : sources) {
    if (source.words.has_value()) {
      PD_RETURN_IF_ERROR(
          TakeWordVectors(program.test, source, vocabularies, session)
              .status());
      embeddings.insert(source.words->parameter);
      continue;
    }
    // Moments and counters of a saved program's updates.
    if (absl::EndsWith(source.model, ".pdopt")) {
      states = &source;
      PD_RETURN_IF_ERROR(
          TakeParameters(program.main, source, session).status());
      continue;
    }
    ++models;
    PD_ASSIGN_OR_RETURN(const TakenParameters taken,
                        TakeParameters(program.test, source, session));
    if (strictest == nullptr) {
      missing = taken.initial;
    } else {
      // A parameter is there if one source gives it, or leaves it on purpose.
      missing = Common(missing, taken.initial);
    }
    if (strictest == nullptr || source.missing < strictest->missing)
      strictest = &source;
  }
  // A saved program may bring its parameters; layers do not.
  if (models == 0 && states != nullptr && program.values.empty())
    return InvalidArgument(
        "'%s' holds an optimizer's states alone; name the file of the "
        "parameters too",
        states->model);
  missing.erase(std::remove_if(missing.begin(), missing.end(),
                               [&](const std::string& name) {
                                 return program.values.count(name) > 0 ||
                                        embeddings.count(name) > 0;
                               }),
                missing.end());
  if (missing.empty() ||
      strictest->missing == InitialParameters::Missing::kIgnore)
    return absl::OkStatus();
  const std::string text =
      models == 1 ? absl::StrCat("'", strictest->model, "' has no ",
                                 QuotedList(missing))
                  : absl::StrCat("none of the ", models, " sources has ",
                                 QuotedList(missing));
  if (strictest->missing == InitialParameters::Missing::kWarn) {
    LogWarning("%s: initial values are kept", text);
    return absl::OkStatus();
  }
  const absl::Status error = InvalidArgument("%s; %s permits it", text,
                                             InitOption(*strictest, "skip"));
  return strictest->place.empty() ? error : Annotate(error, strictest->place);
}

}  // namespace pd
