// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_script.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(torchscript) {
  pd::ParseTorchScript(file).status().IgnoreError();
}
