// SPDX-License-Identifier: Apache-2.0
#include "formats/tar.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(tar) {
  pd::TarReader reader(file);
  for (int members = 0; members < 10000; ++members) {
    const auto member = reader.Next();
    if (!member.ok() || *member == nullptr) return;
    const uint64_t size = (*member)->size;
    // Every second one is passed over.
    if (members % 2 != 0) continue;
    const auto content = reader.Read();
    if (content.ok()) pd::fuzz::Check(content->size == size);
  }
}
