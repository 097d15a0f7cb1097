// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_file.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(saved_model) {
  pd::ParseTensorflowSavedModel(file.view()).status().IgnoreError();
}
