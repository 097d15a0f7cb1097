// SPDX-License-Identifier: Apache-2.0
#include "formats/pdparams.h"
#include "formats/pickle.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(pickle) {
  const auto value = pd::ParsePickle(file, pd::Alignment::kAny);
  if (!value.ok()) return;
  // A value that was read can be written, and reads the same again.
  for (const int protocol : {2, 3, 4}) {
    const auto bytes = pd::SerializePickle(*value, protocol);
    pd::fuzz::Check(bytes.ok());
    const auto again = pd::ParsePickle(pd::fuzz::Borrow(
        reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()));
    pd::fuzz::Check(again.ok());
    const auto second = pd::SerializePickle(*again, protocol);
    pd::fuzz::Check(second.ok() && *second == *bytes);
  }
  pd::StateDictOf(*value).status().IgnoreError();
}
