// SPDX-License-Identifier: Apache-2.0
// A Python source as tokens: as much of the language as it takes to find names,
// calls and their arguments, and to leave strings and comments alone.
#ifndef PD_LIBCORE_CONVERT_PYTHON_TOKENS_H_
#define PD_LIBCORE_CONVERT_PYTHON_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct PythonToken {
  enum class Kind {
    kName,     ///< a keyword too
    kLiteral,  ///< a number or a string with the letters before it
    kSign,     ///< one character: "==" is two tokens
    kEnd,      ///< of a line, outside of brackets, or of the source
  };
  Kind kind;
  size_t begin, end;  ///< bytes of the source
  int depth;          ///< of the brackets around it
};

/// The tokens of `text`; blanks and comments are none, the last is a kEnd.
/// InvalidArgument for a string without an end and for brackets that do not
/// match, with the line.
absl::StatusOr<std::vector<PythonToken>> PythonTokens(absl::string_view text);

/// Counts from 1.
int64_t LineOf(absl::string_view text, size_t byte);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_PYTHON_TOKENS_H_
