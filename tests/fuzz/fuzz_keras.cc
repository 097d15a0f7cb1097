// SPDX-License-Identifier: Apache-2.0
#include "formats/keras_file.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(keras) { pd::ParseKeras(file).status().IgnoreError(); }
