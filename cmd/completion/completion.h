// SPDX-License-Identifier: Apache-2.0
// Completion for shells: a script for each tool and shell, made of the option
// table that the parser uses, and of the job schema for `-o PATH=VALUE`.
// Nothing of a tool runs while somebody types.
#ifndef PD_CMD_COMPLETION_COMPLETION_H_
#define PD_CMD_COMPLETION_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cmd/common/manual.h"

namespace pd {

/// The completions that a shell offers where a value is typed.
struct Offer {
  enum class Kind { kNothing, kFiles, kFolders, kWords, kJobField };
  Kind kind = Kind::kNothing;
  std::vector<std::string> words;  ///< one that ends in = goes on
};

/// The offer for this option's value, by its words, else by what the help calls
/// the value: FILE, MODEL, RUN, PATH=VALUE.
Offer OfferFor(const OptionEntry& option);

/// The options of a tool in the table's order, without its groups.
std::vector<OptionEntry> AllOptions(const std::vector<OptionGroup>& groups);

/// True when one of the options changes a field of the job.
bool HasJobFields(const std::vector<OptionEntry>& options);

/// A message of the job schema and its fields as words "name:mark:kind":
///   layer:@:Layer        an element of a list is chosen by name: layer[fc1]
///   optimizer:.:Optimizer       the fields of a message follow
///   shuffle:=:true,false        a value, one of these; FILES: a path
struct JobMessage {
  std::string name, fields;
};

/// Every message that can stand in a job, the job itself first.
std::vector<JobMessage> JobMessages();

/// `text` in single quotes for a POSIX shell or zsh.
std::string ShellQuote(absl::string_view text);

/// The help of an option without its back quotes.
std::string PlainHelp(const OptionEntry& option);

std::string BashCompletion(const std::string& tool,
                           const std::vector<OptionEntry>& options);
std::string ZshCompletion(const std::string& tool,
                          const std::vector<OptionEntry>& options);
std::string FishCompletion(const std::string& tool,
                           const std::vector<OptionEntry>& options);

/// The script for "bash", "zsh" or "fish". InvalidArgument for another shell.
absl::StatusOr<std::string> Completion(absl::string_view shell,
                                       const std::string& tool,
                                       const std::vector<OptionGroup>& groups);

}  // namespace pd

#endif  // PD_CMD_COMPLETION_COMPLETION_H_
