// SPDX-License-Identifier: Apache-2.0
#include "cmd/starter.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cmd/about_list.h"
#include "cmd/common/exit_status.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

absl::string_view TextOf(absl::string_view file) {
  for (const StarterText& starter : StarterFiles())
    if (file == starter.name) return starter.text;
  return "";
}

// The text after "# KIND: " in the job's first line.
std::string About(const std::string& kind) {
  absl::string_view line =
      *absl::StrSplit(TextOf(kind + ".pbtxt"), '\n').begin();
  absl::ConsumePrefix(&line, absl::StrCat("# ", kind, ": "));
  return std::string(absl::StripSuffix(line, "."));
}

}  // namespace

std::vector<std::string> StarterKinds() {
  std::vector<std::string> kinds;
  for (const StarterText& starter : StarterFiles()) {
    absl::string_view name = starter.name;
    if (absl::ConsumeSuffix(&name, ".pbtxt")) kinds.emplace_back(name);
  }
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

void ListStarters(bool json, std::ostream& out) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string& kind : StarterKinds())
    entries.emplace_back(kind, About(kind));
  PrintAbout(entries, json, out);
}

absl::Status WriteStarter(const std::string& kind, const std::string& folder,
                          const StarterData& data, bool json,
                          std::ostream& out) {
  const std::string job = folder + "/job.pbtxt";
  const std::string makefile = folder + "/Makefile";
  for (const std::string& path : {job, makefile}) {
    std::error_code ignored;
    if (std::filesystem::symlink_status(path, ignored).type() !=
        std::filesystem::file_type::not_found)
      return UsageError(AlreadyExists(
          "'%s' is there already: --new overwrites nothing", path));
  }
  StarterJob made;
  made.text = std::string(TextOf(kind + ".pbtxt"));
  if (!data.path.empty()) {
    PD_ASSIGN_OR_RETURN(made, MakeStarter(kind, made.text, data, folder));
  }
  PD_RETURN_IF_ERROR(MakeDirectories(folder));
  PD_RETURN_IF_ERROR(WriteFile(job, made.text));
  PD_RETURN_IF_ERROR(WriteFile(makefile, TextOf("Makefile")));
  if (json) {
    nlohmann::ordered_json said = {{"kind", kind}, {"files", {job, makefile}}};
    if (!data.path.empty()) said["notes"] = made.notes;
    out << DumpJson(said) << "\n";
    return absl::OkStatus();
  }
  out << "made " << job << " and " << makefile
      << (data.path.empty() ? "; the job's first lines say what goes where\n"
                            : absl::StrCat("; `make` in ", folder,
                                           " trains, evaluates and exports\n"));
  for (const std::string& note : made.notes) out << "  " << note << "\n";
  return absl::OkStatus();
}

}  // namespace pd
