// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/flag_table.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

FlagInfo* Find(absl::string_view name) {
  name = absl::StripPrefix(name, "FLAGS_");
  for (FlagInfo& flag : FlagTable())
    if (absl::StripPrefix(flag.name, "FLAGS_") == name) return &flag;
  return nullptr;
}

std::string UnknownText(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const FlagInfo& flag : FlagTable()) names.push_back(flag.name);
  const std::string full =
      absl::StrCat("FLAGS_", absl::StripPrefix(name, "FLAGS_"));
  const std::string near = Nearest(full, names);
  return absl::StrCat(
      "unknown flag '", full, "'",
      near.empty() ? "" : absl::StrCat(", did you mean '", near, "'?"));
}

bool IsNumberList(absl::string_view text) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 0) return false;
  }
  return true;
}

bool IsIn(double value, const FlagInfo& flag) {
  return value >= flag.min && value <= flag.max;
}

// "an integer of at least 0", "a number from 0 to 1".
std::string Expected(const FlagInfo& flag) {
  if (std::holds_alternative<bool>(flag.initial)) return "true or false";
  if (flag.number_list) return "numbers from 0, separated by commas";
  if (!flag.choices.empty())
    return absl::StrCat("one of ",
                        absl::StrJoin(absl::StrSplit(flag.choices, ' '), ", "));
  if (std::holds_alternative<std::string>(flag.initial)) return "a string";
  const std::string kind =
      absl::StrCat(std::holds_alternative<int64_t>(flag.initial) ? "an " : "a ",
                   FlagType(flag));
  if (!std::isfinite(flag.min)) return kind;
  if (!std::isfinite(flag.max))
    return absl::StrFormat("%s of at least %d", kind,
                           static_cast<int64_t>(flag.min));
  return absl::StrFormat("%s from %d to %d", kind,
                         static_cast<int64_t>(flag.min),
                         static_cast<int64_t>(flag.max));
}

absl::Status Parse(absl::string_view text, FlagInfo* flag) {
  FlagValue value = flag->initial;
  bool ok = true;
  if (auto* b = std::get_if<bool>(&value)) {
    ok = absl::SimpleAtob(text, b);
  } else if (auto* i = std::get_if<int64_t>(&value)) {
    ok = absl::SimpleAtoi(text, i) && IsIn(static_cast<double>(*i), *flag);
  } else if (auto* d = std::get_if<double>(&value)) {
    ok = absl::SimpleAtod(text, d) && std::isfinite(*d) && IsIn(*d, *flag);
  } else {
    value = std::string(text);
    // An empty string is as good as none.
    if (!text.empty() && flag->number_list) ok = IsNumberList(text);
    if (!text.empty() && !flag->choices.empty()) {
      const std::vector<absl::string_view> choices =
          absl::StrSplit(flag->choices, ' ');
      ok = std::count(choices.begin(), choices.end(), text) > 0;
    }
  }
  if (!ok)
    return InvalidArgument("%s is '%s'; expected %s", flag->name, text,
                           Expected(*flag));
  flag->value = std::move(value);
  flag->given = true;
  return absl::OkStatus();
}

}  // namespace

const std::vector<FlagInfo>& AllFlags() { return FlagTable(); }

absl::string_view FlagType(const FlagInfo& flag) {
  constexpr absl::string_view kTypes[] = {"bool", "integer", "number",
                                          "string"};
  return kTypes[flag.initial.index()];
}

std::string FlagText(const FlagValue& value) {
  if (const auto* on = std::get_if<bool>(&value)) return *on ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value))
    return absl::StrCat(*real);
  return absl::StrCat(std::get<int64_t>(value));
}

absl::Status SetFlag(absl::string_view name, absl::string_view value) {
  FlagInfo* flag = Find(name);
  return flag == nullptr ? NotFound("%s", UnknownText(name))
                         : Parse(value, flag);
}

absl::Status SetFlagsFromEnvironment() {
  for (FlagInfo& flag : FlagTable()) {
    const char* value = std::getenv(std::string(flag.name).c_str());
    if (value != nullptr) PD_RETURN_IF_ERROR(Parse(value, &flag));
  }
  return absl::OkStatus();
}

std::vector<std::string> FlagsWithoutEffect() {
  std::vector<std::string> texts;
  for (const FlagInfo& flag : FlagTable())
    if (flag.use == FlagUse::kFixed && flag.value != flag.initial)
      texts.push_back(absl::StrCat(flag.name, "=", FlagText(flag.value),
                                   " changes nothing: ", flag.help));
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    absl::string_view name = *entry;
    name = name.substr(0, name.find('='));
    if (absl::StartsWith(name, "FLAGS_") && Find(name) == nullptr)
      texts.push_back(UnknownText(name));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

template <typename T>
const T& GetFlag(absl::string_view name) {
  FlagInfo* flag = Find(name);
  PD_INVARIANT(flag != nullptr && std::holds_alternative<T>(flag->value));
  return std::get<T>(flag->value);
}

template const bool& GetFlag<bool>(absl::string_view);
template const int64_t& GetFlag<int64_t>(absl::string_view);
template const double& GetFlag<double>(absl::string_view);
template const std::string& GetFlag<std::string>(absl::string_view);

bool FlagGiven(absl::string_view name) {
  const FlagInfo* flag = Find(name);
  return flag != nullptr && flag->given;
}

}  // namespace pd
