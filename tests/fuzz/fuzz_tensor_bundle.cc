// SPDX-License-Identifier: Apache-2.0
// The file is taken for the tensors' as well, which an index may lie about.
#include "formats/tensor_bundle.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(tensor_bundle) {
  const auto bundle = pd::ParseTensorBundle(file.view());
  if (!bundle.ok()) return;
  for (const auto& [key, entry] : bundle->entries)
    pd::BundleTensor(entry, file).status().IgnoreError();
}
