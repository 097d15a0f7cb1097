// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/tree.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(tree_json) {
  pd::NamedArrays arrays;
  arrays["a"] = pd::MakeArray<float>({2}, {1, 2});
  const auto tree = pd::TreeFromJson(file.view(), arrays);
  if (!tree.ok()) return;
  pd::TreeToJson(*tree, "a");
  pd::Flatten(*tree, "a").status().IgnoreError();
}
