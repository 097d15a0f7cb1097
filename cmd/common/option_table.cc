// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/option_table.h"

#include <algorithm>
#include <map>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cmd/common/exit_status.h"
#include "libcore/base/error.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"

namespace pd {

struct OptionTable::Entry {
  CLI::Option* option = nullptr;  // null for positional arguments
  std::vector<std::string> given;
  std::string group, fallback;
  OptionEntry shown;
  Assign assign;
  size_t most = 1;  // values
  StandardStream stream = StandardStream::kNone;

  // "option '--out'", "argument 'FILE'".
  std::string Called() const {
    return absl::StrCat(shown.positional ? "argument '" : "option '",
                        shown.positional ? shown.value : option->get_name(),
                        "'");
  }
};

class OptionTable::Cli {
 public:
  CLI::App app;
};

namespace {

template <typename T>
std::string Bounds(T min, T max) {
  const bool low = min != std::numeric_limits<T>::lowest();
  const bool high = max != std::numeric_limits<T>::max();
  if (low && high) return absl::StrCat(" from ", min, " to ", max);
  if (low) return absl::StrCat(" of at least ", min);
  if (high) return absl::StrCat(" of at most ", max);
  return "";
}

absl::Status CheckChoice(absl::string_view given,
                         const std::vector<std::string>& choices) {
  if (std::count(choices.begin(), choices.end(), given) > 0)
    return absl::OkStatus();
  const std::string near = Nearest(given, choices);
  return InvalidArgument(
      "'%s' is none of %s%s", given, absl::StrJoin(choices, ", "),
      near.empty() ? "" : absl::StrCat(", did you mean '", near, "'?"));
}

bool IsDecimalInteger(absl::string_view text) {
  absl::ConsumePrefix(&text, "-");
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

}  // namespace

absl::StatusOr<int64_t> ParseInteger(absl::string_view text, int64_t min,
                                     int64_t max) {
  int64_t value = 0;
  if (!IsDecimalInteger(text) || !absl::SimpleAtoi(text, &value) ||
      value < min || value > max)
    return InvalidArgument("'%s' is not a decimal integer%s", text,
                           Bounds(min, max));
  return value;
}

absl::StatusOr<double> ParseReal(absl::string_view text, double min,
                                 double max) {
  double value = 0;
  const bool plain =
      !text.empty() &&
      text.find_first_not_of("0123456789.eE+-") == absl::string_view::npos;
  if (!plain || !absl::SimpleAtod(text, &value) ||
      !(value >= min && value <= max))
    return InvalidArgument("'%s' is not a finite number%s", text,
                           Bounds(min, max));
  return value;
}

OptionTable::OptionTable() : cli_(std::make_unique<Cli>()) {
  cli_->app.set_help_flag();  // ours is an option like any other
  cli_->app.allow_extras();   // told apart from typing mistakes by Parse
}

OptionTable::~OptionTable() = default;

void OptionTable::Group(std::string name) { group_ = std::move(name); }

OptionTable::Entry& OptionTable::Add(OptionText text, std::string fallback,
                                     Assign assign) {
  auto entry = std::make_unique<Entry>();
  entry->group = group_;
  entry->fallback = std::move(fallback);
  entry->assign = std::move(assign);
  OptionEntry& shown = entry->shown;
  shown.value = text.value;
  shown.help = text.help;
  for (absl::string_view name : absl::StrSplit(text.names, ',')) {
    if (absl::ConsumePrefix(&name, "--")) {
      if (shown.long_name.empty())
        shown.long_name = std::string(name);
      else
        absl::StrAppend(&shown.help, "; `--", name, "` is the same");
    } else if (absl::ConsumePrefix(&name, "-")) {
      shown.short_name = std::string(name);
    }
  }
  const auto ignore = [](const CLI::results_t&) { return true; };
  if (text.names.empty()) {
    // Positional arguments are what CLI11 leaves over: it has no way to say
    // "none or some".
  } else if (text.value.empty()) {
    entry->option = cli_->app.add_flag(
        text.names, [](int64_t) {}, text.help);
    entry->option->disable_flag_override();
  } else {
    entry->option = cli_->app.add_option(text.names, ignore, text.help);
    entry->option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

void OptionTable::Switch(OptionText text, bool* on) {
  Add(std::move(text), "", [on](absl::string_view) {
    *on = true;
    return absl::OkStatus();
  }).most = std::numeric_limits<size_t>::max();
}

void OptionTable::Count(OptionText text, int* times) {
  Entry& entry = Add(std::move(text), "", [times](absl::string_view) {
    ++*times;
    return absl::OkStatus();
  });
  entry.most = std::numeric_limits<size_t>::max();
  entry.shown.repeatable = true;
}

void OptionTable::Text(OptionText text, std::string* value) {
  Add(std::move(text), *value, [value](absl::string_view given) {
    if (given.empty()) return InvalidArgument("the value is empty");
    *value = std::string(given);
    return absl::OkStatus();
  });
}

void OptionTable::Texts(OptionText text, std::vector<std::string>* values) {
  Entry& entry = Add(std::move(text), absl::StrJoin(*values, " "),
                     [values](absl::string_view given) {
                       if (given.empty())
                         return InvalidArgument("the value is empty");
                       values->push_back(std::string(given));
                       return absl::OkStatus();
                     });
  entry.most = std::numeric_limits<size_t>::max();
  entry.shown.repeatable = true;
}

void OptionTable::Choice(OptionText text, std::vector<std::string> choices,
                         std::string* value) {
  Entry& entry =
      Add(std::move(text), *value, [value, choices](absl::string_view given) {
        PD_RETURN_IF_ERROR(CheckChoice(given, choices));
        *value = std::string(given);
        return absl::OkStatus();
      });
  entry.shown.words = std::move(choices);
}

void OptionTable::Choices(OptionText text, std::vector<std::string> choices,
                          std::vector<std::string>* values) {
  Entry& entry = Add(std::move(text), absl::StrJoin(*values, " "),
                     [values, choices](absl::string_view given) {
                       PD_RETURN_IF_ERROR(CheckChoice(given, choices));
                       values->push_back(std::string(given));
                       return absl::OkStatus();
                     });
  entry.most = std::numeric_limits<size_t>::max();
  entry.shown.repeatable = true;
  entry.shown.words = std::move(choices);
}

namespace {

template <typename T, typename Parse>
auto Into(T* value, Parse parse) {
  return [value, parse](absl::string_view given) -> absl::Status {
    PD_ASSIGN_OR_RETURN(*value, parse(given));
    return absl::OkStatus();
  };
}

auto IntegerIn(IntegerRange range) {
  return [range](absl::string_view given) {
    return ParseInteger(given, range.min, range.max);
  };
}

auto RealIn(RealRange range) {
  return [range](absl::string_view given) {
    return ParseReal(given, range.min, range.max);
  };
}

}  // namespace

void OptionTable::Integer(OptionText text, IntegerRange range, int64_t* value) {
  Add(std::move(text), absl::StrCat(*value), Into(value, IntegerIn(range)));
}

void OptionTable::Integer(OptionText text, IntegerRange range,
                          std::optional<int64_t>* value) {
  Add(std::move(text), value->has_value() ? absl::StrCat(**value) : "",
      Into(value, IntegerIn(range)));
}

void OptionTable::Real(OptionText text, RealRange range, double* value) {
  Add(std::move(text), absl::StrCat(*value), Into(value, RealIn(range)));
}

void OptionTable::Real(OptionText text, RealRange range,
                       std::optional<double>* value) {
  Add(std::move(text), value->has_value() ? absl::StrCat(**value) : "",
      Into(value, RealIn(range)));
}

void OptionTable::Positional(OptionText text, size_t most,
                             std::vector<std::string>* values) {
  Entry& entry = Add(std::move(text), "", [values](absl::string_view given) {
    if (given.empty()) return InvalidArgument("the value is empty");
    values->push_back(std::string(given));
    return absl::OkStatus();
  });
  entry.most = most;
  entry.shown.long_name = entry.shown.value;
  entry.shown.positional = true;
  entry.shown.repeatable = most > 1;
}

OptionTable::Entry* OptionTable::Find(absl::string_view name) const {
  const absl::string_view bare = absl::StripPrefix(name, "--");
  const bool is_long = bare.size() < name.size();
  const absl::string_view letter = absl::StripPrefix(name, "-");
  for (const auto& entry : entries_) {
    const OptionEntry& shown = entry->shown;
    if (is_long || shown.positional ? shown.long_name == bare
                                    : shown.short_name == letter)
      return entry.get();
  }
  return nullptr;
}

void OptionTable::Require(absl::string_view name) {
  Entry* entry = Find(name);
  PD_INVARIANT(entry != nullptr);
  entry->shown.required = true;
}

void OptionTable::TakesStream(absl::string_view name, StandardStream stream) {
  Entry* entry = Find(name);
  PD_INVARIANT(entry != nullptr && stream != StandardStream::kNone);
  entry->stream = stream;
  absl::StrAppend(&entry->shown.help, "; `-` is standard ",
                  stream == StandardStream::kInput ? "input" : "output");
}

void OptionTable::DescribeDefault(absl::string_view name,
                                  std::string fallback) {
  Entry* entry = Find(name);
  PD_INVARIANT(entry != nullptr);
  entry->fallback = std::move(fallback);
}

void OptionTable::Suggest(absl::string_view name,
                          std::vector<std::string> words) {
  Entry* entry = Find(name);
  PD_INVARIANT(entry != nullptr);
  entry->shown.words = std::move(words);
}

absl::Status OptionTable::UnknownOption(absl::string_view argument) const {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(argument, absl::MaxSplits('=', 1));
  std::vector<std::string> names;
  for (const auto& entry : entries_)
    if (!entry->shown.long_name.empty() && !entry->shown.positional)
      names.push_back("--" + entry->shown.long_name);
  const std::string near =
      absl::StartsWith(argument, "--") ? Nearest(parts.first, names) : "";
  return CommandLineError(absl::StrCat(
      "unknown option '", parts.first, "'",
      near.empty() ? "" : absl::StrCat(", did you mean '", near, "'?")));
}

absl::Status OptionTable::AssignValues(const Entry& entry) const {
  const OptionEntry& shown = entry.shown;
  const std::string name = entry.Called();
  if (shown.required && entry.given.empty())
    return CommandLineError(absl::StrCat(name, " is missing"));
  if (entry.given.size() > entry.most)
    return CommandLineError(absl::StrCat(name, " is given ", entry.given.size(),
                                         " times; expected once"));
  for (const std::string& given : entry.given) {
    const absl::Status status = entry.assign(given);
    if (!status.ok())
      return CommandLineError(absl::StrCat(name, ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status OptionTable::Split(int argc, const char* const* argv) {
  try {
    cli_->app.parse(argc, argv);
  } catch (const CLI::ArgumentMismatch& error) {
    // "--out: 1 required TEXT missing"; "log was given a disallowed flag
    // override".
    const std::string what = error.what();
    const bool missing = absl::StrContains(what, "missing");
    const std::string name = what.substr(0, what.find_first_of(": "));
    return CommandLineError(
        absl::StrCat("option '", absl::StartsWith(name, "-") ? "" : "--", name,
                     missing ? "' needs a value" : "' takes no value"));
  } catch (const CLI::Error& error) {
    return CommandLineError(error.what());
  }
  for (const auto& entry : entries_)
    if (entry->option != nullptr) entry->given = entry->option->results();
  return absl::OkStatus();
}

absl::Status OptionTable::CheckPaths() const {
  for (const auto& entry : entries_) {
    if (entry->shown.value != "PATH=VALUE") continue;
    for (const std::string& given : entry->given)
      if (!absl::StrContains(given, '='))
        return CommandLineError(absl::StrCat(
            "option '", entry->option->get_name(), "': '", given,
            "' has no value; expected one word: '", given, "=VALUE'"));
  }
  return absl::OkStatus();
}

absl::Status OptionTable::TakePositionals() {
  bool names_end = false;  // after "--"
  for (const std::string& extra : cli_->app.remaining()) {
    if (!names_end && extra == "--") {
      names_end = true;
      continue;
    }
    if (!names_end && extra.size() > 1 && extra[0] == '-')
      return UnknownOption(extra);
    const auto free =
        std::find_if(entries_.begin(), entries_.end(), [](const auto& entry) {
          return entry->shown.positional && entry->given.size() < entry->most;
        });
    if (free == entries_.end())
      return CommandLineError(
          absl::StrCat("unexpected argument '", extra, "'"));
    (*free)->given.push_back(extra);
  }
  return absl::OkStatus();
}

absl::Status OptionTable::Parse(int argc, const char* const* argv,
                                const std::function<bool()>& on_first) {
  PD_RETURN_IF_ERROR(Split(argc, argv));
  if (on_first && on_first()) return absl::OkStatus();
  // First, since the value of "-o PATH VALUE" looks like another argument.
  PD_RETURN_IF_ERROR(CheckPaths());
  PD_RETURN_IF_ERROR(TakePositionals());
  for (const auto& entry : entries_) PD_RETURN_IF_ERROR(AssignValues(*entry));
  return CheckStreams();
}

// Anything else than a stream would take `-` for a file of that name.
absl::Status OptionTable::CheckStreams() const {
  std::map<StandardStream, std::string> taken_by;
  for (const auto& entry : entries_) {
    for (const std::string& given : entry->given) {
      if (given != kStandardStream) continue;
      if (entry->stream == StandardStream::kNone)
        return CommandLineError(absl::StrCat(
            entry->Called(),
            " takes no standard stream: '-' is none of its values; a file of "
            "that name is './-'"));
      const auto [taken, first] =
          taken_by.try_emplace(entry->stream, entry->Called());
      if (!first)
        return CommandLineError(absl::StrCat(
            taken->second, " and ", entry->Called(), " cannot both be '-', ",
            entry->stream == StandardStream::kInput
                ? "standard input, which is read once"
                : "standard output, which takes one file"));
    }
  }
  return absl::OkStatus();
}

bool OptionTable::WritesStandardOutput() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) {
    const auto& given = entry->given;
    return entry->stream == StandardStream::kOutput &&
           std::find(given.begin(), given.end(), kStandardStream) !=
               given.end();
  });
}

bool OptionTable::Given(absl::string_view name) const {
  const Entry* entry = Find(name);
  return entry != nullptr && !entry->given.empty();
}

std::vector<std::string> OptionTable::WordsOf(absl::string_view name) const {
  const Entry* entry = Find(name);
  return entry == nullptr ? std::vector<std::string>()
                          : std::vector<std::string>(entry->given.begin(),
                                                     entry->given.end());
}

absl::Status OptionTable::AtMostOne(
    const std::vector<std::string>& names) const {
  std::string first;
  for (const std::string& name : names) {
    if (!Given(name)) continue;
    if (!first.empty())
      return CommandLineError(absl::StrCat("options '", first, "' and '", name,
                                           "' cannot go together"));
    first = name;
  }
  return absl::OkStatus();
}

absl::Status OptionTable::Needs(absl::string_view name,
                                absl::string_view needed) const {
  if (!Given(name) || Given(needed)) return absl::OkStatus();
  return CommandLineError(
      absl::StrCat("option '", name, "' needs option '", needed, "'"));
}

std::vector<OptionGroup> OptionTable::Describe() const {
  std::vector<OptionGroup> groups;
  for (const auto& entry : entries_) {
    auto group = std::find_if(
        groups.begin(), groups.end(),
        [&](const OptionGroup& g) { return g.name == entry->group; });
    if (group == groups.end())
      group = groups.insert(groups.end(), OptionGroup{entry->group, {}});
    group->options.push_back(entry->shown);
    group->options.back().fallback = entry->fallback;
  }
  return groups;
}

}  // namespace pd
