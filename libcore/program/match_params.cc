// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/match_params.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

constexpr size_t kMostNames = 16;  // that one message lists

Shape WithoutOnes(Shape shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

bool Fits(const Shape& value, const Shape& declared) {
  const Shape have = WithoutOnes(value), want = WithoutOnes(declared);
  if (!IsDynamic(declared)) return have == want;
  // An unknown extent may be 1, so positions are compared as they stand.
  return value.size() == declared.size() &&
         std::equal(value.begin(), value.end(), declared.begin(),
                    [](int64_t h, int64_t w) { return w < 0 || h == w; });
}

// "a, b and 3 more" of texts.
std::string Listed(const std::vector<std::string>& texts) {
  const size_t shown = std::min(texts.size(), kMostNames);
  std::string list = absl::StrJoin(
      texts.begin(), texts.begin() + static_cast<long>(shown), ", ");
  if (shown < texts.size())
    absl::StrAppend(&list, " and ", texts.size() - shown, " more");
  return list;
}

std::vector<std::string> QuotedNames(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names)
    quoted.push_back(absl::StrCat("'", name, "'"));
  return quoted;
}

}  // namespace

std::vector<std::string> PersistableTensors(const ProgramDesc& program) {
  std::set<std::string> names;
  for (const BlockDesc& block : program.blocks)
    for (const VarDesc& var : block.vars)
      if (var.persistable && var.kind == VarKind::kLodTensor)
        names.insert(var.name);
  return {names.begin(), names.end()};
}

void ParamMatch::Forget(const std::function<bool(const std::string&)>& forget) {
  const auto drop = [](const auto& is_gone, auto* from) {
    from->erase(std::remove_if(from->begin(), from->end(), is_gone),
                from->end());
  };
  drop(forget, &missing);
  drop(forget, &surplus);
  drop([&forget](const Misshapen& m) { return forget(m.name); }, &misshapen);
}

absl::Status ParamMatch::Error() const {
  std::vector<std::string> parts;
  if (!missing.empty())
    parts.push_back(
        absl::StrCat("no value for ", Listed(QuotedNames(missing))));
  std::vector<std::string> shapes;
  for (const Misshapen& m : misshapen)
    shapes.push_back(absl::StrCat("'", m.name, "' has shape ",
                                  ToString(m.value), ", the program declares ",
                                  ToString(m.declared)));
  if (!shapes.empty()) parts.push_back(Listed(shapes));
  if (parts.empty()) return absl::OkStatus();
  if (!surplus.empty())
    parts.push_back(absl::StrCat("nothing takes ", SurplusText()));
  return InvalidArgument("%s", absl::StrJoin(parts, "; "));
}

std::string QuotedList(const std::vector<std::string>& names) {
  return Listed(QuotedNames(names));
}

std::string ParamMatch::SurplusText() const { return QuotedList(surplus); }

ParamMatch MatchParams(const ProgramDesc& program, const NamedArrays& values) {
  ParamMatch match;
  std::map<absl::string_view, const VarDesc*> wanted;  // in name order
  for (const BlockDesc& block : program.blocks)
    for (const VarDesc& var : block.vars)
      if (var.persistable && var.kind == VarKind::kLodTensor)
        wanted.emplace(var.name, &var);
  for (const auto& [name, var] : wanted) {
    const auto value = values.find(std::string(name));
    if (value == values.end())
      match.missing.emplace_back(name);
    else if (!Fits(value->second.shape, var->shape))
      match.misshapen.push_back({var->name, value->second.shape, var->shape});
  }
  for (const auto& [name, value] : values)
    if (wanted.count(name) == 0) match.surplus.push_back(name);
  return match;
}

}  // namespace pd
