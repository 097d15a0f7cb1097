// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_export.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(torch_export) {
  pd::ParseTorchExport(file).status().IgnoreError();
}
