// SPDX-License-Identifier: Apache-2.0
// Completion for zsh, by _arguments.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cmd/completion/completion.h"

namespace pd {
namespace {

// The same walk as bash's. Brackets and quotes in the word are taken off by
// (Q) and set again by compadd.
constexpr absl::string_view kJobField = R"sh(_pd_job_field() {
  local rest=${(Q)PREFIX} type=Job walked='' entry found name
  local -a offers parts match mbegin mend
  if [[ $rest == *=* ]]; then
    name=${rest%%=*}
    rest=$name.
  fi
  while [[ $rest =~ '^([A-Za-z0-9_]+)(\[[^]]*\])?\.(.*)$' ]]; do
    found=''
    for entry in ${=_pd_job_fields[$type]}; do
      parts=("${(@s.:.)entry}")
      [[ $parts[1] == $match[1] ]] && found=$parts[2] && break
    done
    [[ -n $found ]] || return 1
    walked+=$match[1]$match[2].
    rest=$match[3]
    type=$parts[3]
  done
  if [[ -n $name ]]; then
    compset -P '*='
    if [[ $type == FILES ]]; then
      _files
    else
      compadd -- ${(s.,.)type}
    fi
    return
  fi
  for entry in ${=_pd_job_fields[$type]}; do
    parts=("${(@s.:.)entry}")
    offers+=("$walked$parts[1]${parts[2]/@/.}")
  done
  compadd -S '' -a offers
}
)sh";

std::string JobTable() {
  std::string out = "typeset -gA _pd_job_fields=(\n";
  for (const JobMessage& message : JobMessages())
    absl::StrAppend(&out, "  ", message.name, " ", ShellQuote(message.fields),
                    "\n");
  return out + ")\n";
}

std::string Action(const OptionEntry& option) {
  const Offer offer = OfferFor(option);
  switch (offer.kind) {
    case Offer::Kind::kNothing:
      return " ";
    case Offer::Kind::kFiles:
      return "_files";
    case Offer::Kind::kFolders:
      return "_files -/";
    case Offer::Kind::kWords:
      return absl::StrCat("(", absl::StrJoin(offer.words, " "), ")");
    case Offer::Kind::kJobField:
      return "_pd_job_field";
  }
  return " ";
}

// '*-o+[changes a field]:PATH=VALUE:_pd_job_field'
std::string Spec(const OptionEntry& option, const std::string& name,
                 const std::string& other) {
  std::string spec;
  if (option.repeatable) {
    spec = "*";
  } else if (!other.empty()) {
    spec = absl::StrCat("(", other, " ", name, ")");
  }
  absl::StrAppend(&spec, name);
  if (!option.value.empty()) absl::StrAppend(&spec, name[1] == '-' ? "=" : "+");
  const auto escape = [](const std::string& text) {
    return absl::StrReplaceAll(
        text, {{"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"\\", "\\\\"}});
  };
  absl::StrAppend(&spec, "[", escape(PlainHelp(option)), "]");
  if (!option.value.empty())
    absl::StrAppend(&spec, ":", escape(option.value), ":", Action(option));
  return ShellQuote(spec);
}

}  // namespace

std::string ZshCompletion(const std::string& tool,
                          const std::vector<OptionEntry>& options) {
  std::string out = absl::StrCat("#compdef ", tool, "\n# zsh completion for ",
                                 tool, ", made of its option table.\n");
  if (HasJobFields(options)) absl::StrAppend(&out, JobTable(), kJobField);
  absl::StrAppend(&out, "_arguments -s -S");
  int place = 0;
  for (const OptionEntry& option : options) {
    const std::string end = " \\\n  ";
    if (option.positional) {
      absl::StrAppend(&out, end,
                      ShellQuote(absl::StrCat(++place, ":", option.value, ":",
                                              Action(option))));
      continue;
    }
    const std::string brief =
        option.short_name.empty() ? "" : "-" + option.short_name;
    const std::string full =
        option.long_name.empty() ? "" : "--" + option.long_name;
    if (!brief.empty()) absl::StrAppend(&out, end, Spec(option, brief, full));
    if (!full.empty()) absl::StrAppend(&out, end, Spec(option, full, brief));
  }
  return out + "\n";
}

}  // namespace pd
