// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/tool.h"
#include "cmd/convert_options.h"
#include "cmd/convert_run.h"

int main(int argc, char** argv) {
  pd::ConvertOptions options;
  return pd::RunTool(
      pd::ConvertTool(&options), argc, argv,
      [&](std::ostream& out) { return pd::RunConvert(options, out); });
}
