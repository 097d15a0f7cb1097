// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/help.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cmd/common/exit_status.h"

namespace pd {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kHelpColumn = 26;

// Appends `text` in words, the first line going on at column `at`, the others
// indented by `indent`.
void Wrap(absl::string_view text, size_t at, size_t indent, std::string* out) {
  bool first = true;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!first && at + 1 + word.size() > kColumns - 1) {
      absl::StrAppend(out, "\n", std::string(indent, ' '));
      at = indent;
      first = true;
    }
    if (!first) {
      out->push_back(' ');
      ++at;
    }
    absl::StrAppend(out, word);
    at += word.size();
    first = false;
  }
  out->push_back('\n');
}

std::string Names(const OptionEntry& option) {
  if (option.positional) return option.long_name;
  std::string names =
      option.short_name.empty() ? "    " : absl::StrCat("-", option.short_name);
  if (!option.long_name.empty())
    absl::StrAppend(&names, option.short_name.empty() ? "--" : ", --",
                    option.long_name);
  if (!option.value.empty()) absl::StrAppend(&names, " ", option.value);
  return names;
}

// "train from this file (required)".
std::string Notes(const OptionEntry& option) {
  std::vector<std::string> notes;
  if (option.required) notes.push_back("required");
  if (option.repeatable && !option.value.empty()) notes.push_back("repeatable");
  if (!option.fallback.empty()) notes.push_back("default: " + option.fallback);
  return notes.empty()
             ? option.help
             : absl::StrCat(option.help, " (", absl::StrJoin(notes, "; "), ")");
}

void AddRow(const std::string& name, absl::string_view text, std::string* out) {
  std::string row = absl::StrCat("  ", name);
  if (row.size() + 2 > kHelpColumn) {
    absl::StrAppend(out, row, "\n", std::string(kHelpColumn, ' '));
  } else {
    row.resize(kHelpColumn, ' ');
    absl::StrAppend(out, row);
  }
  Wrap(text, kHelpColumn, kHelpColumn, out);
}

}  // namespace

std::vector<Manual::Entry> ExitEntries(const Manual& manual) {
  std::vector<Manual::Entry> entries;
  for (const ExitMeaning& row : ExitTable()) {
    if (row.status == kExitNo && manual.answer_no.empty()) continue;
    if (row.status > kExitFailed && !manual.stops_by_signal) continue;
    entries.push_back({absl::StrCat(row.status),
                       row.status == kExitNo ? manual.answer_no : row.meaning});
  }
  return entries;
}

std::string HelpText(const Manual& manual,
                     const std::vector<OptionGroup>& groups) {
  std::string out = absl::StrCat(manual.name, ": ", manual.summary, "\n\n");
  absl::string_view lead = "usage: ";
  for (const std::string& form : manual.synopsis) {
    const size_t indent = lead.size() + manual.name.size() + 1;
    absl::StrAppend(&out, lead, manual.name, " ");
    Wrap(form, indent, indent, &out);
    lead = "       ";
  }
  if (!manual.description.empty()) {
    out.push_back('\n');
    Wrap(manual.description[0], 0, 0, &out);
  }
  for (const OptionGroup& group : groups) {
    absl::StrAppend(&out, "\n", group.name, ":\n");
    for (const OptionEntry& option : group.options)
      AddRow(Names(option), Notes(option), &out);
  }
  absl::StrAppend(&out, "\nExit status:\n");
  for (const Manual::Entry& entry : ExitEntries(manual))
    AddRow(entry.name, entry.text, &out);
  if (!manual.examples.empty()) absl::StrAppend(&out, "\nExamples:\n");
  for (const Manual::Example& example : manual.examples)
    absl::StrAppend(&out, "  # ", example.title, "\n  ", example.command, "\n");
  absl::StrAppend(&out, "\nThe whole manual: man ", manual.name, "\n");
  return absl::StrReplaceAll(out, {{"`", ""}});
}

}  // namespace pd
