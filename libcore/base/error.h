// SPDX-License-Identifier: Apache-2.0
// The error kinds of PaddlePaddle's manual as absl::Status, with printf-style
// messages. A message says what is wrong with values, then what was expected:
// lower case, names in single quotes, no full stop.
#ifndef PD_LIBCORE_BASE_ERROR_H_
#define PD_LIBCORE_BASE_ERROR_H_

#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace pd {

// One function per kind. The manual's name is given where Abseil's differs.
#define PD_DEFINE_ERROR_KIND(Kind)                              \
  template <typename... Args>                                   \
  absl::Status Kind(const absl::FormatSpec<Args...>& format,    \
                    const Args&... args) {                      \
    return absl::Kind##Error(absl::StrFormat(format, args...)); \
  }
PD_DEFINE_ERROR_KIND(InvalidArgument)
PD_DEFINE_ERROR_KIND(NotFound)
PD_DEFINE_ERROR_KIND(OutOfRange)
PD_DEFINE_ERROR_KIND(AlreadyExists)
PD_DEFINE_ERROR_KIND(ResourceExhausted)
PD_DEFINE_ERROR_KIND(FailedPrecondition)  // PreconditionNotMet
PD_DEFINE_ERROR_KIND(PermissionDenied)
PD_DEFINE_ERROR_KIND(DeadlineExceeded)  // ExecutionTimeout
PD_DEFINE_ERROR_KIND(Unimplemented)
PD_DEFINE_ERROR_KIND(Unavailable)
PD_DEFINE_ERROR_KIND(Internal)  // Fatal
PD_DEFINE_ERROR_KIND(Unknown)   // External
PD_DEFINE_ERROR_KIND(DataLoss)  // a damaged file
#undef PD_DEFINE_ERROR_KIND

/// `status` with "context: " put before its message; OK stays OK. Payloads are
/// kept.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

/// The kind of `status` as PaddlePaddle's manual spells it, for example
/// "InvalidArgumentError" or "PreconditionNotMetError".
absl::string_view ErrorKindName(absl::StatusCode code);

/// The kind for an errno of the operating system, with "what: strerror".
absl::Status ErrnoToStatus(int error_number, absl::string_view what);

/// A program bug, never an answer to user input: prints and aborts.
[[noreturn]] void InvariantFailed(const char* condition, const char* file,
                                  int line);

/// The candidate nearest to `name` in edit distance when it is near enough to
/// be a typing mistake, else "".
template <typename Range>
std::string Nearest(absl::string_view name, const Range& candidates);

/// Levenshtein distance, swaps counted once; letter case and '_' are ignored.
size_t EditDistance(absl::string_view a, absl::string_view b);

template <typename Range>
std::string Nearest(absl::string_view name, const Range& candidates) {
  size_t best = name.size() / 3 + 2;
  std::string nearest;
  for (const auto& candidate : candidates) {
    size_t d = EditDistance(name, candidate);
    if (d < best) {
      best = d;
      nearest = std::string(candidate);
    }
  }
  return nearest;
}

}  // namespace pd

#define PD_INVARIANT(condition) \
  ((condition) ? (void)0        \
               : ::pd::InvariantFailed(#condition, __FILE__, __LINE__))

#endif  // PD_LIBCORE_BASE_ERROR_H_
