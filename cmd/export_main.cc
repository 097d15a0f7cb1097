// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/tool.h"
#include "cmd/export_options.h"
#include "cmd/export_run.h"

int main(int argc, char** argv) {
  pd::ExportOptions options;
  return pd::RunTool(
      pd::ExportTool(&options), argc, argv,
      [&](std::ostream& out) { return pd::RunExport(options, out); });
}
