// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/mdoc.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cmd/common/common_options.h"
#include "cmd/common/help.h"
#include "cmd/common/version.h"

namespace pd {
namespace {

// The day of the last change of contents that is worth a reader's notice.
constexpr char kDate[] = "November 21, 2026";

// A word as an argument of a macro line: quoted where it has blanks, and never
// taken for a macro or for closing punctuation itself.
std::string Argument(absl::string_view word) {
  std::string text = absl::StrCat("\\&", MdocEscape(word));
  if (absl::StrContains(text, ' ')) text = absl::StrCat("\"", text, "\"");
  return text;
}

bool IsValueName(absl::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isupper(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
           absl::string_view("=,.:-_").find(c) != absl::string_view::npos;
  });
}

// One word of a synopsis: "--out", "RUN", "paddle|onnx".
std::string SynopsisWord(absl::string_view word) {
  if (absl::StartsWith(word, "-") && word.size() > 1)
    return absl::StrCat("Fl ", MdocEscape(word.substr(1)));
  return absl::StrCat(IsValueName(word) ? "Ar " : "Cm ", Argument(word));
}

std::string Capitalised(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(text[0]);
  return text;
}

// "the job file" as a sentence; defaults and repetition as sentences after it.
std::string OptionSentences(const OptionEntry& option) {
  std::string text = absl::StrCat(Capitalised(option.help), ".");
  if (option.required) absl::StrAppend(&text, " It must be given.");
  if (option.repeatable && !option.value.empty())
    absl::StrAppend(&text, " It may be given several times.");
  if (!option.fallback.empty())
    absl::StrAppend(&text, " The default is ", option.fallback, ".");
  return text;
}

std::string OptionItem(const OptionEntry& option) {
  if (option.positional)
    return absl::StrCat(".It ", "Ar ", Argument(option.long_name), "\n");
  std::string item = ".It";
  if (!option.short_name.empty())
    absl::StrAppend(&item, " Fl ", MdocEscape(option.short_name));
  if (!option.short_name.empty() && !option.long_name.empty())
    absl::StrAppend(&item, " ,");
  if (!option.long_name.empty())
    absl::StrAppend(&item, " Fl \\-", MdocEscape(option.long_name));
  if (!option.value.empty())
    absl::StrAppend(&item, " Ar ", Argument(option.value));
  return item + "\n";
}

std::string List(const std::vector<Manual::Entry>& entries,
                 absl::string_view macro) {
  std::string out = ".Bl -tag -width Ds\n";
  for (const Manual::Entry& entry : entries)
    absl::StrAppend(&out, ".It ", macro, " ", Argument(entry.name), "\n",
                    MdocText(entry.text));
  return out + ".El\n";
}

std::string Options(const std::vector<OptionGroup>& groups) {
  std::string out;
  for (const OptionGroup& group : groups) {
    absl::StrAppend(&out, ".Ss ", MdocEscape(group.name), "\n",
                    ".Bl -tag -width Ds\n");
    for (const OptionEntry& option : group.options)
      absl::StrAppend(&out, OptionItem(option),
                      MdocText(OptionSentences(option)));
    absl::StrAppend(&out, ".El\n");
  }
  return out;
}

std::string ExitStatus(const Manual& manual) {
  std::vector<Manual::Entry> entries = ExitEntries(manual);
  for (Manual::Entry& entry : entries)
    entry.text = Capitalised(entry.text) + ".";
  return List(entries, "Li");
}

std::string Examples(const Manual& manual) {
  std::string out;
  for (const Manual::Example& example : manual.examples)
    absl::StrAppend(&out, ".Pp\n", MdocText(Capitalised(example.title) + ":"),
                    ".Bd -literal -offset indent\n",
                    MdocEscape(example.command), "\n.Ed\n");
  // A section does not begin with a break.
  return std::string(absl::StripPrefix(out, ".Pp\n"));
}

std::string SeeAlso(const Manual& manual) {
  std::string out;
  for (const std::string& page : manual.see_also)
    absl::StrAppend(&out, ".Xr ", page,
                    &page == &manual.see_also.back() ? "\n" : " ,\n");
  return out;
}

}  // namespace

