// SPDX-License-Identifier: Apache-2.0
// Lines of a process that another one reads: it files all of them and shows
// some. A mark says which; no line has it otherwise, since the log escapes
// control characters.
#ifndef PD_LIBCORE_BASE_LOG_MARKS_H_
#define PD_LIBCORE_BASE_LOG_MARKS_H_

#include "absl/strings/string_view.h"
#include "libcore/base/log.h"

namespace pd {

/// Stands before a line that is filed and not shown.
inline constexpr char kFiledOnly = '\x1e';

/// From now on lines above `shown` bear the mark.
void MarkLogLinesAbove(LogLevel shown);

/// The mark, where a line of that level bears it; else "".
absl::string_view LogMark(LogLevel level);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_LOG_MARKS_H_
