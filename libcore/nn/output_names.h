// SPDX-License-Identifier: Apache-2.0
// How an op's outputs are called that nobody names.
#ifndef PD_LIBCORE_NN_OUTPUT_NAMES_H_
#define PD_LIBCORE_NN_OUTPUT_NAMES_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace pd {

/// Output `i` of an op whose first one is `first`, "top_k_v2_3.tmp_0" from
/// BlockBuilder::UniqueTemporary: "top_k_v2_3.tmp_1". "" stays "".
inline std::string TemporaryBeside(const std::string& first, size_t i) {
  if (first.empty()) return first;
  return absl::StrCat(first.substr(0, first.size() - 1), i);
}

}  // namespace pd

#endif  // PD_LIBCORE_NN_OUTPUT_NAMES_H_
