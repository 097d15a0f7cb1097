// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's FLAGS_*: typed, named, listed in one table, set from the
// environment or `--flags name=value[,...]`. A flag is in the table when
// something reads it.
#ifndef PD_LIBCORE_BASE_FLAGS_H_
#define PD_LIBCORE_BASE_FLAGS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"

namespace pd {

using FlagValue = std::variant<bool, int64_t, double, std::string>;

struct FlagInfo {
  absl::string_view name;  ///< with "FLAGS_"
  FlagValue value;         ///< its default in the table, now otherwise
  absl::string_view help;
  int64_t min = INT64_MIN;  ///< the least that an integer may be
};

/// Every flag with its value now, in name order.
const std::vector<FlagInfo>& AllFlags();

/// Sets a flag, with or without "FLAGS_" before its name. NotFound names the
/// nearest flag; Unimplemented is for one of PaddlePaddle's that nothing here
/// reads; InvalidArgument says what the value should be.
absl::Status SetFlag(absl::string_view name, absl::string_view value);

/// Sets flags from the environment variables FLAGS_*; InvalidArgument says what
/// a value should be. Variables that are no flags of the table are left alone.
absl::Status SetFlagsFromEnvironment();

/// A sentence for each environment variable FLAGS_* that nothing reads, in
/// order: a flag of PaddlePaddle's without effect here, or an unknown one with
/// the nearest name.
std::vector<std::string> UnreadFlagsInEnvironment();

/// The value of a flag in the table; T must be its type.
template <typename T>
const T& GetFlag(absl::string_view name);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_FLAGS_H_
