// SPDX-License-Identifier: Apache-2.0
// Text for a terminal. Names and messages out of files may hold anything,
// escape sequences that command a terminal too; whatever prints passes through
// here.
#ifndef PD_LIBCORE_BASE_PRINTABLE_H_
#define PD_LIBCORE_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace pd {

/// One line of text: control characters (ASCII's, DEL, and Unicode's U+0080 to
/// U+009F) and bytes that are no UTF-8 as "\x1b"; line breaks, tabs and
/// carriage returns as "\n", "\t", "\r". Quotes, backslashes and all other
/// characters stay, so printable text passes as it is, twice too.
std::string Printable(absl::string_view text);

/// The same for text of several lines: line breaks and tabs stay.
std::string PrintableLines(absl::string_view text);

/// How many bytes of `text` are before a UTF-8 character that has begun at its
/// end and goes on elsewhere: all of them where there is none.
size_t WholeCharacters(absl::string_view text);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_PRINTABLE_H_
