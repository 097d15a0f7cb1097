// SPDX-License-Identifier: Apache-2.0
#include "cmd/convert_run.h"

#include <ostream>

#include "cmd/inspection_text.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"
#include "libcore/program/text_dump.h"
#include "libcore/train/inspect.h"

namespace pd {

absl::Status RunConvert(const ConvertOptions& options, std::ostream& out) {
  OpRegistry registry;  // shapes are inferred, nothing is computed
  PD_RETURN_IF_ERROR(RegisterAllOps(&registry));
  PD_ASSIGN_OR_RETURN(const Inspection inspection,
                      Inspect(registry, options.inspect));
  if (options.common.json()) {
    out << InspectionJson(inspection) << "\n";
    return absl::OkStatus();
  }
  out << InspectionText(inspection);
  if (options.common.verbose > 0 && inspection.model.has_value())
    out << "\n" << DumpProgram(inspection.model->program);
  return absl::OkStatus();
}

}  // namespace pd
