// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/tool.h"
#include "cmd/profile_options.h"
#include "cmd/profile_run.h"

int main(int argc, char** argv) {
  pd::ProfileOptions options;
  return pd::RunTool(
      pd::ProfileTool(&options), argc, argv,
      [&](std::ostream& out) { return pd::RunProfile(options, out); });
}
