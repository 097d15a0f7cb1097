// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/name_patterns.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"

namespace pd {

std::optional<std::vector<std::string>> MatchStars(absl::string_view pattern,
                                                   absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(pattern, '*');
  std::vector<std::string> stars;
  if (parts.size() == 1) {
    if (pattern != name) return std::nullopt;
    return stars;
  }
  if (!absl::StartsWith(name, parts.front())) return std::nullopt;
  name.remove_prefix(parts.front().size());
  if (!absl::EndsWith(name, parts.back())) return std::nullopt;
  name.remove_suffix(parts.back().size());
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const size_t at = name.find(parts[i]);
    if (at == absl::string_view::npos) return std::nullopt;
    stars.emplace_back(name.substr(0, at));
    name.remove_prefix(at + parts[i].size());
  }
  stars.emplace_back(name);
  return stars;
}

absl::StatusOr<NameChange> NameChange::Parse(absl::string_view text) {
  const size_t arrow = text.find("=>");
  NameChange change;
  change.text = std::string(text);
  if (arrow != absl::string_view::npos) {
    change.from =
        std::string(absl::StripAsciiWhitespace(text.substr(0, arrow)));
    change.to = std::string(absl::StripAsciiWhitespace(text.substr(arrow + 2)));
  }
  if (change.from.empty() || change.to.empty())
    return InvalidArgument("'%s' is not 'A=>B', two names or patterns with '*'",
                           text);
  const auto stars = [](const std::string& pattern) {
    return std::count(pattern.begin(), pattern.end(), '*');
  };
  if (stars(change.from) != stars(change.to))
    return InvalidArgument(
        "'%s' has %d '*' before the arrow and %d behind it; they must be as "
        "many",
        text, stars(change.from), stars(change.to));
  return change;
}

std::optional<std::string> NameChange::Apply(absl::string_view name) const {
  const auto stars = MatchStars(from, name);
  if (!stars.has_value()) return std::nullopt;
  std::string result;
  size_t next = 0;
  for (const char c : to)
    c == '*' ? result.append((*stars)[next++]) : result.append(1, c);
  return result;
}

}  // namespace pd
