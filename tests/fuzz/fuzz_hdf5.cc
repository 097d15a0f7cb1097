// SPDX-License-Identifier: Apache-2.0
#include "formats/keras_file.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(hdf5) { pd::ParseKerasHdf5(file).status().IgnoreError(); }
