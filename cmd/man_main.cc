// SPDX-License-Identifier: Apache-2.0
// pd-man: what the tools say about themselves. Used by the build and the
// tests, not installed.
//
//   pd-man TOOL               its man page
//   pd-man --list             the names of all tools
//   pd-man --examples TOOL    "STATUS<tab>COMMAND" for each example
#include <cstdio>
#include <iostream>
#include <string>

#include "cmd/all_tools.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/mdoc.h"

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const std::string name = argc > 2 ? argv[2] : first;
  const bool list = first == "--list";
  bool found = list;
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
    std::cout << pd::MdocPage(tool.manual, table.Describe());
  }
  std::cout.flush();
  if (!found)
    std::cerr << "pd-man: error: no tool '" << name
              << "' (usage: pd-man TOOL | --list | --examples TOOL)\n";
  if (!std::cout) return pd::kExitFailed;
  return found ? pd::kExitDone : pd::kExitUsage;
}
