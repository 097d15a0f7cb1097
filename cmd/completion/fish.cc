// SPDX-License-Identifier: Apache-2.0
// Completion for fish: one `complete` for each option.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cmd/completion/completion.h"

namespace pd {
namespace {

// The same walk as bash's. A token is the whole `path=value` in fish.
constexpr absl::string_view kJobField = R"sh(function __pd_job_offers
    set -l rest (commandline -ct | string trim -c '"\'' | string replace -r '^-o' '')
    set -l type Job
    set -l walked ''
    while set -l parts (string match -r '^([A-Za-z0-9_]+)((?:\[[^]]*\])?)\.(.*)$' -- $rest)
        set -l found ''
        for entry in (string split ' ' -- (__pd_job_fields $type))
            set -l field (string split : -- $entry)
            test "$field[1]" = $parts[2]; and set found $field[3]
        end
        test -n "$found"; or return
        set walked $walked$parts[2]$parts[3].
        set rest $parts[4]
        set type $found
    end
    for entry in (string split ' ' -- (__pd_job_fields $type))
        set -l field (string split : -- $entry)
        set -l words (string split -n , -- $field[3])
        if test "$field[2]" != '='
            echo $walked$field[1].
        else if test -z "$words"; or test "$words" = FILES
            echo $walked$field[1]=
        else
            for word in $words
                echo $walked$field[1]=$word
            end
        end
    end
end
)sh";

// fish's single quotes know \\ and \'.
std::string Quote(absl::string_view text) {
  return absl::StrCat(
      "'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string JobTable() {
  std::string out = "function __pd_job_fields\n    switch $argv[1]\n";
  for (const JobMessage& message : JobMessages())
    absl::StrAppend(&out, "        case ", message.name, "\n            echo ",
                    Quote(message.fields), "\n");
  return out + "    end\nend\n";
}

// -r: needs a value; -f: files are no offer; -x: both.
std::string Action(const OptionEntry& option) {
  if (option.value.empty()) return "";
  const Offer offer = OfferFor(option);
  switch (offer.kind) {
    case Offer::Kind::kNothing:
      return " -x";
    case Offer::Kind::kFiles:
      return " -r -F";
    case Offer::Kind::kFolders:
      return " -x -a '(__fish_complete_directories)'";
    case Offer::Kind::kWords:
      return " -x -a " + Quote(absl::StrJoin(offer.words, " "));
    case Offer::Kind::kJobField:
      return " -x -a '(__pd_job_offers)'";
  }
  return "";
}

}  // namespace

std::string FishCompletion(const std::string& tool,
                           const std::vector<OptionEntry>& options) {
  std::string out = absl::StrCat("# fish completion for ", tool,
                                 ", made of its option table.\n");
  if (HasJobFields(options)) absl::StrAppend(&out, JobTable(), kJobField);
  bool positional = false;
  for (const OptionEntry& option : options) positional |= option.positional;
  if (!positional) absl::StrAppend(&out, "complete -c ", tool, " -f\n");
  for (const OptionEntry& option : options) {
    if (option.positional) continue;
    absl::StrAppend(&out, "complete -c ", tool);
    if (!option.short_name.empty())
      absl::StrAppend(&out, " -s ", option.short_name);
    if (!option.long_name.empty())
      absl::StrAppend(&out, " -l ", option.long_name);
    absl::StrAppend(&out, Action(option), " -d ", Quote(PlainHelp(option)),
                    "\n");
  }
  return out;
}

}  // namespace pd
