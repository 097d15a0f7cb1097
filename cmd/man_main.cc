// SPDX-License-Identifier: Apache-2.0
// pd-man: what the tools say about themselves. Used by the build and the
// tests, not installed.
//
//   pd-man TOOL               its man page
//   pd-man pd-upgrade         pd-upgrade(7)
//   pd-man --list             the names of all tools
//   pd-man --examples TOOL    "STATUS<tab>COMMAND" for each example
//   pd-man --bash TOOL        its completion; also --zsh, --fish
#include <cstdio>
#include <iostream>
#include <string>

#include "absl/strings/strip.h"
#include "cmd/all_tools.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/mdoc.h"
#include "cmd/completion/completion.h"
#include "cmd/upgrade_man.h"

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const std::string name = argc > 2 ? argv[2] : first;
  const bool list = first == "--list";
  const bool upgrade = name == "pd-upgrade" && first == name;
  if (upgrade) std::cout << pd::UpgradePage();
  bool found = list || upgrade;
  for (const pd::Tool& tool : pd::AllTools()) {
    if (list) std::cout << tool.manual.name << "\n";
    if (tool.manual.name != name) continue;
    found = true;
    if (first == "--examples") {
      for (const pd::Manual::Example& example : tool.manual.examples)
        std::cout << example.exit_status << "\t" << example.command << "\n";
      continue;
    }
    pd::OptionTable table;
    pd::BindAll(tool, &table);
    if (first == name) {
      std::cout << pd::MdocPage(tool.manual, table.Describe());
      continue;
    }
    const auto script =
        pd::Completion(absl::StripPrefix(first, "--"), name, table.Describe());
    found = script.ok();
    std::cout << script.value_or("");
  }
  std::cout.flush();
  if (!found)
    std::cerr << "pd-man: error: nothing to say about '" << first << " " << name
              << "' (usage: pd-man TOOL | --list | --examples TOOL "
              << "| --bash TOOL | --zsh TOOL | --fish TOOL)\n";
  if (!std::cout) return pd::kExitFailed;
  return found ? pd::kExitDone : pd::kExitUsage;
}
