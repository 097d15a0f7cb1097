// SPDX-License-Identifier: Apache-2.0
#include "cmd/convert_upgrade.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_target.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/convert/upgrade.h"
#include "libcore/convert/upgrade_source.h"
#include "libcore/ops/registry.h"

namespace pd {

bool IsSource(const ConvertOptions& options) {
  return options.upgrade && absl::EndsWith(options.in.front(), ".py");
}

std::string ReplacedText(const std::map<std::string, int64_t>& replaced) {
  int64_t all = 0;
  std::vector<std::string> parts;
  for (const auto& [name, count] : replaced) {
    all += count;
    parts.push_back(absl::StrCat(count, " ", name));
  }
  return absl::StrCat("replaced ", all, all > 0 ? ": " : "",
                      absl::StrJoin(parts, ", "));
}

absl::Status UpgradeSourceFile(const ConvertOptions& options,
                               std::ostream& out) {
  const std::string& from = options.in.front();
  const std::string& to = options.out.front();
  PD_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(from));
  const auto upgraded = UpgradeSource(bytes.view());
  if (!upgraded.ok())
    return Annotate(upgraded.status(), absl::StrCat("'", from, "'"));
  PD_RETURN_IF_ERROR(WriteFile(to, upgraded->text));
  nlohmann::ordered_json kept = nlohmann::json::array();
  for (const SourceNote& note : upgraded->notes) {
    LogWarning("%s:%d:%d: %s", from, note.line, note.column, note.text);
    kept.push_back(
        {{"line", note.line}, {"column", note.column}, {"text", note.text}});
  }
  if (to == kStandardStream) return absl::OkStatus();
  if (options.common.json()) {
    const nlohmann::ordered_json json = {{"in", from},
                                         {"files", {to}},
                                         {"replaced", upgraded->replaced},
                                         {"kept", kept}};
    out << json.dump(-1, ' ', false,
                     nlohmann::ordered_json::error_handler_t::replace)
        << "\n";
  } else {
    out << "wrote " << to << ": " << ReplacedText(upgraded->replaced) << "; "
        << upgraded->notes.size() << " to look at\n";
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, int64_t>> UpgradeModel(Content* content) {
  if (!content->program.has_value())
    return InvalidArgument(
        "'%s' holds no program of PaddlePaddle; --upgrade takes a model, or a "
        "Python source whose name ends in .py",
        content->path);
  OpRegistry registry;  // shapes are inferred, nothing is computed
  PD_RETURN_IF_ERROR(RegisterAllOps(&registry));
  const auto report = UpgradeProgram(registry, &*content->program);
  if (!report.ok())
    return Annotate(report.status(), absl::StrCat("'", content->file, "'"));
  for (const std::string& line : report->kept)
    LogWarning("'%s': %s", content->file, line);
  return report->replaced;
}

}  // namespace pd
