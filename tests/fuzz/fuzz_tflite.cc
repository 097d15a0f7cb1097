// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(tflite) { pd::ParseTflite(file).status().IgnoreError(); }
