// SPDX-License-Identifier: Apache-2.0
#include "formats/torch.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(torch) { pd::ParseTorch(file).status().IgnoreError(); }
