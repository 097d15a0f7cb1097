// SPDX-License-Identifier: Apache-2.0
#include "formats/caffe_file.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(caffemodel) {
  pd::ParseCaffeModel(file.view()).status().IgnoreError();
}
