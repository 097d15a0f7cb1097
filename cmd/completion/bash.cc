// SPDX-License-Identifier: Apache-2.0
// Completion for bash, by its builtins alone: bash-completion may be absent.
// bash splits words at '=', so `--format=json` and `-o a.b=1` are three words.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cmd/completion/completion.h"

namespace pd {
namespace {

constexpr absl::string_view kStart =
    R"sh(# bash completion for TOOL, made of its option table.
_pd_files() {
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}
_pd_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
)sh";

// Walks the path by the types of its fields. An element of a list is chosen by
// its name: the names in the job file are offered.
constexpr absl::string_view kJobField = R"sh(_pd_job_field() {
  local rest=${key:-$cur} type=Job walked='' entry name mark kind found
  local -a offers=()
  [[ -z $key ]] || rest+=.
  while [[ $rest =~ ^([A-Za-z0-9_]+)(\[[^]]*\])?\.(.*)$ ]]; do
    found=''
    for entry in ${_pd_job_fields[$type]}; do
      IFS=: read -r name mark kind <<<"$entry"
      [[ $name == "${BASH_REMATCH[1]}" ]] && found=$mark && break
    done
    [[ -n $found ]] || return 0
    walked+=${BASH_REMATCH[1]}${BASH_REMATCH[2]}.
    rest=${BASH_REMATCH[3]}
    type=$kind
  done
  if [[ -n $key ]]; then
    case $found$type in
      =FILES) _pd_files -f ;;
      =*) _pd_words "${type//,/ }" ;;
    esac
    return 0
  fi
  if [[ $rest == *\[* ]]; then
    local job='' i
    for ((i = 1; i < COMP_CWORD; i++)); do
      [[ ${COMP_WORDS[i]} == @(-c|--config) ]] && job=${COMP_WORDS[i + 1]}
    done
    [[ -f $job ]] || return 0
    while IFS='"' read -r _ name _; do
      offers+=("$walked${rest%%\[*}[$name].")
    done < <(grep -o 'name: *"[^" ]*"' "$job")
  else
    for entry in ${_pd_job_fields[$type]}; do
      IFS=: read -r name mark kind <<<"$entry"
      offers+=("$walked$name${mark/@/.}")
      [[ $mark != @ ]] || offers+=("$walked$name[")
    done
  fi
  compopt -o nospace
  mapfile -t COMPREPLY < <(compgen -W "${offers[*]}" -- "$cur")
}
)sh";

constexpr absl::string_view kFunction = R"sh(_FUNCTION() {
  local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) key='' option
  COMPREPLY=()
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ ${COMP_WORDS[at]} == '=' ]]; then
    at=$((at - 1))
  else
    at=-1
  fi
  if [[ $at -lt 0 ]]; then
    option=${COMP_WORDS[COMP_CWORD - 1]}
  elif [[ ${COMP_WORDS[at]} == -* ]]; then
    option=${COMP_WORDS[at]}
  else
    key=${COMP_WORDS[at]}
    option=${COMP_WORDS[at - 1]}
  fi
  case $option in
)sh";

std::string Names(const OptionEntry& option) {
  std::vector<std::string> names;
  if (!option.short_name.empty()) names.push_back("-" + option.short_name);
  if (!option.long_name.empty()) names.push_back("--" + option.long_name);
  return absl::StrJoin(names, "|");
}

std::string Action(const OptionEntry& option) {
  const Offer offer = OfferFor(option);
  switch (offer.kind) {
    case Offer::Kind::kNothing:
      return ":";
    case Offer::Kind::kFiles:
      return "_pd_files -f";
    case Offer::Kind::kFolders:
      return "_pd_files -d";
    case Offer::Kind::kWords:
      return "_pd_words " + ShellQuote(absl::StrJoin(offer.words, " "));
    case Offer::Kind::kJobField:
      return "_pd_job_field";
  }
  return ":";
}

// [Model]='input:@:Input layer:@:Layer' and so on.
std::string JobTable() {
  std::string out = "declare -gA _pd_job_fields=(\n";
  for (const JobMessage& message : JobMessages())
    absl::StrAppend(&out, "  [", message.name, "]=", ShellQuote(message.fields),
                    "\n");
  return out + ")\n";
}

}  // namespace

std::string BashCompletion(const std::string& tool,
                           const std::vector<OptionEntry>& options) {
  const std::string function = absl::StrReplaceAll(tool, {{"-", "_"}});
  std::string out = absl::StrReplaceAll(kStart, {{"TOOL", tool}});
  if (HasJobFields(options)) absl::StrAppend(&out, JobTable(), kJobField);
  absl::StrAppend(&out,
                  absl::StrReplaceAll(kFunction, {{"FUNCTION", function}}));
  std::vector<std::string> names;
  std::string positional;  // kind of unnamed arguments
  for (const OptionEntry& option : options) {
    if (option.positional) {
      positional = Action(option);
      continue;
    }
    if (!option.short_name.empty()) names.push_back("-" + option.short_name);
    if (!option.long_name.empty()) names.push_back("--" + option.long_name);
    if (option.value.empty()) continue;
    absl::StrAppend(&out, "    ", Names(option), ") ", Action(option),
                    "; return ;;\n");
  }
  absl::StrAppend(&out, "  esac\n");
  if (!positional.empty())
    absl::StrAppend(&out, "  if [[ -n $cur && $cur != -* ]]; then ", positional,
                    "; return; fi\n");
  absl::StrAppend(&out, "  _pd_words ", ShellQuote(absl::StrJoin(names, " ")),
                  "\n}\ncomplete -F _", function, " ", tool, "\n");
  return out;
}

}  // namespace pd
