// SPDX-License-Identifier: Apache-2.0
#include "libcore/passes/pass_dump.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/text_dump.h"

namespace pd {
namespace {

class PassDump {
 public:
  PassDump(std::string folder, std::vector<std::string> passes)
      : folder_(std::move(folder)), passes_(std::move(passes)) {}

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

decltype(PassOptions::observer) DumpAfterPasses(
    const std::string& folder, const std::vector<std::string>& passes) {
  return [dump = std::make_shared<PassDump>(folder, passes)](
             const std::string& label, const std::string& pass,
             const ProgramDesc& program) {
    return dump->Take(label, pass, program);
  };
}

}  // namespace pd
