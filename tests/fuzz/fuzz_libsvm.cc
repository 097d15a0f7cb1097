// SPDX-License-Identifier: Apache-2.0
#include "formats/libsvm.h"
#include "formats/text_input.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(libsvm) {
  pd::LineReader lines(file.view());
  absl::string_view line;
  pd::LibSvmRow row;
  bool found = false;
  while (lines.Next(&line)) {
    pd::ParseLibSvm(line, &row, &found).IgnoreError();
    pd::fuzz::Check(row.indices.size() == row.values.size());
  }
}
