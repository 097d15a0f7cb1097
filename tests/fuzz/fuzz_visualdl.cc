// SPDX-License-Identifier: Apache-2.0
#include "formats/visualdl.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(visualdl) {
  const auto marks = pd::ScanVisualDl(file.view());
  if (!marks.ok()) return;
  size_t end = 0;
  for (const pd::LogMark& mark : *marks) {
    pd::fuzz::Check(mark.end > end && mark.end <= file.size);
    end = mark.end;
  }
}
