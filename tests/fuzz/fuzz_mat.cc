// SPDX-License-Identifier: Apache-2.0
#include "formats/mat.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(mat) { pd::ParseMat(file).status().IgnoreError(); }
