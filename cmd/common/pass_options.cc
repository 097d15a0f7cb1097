// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/pass_options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/passes/pass_dump.h"

namespace pd {

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses()) names.push_back(pass.name);
  return names;
}

void BindPassOptions(std::vector<std::string> all, OptionTable* table,
                     PassFlags* flags) {
  flags->all = std::move(all);
  table->Group("Passes");
  table->Choices({"--disable-pass", "NAME",
                  absl::StrCat("leaves out a pass over the program: ",
                               absl::StrJoin(flags->all, ", "))},
                 flags->all, &flags->disabled);
  table->Text({"--dump-passes", "DIR",
               "writes the program as text into DIR, made if absent, before "
               "the first pass (`00-original.txt`) and after each "
               "(`01-NAME.txt`); where there are several programs, after a "
               "name for each (`train-00-original.txt`)"},
              &flags->dump);
}

PassOptions MakePassOptions(const PassFlags& flags) {
  PassOptions options;
  options.disabled.insert(flags.disabled.begin(), flags.disabled.end());
  if (flags.dump.empty()) return options;
  options.observer = DumpAfterPasses(flags.dump, flags.all);
  return options;
}

}  // namespace pd
