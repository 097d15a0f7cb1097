// SPDX-License-Identifier: Apache-2.0
// Damaged files for readers: every prefix and every flip of one byte.
#ifndef PD_TESTS_FORMATS_HOSTILE_H_
#define PD_TESTS_FORMATS_HOSTILE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace pd {

/// Calls `read` on each proper prefix of `good`.
template <typename Read>
void ForEachPrefix(absl::string_view good, const Read& read) {
  // Copies of the right size, so that a sanitizer sees reads behind the end.
  for (size_t size = 0; size < good.size(); ++size)
    read(std::string(good.substr(0, size)));
}

/// Calls `read` on copies of `good` with one byte changed: all bits, the lowest
/// and the highest one.
template <typename Read>
void ForEachFlip(absl::string_view good, const Read& read) {
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int mask : {0xff, 0x01, 0x80}) {
      std::string bad(good);
      bad[i] = static_cast<char>(bad[i] ^ mask);
      read(bad);
    }
  }
}

}  // namespace pd

#endif  // PD_TESTS_FORMATS_HOSTILE_H_
