// SPDX-License-Identifier: Apache-2.0
#include "formats/tfevents.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(tensorboard) {
  const auto marks = pd::ScanTfEvents(file.view());
  if (!marks.ok()) return;
  size_t end = 0;
  for (const pd::LogMark& mark : *marks) {
    pd::fuzz::Check(mark.end > end && mark.end <= file.size);
    end = mark.end;
  }
}
