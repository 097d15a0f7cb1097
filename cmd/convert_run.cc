// SPDX-License-Identifier: Apache-2.0
#include "cmd/convert_run.h"

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/common/exit_status.h"
#include "cmd/convert_upgrade.h"
#include "cmd/inspection_text.h"
#include "formats/pdmodel.h"
#include "libcore/base/file_target.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/convert/write.h"
#include "libcore/model/inspect.h"
#include "libcore/ops/registry.h"
#include "libcore/program/text_dump.h"

namespace pd {
namespace {

absl::Status RunInspect(const ConvertOptions& options, std::ostream& out) {
  OpRegistry registry;  // shapes are inferred, nothing is computed
  PD_RETURN_IF_ERROR(RegisterAllOps(&registry));
  PD_ASSIGN_OR_RETURN(const Inspection inspection,
                      Inspect(registry, options.inspect, !options.no_stats));
  if (options.common.json()) {
    out << InspectionJson(inspection) << "\n";
    return inspection.cannot_run;
  }
  out << InspectionText(inspection);
  if (options.common.verbose > 0 && inspection.model.has_value() &&
      !inspection.model->program.blocks.empty())
    out << "\n" << DumpProgram(inspection.model->program);
  return inspection.cannot_run;
}

// Ops that --upgrade has replaced, by old type.
using Replaced = std::map<std::string, int64_t>;

std::string WrittenJson(const ConvertOptions& options, const Written& written,
                        const Replaced& replaced) {
  nlohmann::ordered_json json = {{"in", options.in.front()},
                                 {"files", written.files},
                                 {"tensors", written.arrays},
                                 {"bytes", written.bytes},
                                 {"left_out", written.left_out}};
  if (options.upgrade) json["replaced"] = replaced;
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

void Report(const ConvertOptions& options, const Content& content,
            const Written& written, const Replaced& replaced,
            std::ostream& out) {
  if (content.numbered())
    LogWarning(
        "'%s' holds tensors without names and no program is beside it: they "
        "are numbered; --program names one",
        content.path);
  if (!written.left_out.empty())
    LogWarning("left out: %s", absl::StrJoin(written.left_out, ", "));
  if (options.out.front() == kStandardStream)
    return;  // the result itself is there
  if (options.common.json())
    out << WrittenJson(options, written, replaced) << "\n";
  else if (written.files.size() > 8)
    out << "wrote " << written.files.size() << " files to "
        << options.out.front() << ": " << written.arrays << " tensors, "
        << written.bytes << " bytes\n";
  else
    out << "wrote " << absl::StrJoin(written.files, ", ") << ": "
        << written.arrays << " tensors, " << written.bytes << " bytes\n";
  if (options.upgrade && !options.common.json())
    out << ReplacedText(replaced) << "\n";
}

}  // namespace

absl::Status RunConvert(const ConvertOptions& options, std::ostream& out) {
  if (!options.inspect.empty()) return RunInspect(options, out);
  if (IsSource(options)) return UpgradeSourceFile(options, out);
  const std::string& to = options.out.front();
  ReadOptions reading;
  reading.from = options.from;
  reading.program = options.program;
  PD_ASSIGN_OR_RETURN(Content content,
                      ReadContent(options.in.front(), reading));
  const auto target = options.to.empty() ? TargetFromPath(to, content)
                                         : TargetFromName(options.to);
  if (!target.ok()) return UsageError(target.status());
  if (!options.names.empty())
    PD_RETURN_IF_ERROR(RenameTensors(options.names == "parameter", &content));
  Replaced replaced;
  if (options.upgrade) {
    PD_ASSIGN_OR_RETURN(replaced, UpgradeModel(&content));
  }
  std::vector<std::string> left_out;
  if (options.edits.any()) {
    const absl::Status status = EditTensors(options.edits, &content, &left_out);
    if (absl::StartsWith(status.message(), "--") ||
        absl::StartsWith(status.message(), "two tensors"))
      return UsageError(status);
    PD_RETURN_IF_ERROR(status);
  }
  WriteOptions writing;
  writing.protocol = static_cast<int>(options.protocol);
  writing.arrays_only = options.arrays_only;
  // Weights of Caffe have taken the network that it names.
  if (!options.program.empty() && !content.onnx.has_value()) {
    PD_ASSIGN_OR_RETURN(writing.program, ReadProgram(options.program));
  }
  PD_ASSIGN_OR_RETURN(Written written,
                      WriteContent(content, *target, to, writing));
  written.left_out.insert(written.left_out.begin(), left_out.begin(),
                          left_out.end());
  Report(options, content, written, replaced, out);
  return absl::OkStatus();
}

}  // namespace pd
