// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/pass_options.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/text_dump.h"

namespace pd {
namespace {

class PassDump {
 public:
  explicit PassDump(const PassFlags& flags)
      : folder_(flags.dump), passes_(flags.all) {}

  absl::Status Take(const std::string& label, const std::string& pass,
                    const ProgramDesc& program) {
    // A plan for another batch size: the same program once more.
    if (pass.empty()) again_ = !labels_.insert(label).second;
    if (again_) return absl::OkStatus();
    if (pass.empty()) {
      PD_RETURN_IF_ERROR(MakeDirectories(folder_));
      // Removes files of an earlier run, also of passes that are off now.
      for (const std::string& old : passes_)
        std::remove(PathOf(label, old).c_str());
    }
    return WriteFile(PathOf(label, pass), DumpProgram(program));
  }

 private:
  std::string PathOf(const std::string& label, const std::string& pass) const {
    const auto at = std::find(passes_.begin(), passes_.end(), pass);
    const size_t number = pass.empty() ? 0 : at - passes_.begin() + 1;
    return absl::StrFormat("%s/%s%s%02d-%s.txt", folder_, label,
                           label.empty() ? "" : "-", number,
                           pass.empty() ? "original" : pass);
  }

  const std::string folder_;
  const std::vector<std::string> passes_;
  std::set<std::string> labels_;
  bool again_ = false;
};

}  // namespace

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
  options.observer = [dump = std::make_shared<PassDump>(flags)](
                         const std::string& label, const std::string& pass,
                         const ProgramDesc& program) {
    return dump->Take(label, pass, program);
  };
  return options;
}

}  // namespace pd
