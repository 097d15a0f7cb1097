// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/tool.h"
#include "cmd/eval_options.h"
#include "cmd/eval_run.h"

int main(int argc, char** argv) {
  pd::EvalOptions options;
  return pd::RunTool(
      pd::EvalTool(&options), argc, argv,
      [&](std::ostream& out) { return pd::RunEval(options, out); });
}
