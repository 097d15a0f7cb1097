// SPDX-License-Identifier: Apache-2.0
#include "tests/cmd/demo_tool.h"

int main(int argc, char** argv) {
  pd::DemoOptions options;
  return pd::RunTool(
      pd::DemoTool(&options), argc, argv,
      [&](std::ostream& out) { return pd::RunDemo(options, out); });
}
