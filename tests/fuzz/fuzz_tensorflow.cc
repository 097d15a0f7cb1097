// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_file.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(tensorflow) {
  pd::ParseTensorflowGraph(file.view()).status().IgnoreError();
}
