// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace pd {

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(),
                         absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

absl::string_view ErrorKindName(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "InvalidArgumentError";
    case absl::StatusCode::kNotFound:
      return "NotFoundError";
    case absl::StatusCode::kOutOfRange:
      return "OutOfRangeError";
    case absl::StatusCode::kAlreadyExists:
      return "AlreadyExistsError";
    case absl::StatusCode::kResourceExhausted:
      return "ResourceExhaustedError";
    case absl::StatusCode::kFailedPrecondition:
      return "PreconditionNotMetError";
    case absl::StatusCode::kPermissionDenied:
      return "PermissionDeniedError";
    case absl::StatusCode::kDeadlineExceeded:
      return "ExecutionTimeoutError";
    case absl::StatusCode::kUnimplemented:
      return "UnimplementedError";
    case absl::StatusCode::kUnavailable:
      return "UnavailableError";
    case absl::StatusCode::kInternal:
      return "FatalError";
    case absl::StatusCode::kDataLoss:
      return "DataLossError";
    default:
      return "ExternalError";
  }
}

absl::Status ErrnoToStatus(int error_number, absl::string_view what) {
  std::string message = absl::StrCat(what, ": ", std::strerror(error_number));
  switch (error_number) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
      return absl::InvalidArgumentError(message);
    default:
      return absl::UnknownError(message);
  }
}

void InvariantFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: bug in pdkit: '%s' does not hold\n", file, line,
               condition);
  std::abort();
}

namespace {

// "AdamW" and "adam_w" are "adamw".
std::string LettersOf(absl::string_view name) {
  std::string letters;
  for (const char c : name)
    if (c != '_') letters += absl::ascii_tolower(static_cast<unsigned char>(c));
  return letters;
}

}  // namespace

size_t EditDistance(absl::string_view first, absl::string_view second) {
  const std::string a = LettersOf(first), b = LettersOf(second);
  const size_t n = a.size(), m = b.size();
  // Three rows of the dynamic programme: before, above and current.
  std::vector<size_t> before(m + 1), above(m + 1), row(m + 1);
  for (size_t j = 0; j <= m; ++j) above[j] = j;
  for (size_t i = 1; i <= n; ++i) {
    row[0] = i;
    for (size_t j = 1; j <= m; ++j) {
      const size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[m];
}

}  // namespace pd
