// SPDX-License-Identifier: Apache-2.0
// Text cut as Python cuts it, for the data sets whose records PaddlePaddle
// makes with strip, split and lower: of bytes, which know ASCII's blanks only,
// and of str, which knows Unicode's.
#ifndef PD_LIBCORE_DATA_PYTHON_TEXT_H_
#define PD_LIBCORE_DATA_PYTHON_TEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pd::python {

/// The characters that strip and split take for blank.
enum class Blanks {
  kBytes,  ///< bytes: space, \t, \n, \v, \f, \r
  kText,   ///< str, in UTF-8: all that str.isspace() knows
};

/// text.split().
std::vector<absl::string_view> Split(absl::string_view text, Blanks blanks);
/// text.strip().
absl::string_view Strip(absl::string_view text, Blanks blanks);

/// OK when `text` can be decoded as UTF-8, else DataLoss.
absl::Status CheckUtf8(absl::string_view text);
/// bytes.decode('latin-1'), in UTF-8.
std::string DecodeLatin1(absl::string_view bytes);
/// str.lower() of what DecodeLatin1 gives.
std::string LowerLatin1(absl::string_view text);

/// Calls `visit` with each line, without its '\n', and its number from 1. An
/// error of `visit` gets "line N: " before it.
absl::Status ForEachLine(
    absl::string_view text,
    const std::function<absl::Status(absl::string_view line, int64_t number)>&
        visit);

}  // namespace pd::python

#endif  // PD_LIBCORE_DATA_PYTHON_TEXT_H_
