// SPDX-License-Identifier: Apache-2.0
#include "cmd/check_naninf_options.h"
#include "cmd/check_naninf_run.h"
#include "cmd/common/tool.h"

int main(int argc, char** argv) {
  pd::CheckNaninfOptions options;
  return pd::RunTool(
      pd::CheckNaninfTool(&options), argc, argv,
      [&](std::ostream& out) { return pd::RunCheckNaninf(options, out); });
}
