// SPDX-License-Identifier: Apache-2.0
#include "formats/pdmodel.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(pdmodel) {
  const auto program = pd::ParseProgram(file.view());
  if (!program.ok()) return;
  const auto bytes = pd::SerializeProgram(*program);
  pd::fuzz::Check(bytes.ok());
  const auto again = pd::ParseProgram(*bytes);
  pd::fuzz::Check(again.ok());
  const auto second = pd::SerializeProgram(*again);
  pd::fuzz::Check(second.ok() && *second == *bytes);
}
