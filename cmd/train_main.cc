// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/tool.h"
#include "cmd/train_options.h"
#include "cmd/train_run.h"

int main(int argc, char** argv) {
  pd::TrainOptions options;
  return pd::RunTool(
      pd::TrainTool(&options), argc, argv,
      [&](std::ostream& out) { return pd::RunTrain(options, out); });
}