std::string MdocEscape(absl::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) absl::StrAppend(&out, "\\&");
    line_start = c == '\n';
    if (c == '\\') {
      absl::StrAppend(&out, "\\e");
    } else if (c == '-') {
      absl::StrAppend(&out, "\\-");
    } else if (c == '"') {
      absl::StrAppend(&out, "\\(dq");
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string MdocText(absl::string_view text) {
  // Odd pieces were between back quotes: they become macro lines of their own,
  // with the punctuation that follows, and without a blank where none was.
  std::string out;
  bool literal = false;
  const std::vector<absl::string_view> pieces = absl::StrSplit(text, '`');
  std::string glue;
  for (size_t i = 0; i < pieces.size(); ++i, literal = !literal) {
    absl::string_view piece = pieces[i];
    if (literal) {
      if (!out.empty() && out.back() != '\n') out.push_back('\n');
      absl::StrAppend(&out, ".Ql ", Argument(piece));
      absl::string_view next = pieces[i + 1];
      std::string tail;
      while (!next.empty() && absl::string_view(".,:;)?!").find(next[0]) !=
                                  absl::string_view::npos) {
        absl::StrAppend(&tail, " ", next.substr(0, 1));
        next.remove_prefix(1);
      }
      absl::StrAppend(&out, tail, "\n");
      glue = std::string(next);
      continue;
    }
    if (i > 0) piece = glue;
    bool first = true;
    for (absl::string_view word :
         absl::StrSplit(piece, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
      if (!first) {
        const char last = out.empty() ? ' ' : out.back();
        // A sentence ends here: mdoc wants the next one on a new line.
        out.push_back(last == '.' || last == '?' || last == '!' ? '\n' : ' ');
      }
      const bool at_start = out.empty() || out.back() == '\n';
      if (at_start && (word[0] == '.' || word[0] == '\''))
        absl::StrAppend(&out, "\\&");
      absl::StrAppend(&out, absl::StrReplaceAll(word, {{"\\", "\\e"}}));
      first = false;
    }
  }
  if (!out.empty() && out.back() != '\n') out.push_back('\n');
  return out;
}

std::string MdocSynopsis(absl::string_view form) {
  // Brackets become Oo and Oc; "]..." keeps its dots beside the bracket.
  std::string spaced = absl::StrReplaceAll(form, {{"]...", " ]... "},
                                                  {"[", " [ "},
                                                  {"]", " ] "},
                                                  {"(", " ( "},
                                                  {")", " ) "}});
  std::string out;
  for (absl::string_view word :
       absl::StrSplit(spaced, ' ', absl::SkipEmpty())) {
    if (word == "[") {
      absl::StrAppend(&out, ".Oo\n");
    } else if (word == "]") {
      absl::StrAppend(&out, ".Oc\n");
    } else if (word == "]...") {
      absl::StrAppend(&out, ".Oc Ns ...\n");
    } else if (word == "(" || word == ")" || word == "|") {
      absl::StrAppend(&out, ".No ", word == "|" ? "|" : "\\&",
                      word == "|" ? "" : word, "\n");
    } else {
      absl::StrAppend(&out, ".", SynopsisWord(word), "\n");
    }
  }
  return out;
}

std::string MdocHead(absl::string_view name, int section,
                     absl::string_view summary) {
  return absl::StrCat(
      ".\\\" Generated by pd-man: change the tables, not this.\n", ".Dd ",
      kDate, "\n.Dt ", absl::AsciiStrToUpper(name), " ", section,
      "\n.Os pdkit ", Version(), "\n.Sh NAME\n.Nm ", name, "\n.Nd ", summary,
      "\n");
}

std::string MdocPage(const Manual& manual,
                     const std::vector<OptionGroup>& groups) {
  std::string out = MdocHead(manual.name, 1, manual.summary);
  absl::StrAppend(&out, ".Sh SYNOPSIS\n");
  for (const std::string& form : manual.synopsis)
    absl::StrAppend(&out, ".Nm\n", MdocSynopsis(form));
  absl::StrAppend(&out, ".Sh DESCRIPTION\n");
  for (const std::string& paragraph : manual.description)
    absl::StrAppend(&out, &paragraph == &manual.description[0] ? "" : ".Pp\n",
                    MdocText(paragraph));
  absl::StrAppend(&out, ".Sh OPTIONS\n", Options(groups));
  std::vector<Manual::Entry> environment = manual.environment;
  for (Manual::Entry& entry : CommonEnvironment())
    environment.push_back(std::move(entry));
  absl::StrAppend(&out, ".Sh ENVIRONMENT\n", List(environment, "Ev"));
  if (!manual.files.empty())
    absl::StrAppend(&out, ".Sh FILES\n", List(manual.files, "Pa"));
  absl::StrAppend(&out, ".Sh EXIT STATUS\n", ExitStatus(manual));
  if (!manual.examples.empty())
    absl::StrAppend(&out, ".Sh EXAMPLES\n", Examples(manual));
  if (!manual.see_also.empty())
    absl::StrAppend(&out, ".Sh SEE ALSO\n", SeeAlso(manual));
  return out;
}

}  // namespace pd
