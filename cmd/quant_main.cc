// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/tool.h"
#include "cmd/quant_options.h"
#include "cmd/quant_run.h"

int main(int argc, char** argv) {
  pd::QuantOptions options;
  return pd::RunTool(
      pd::QuantTool(&options), argc, argv,
      [&](std::ostream& out) { return pd::RunQuant(options, out); });
}
